#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The runtime over a driver that does nothing, and over none.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=$BUILD/tool/fake_driver

${CC:-cc} -std=gnu11 -fPIC -shared -I "$here/../../src" "$here/fake/libcuda.c" \
    -Wl,-soname,libcuda.so.1 -pthread -o "$work/libcuda.so.1"
LD_LIBRARY_PATH=$work "$program" calls 2>"$work/said"
printf '%s\n' 'moat: the CUDA driver does not have cuCtxResetPersistingL2Cache' \
    'moat: this CUDA runtime does not have cudaGLSetGLDevice' >"$work/expected"
diff "$work/expected" "$work/said"

# 100 is cudaErrorNoDevice, 35 cudaErrorInsufficientDriver.
LD_LIBRARY_PATH=$work FAKE_NO_DEVICE=1 "$program" error 100
LD_LIBRARY_PATH=$work FAKE_VERSION=12080 "$program" error 35
echo 'not a library' >"$work/libcuda.so.1"
LD_LIBRARY_PATH=$work "$program" error 35
