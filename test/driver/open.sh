#!/bin/sh
# SPDX-License-Identifier: MIT
# builds: one
#
# A library that has only some of the calls opens, with those and no others.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
src=$here/../../src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/some.c" <<'EOF'
#include "driver/cuda_api.h"
CUresult cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t size) { *p = size; return CUDA_SUCCESS; }
CUresult cuCtxSynchronize(void) { return CUDA_SUCCESS; }
EOF
${CC:-cc} -std=gnu11 -fPIC -shared -I "$src" "$work/some.c" -o "$work/libsome.so"
${CC:-cc} -std=gnu11 -I "$src" "$here/probe_libcuda.c" "$src/driver/driver.c" -ldl -o "$work/probe"

printf '%s\n' cuCtxSynchronize cuInit cuMemAlloc_v2 >"$work/expected"
"$work/probe" "$work/libsome.so" list >"$work/found"
diff "$work/expected" "$work/found"
