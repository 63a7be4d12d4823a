#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Kernels as NVRTC compiles them, through parse and print. Needs no GPU.
set -u
command -v ptxas >/dev/null || { echo 'no ptxas on this machine'; exit 77; }
library=$(ls "$(dirname "$(readlink -f "$(command -v ptxas)")")"/../lib64/libnvrtc.so.[0-9]* 2>/dev/null |
    head -n 1)
[ -n "$library" ] || { echo 'no NVRTC on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
# clang's names of CUDA's built-ins are not NVRTC's.
sed 's/__nvvm_atom_add_gen_i/atomicAdd/; s/__builtin_trap/__trap/; s/__builtin_sqrt/sqrt/
    s/__builtin_popcount/__popc/; s/__builtin_clz/__clz/
    s/^typedef float float4_t.*/typedef float4 float4_t;/
    s/v\[t\] = v\[t\] \* by + by.wzyx;/v[t].x = v[t].y * by.x + by.w;/' \
    test/clang/kernels.cu >"$T/kernels.cu"
for arch in compute_75 compute_90 compute_100 compute_120; do
    python3 test/ptx/jit/nvrtc.py "$library" $arch "$T/kernels.cu" "$T/$arch.ptx" || exit 1
    test/ptx/roundtrip-one "nvrtc-$arch" "$T/$arch.ptx" && passed=$((passed + 1)) || failed=$((failed + 1))
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
