#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# Kernels of Triton's for an sm_90, at the sizes at which it takes wgmma, tensor maps and warps of their own
# for loads: every pass rewrites their PTX, and Triton's assembler takes the result. With TEST_ALL=1 the
# passes whose texts are long are applied to the large kernels too.
set -u
# shellcheck source=test/python/common
. test/python/common
mkdir "$T/ptx"
"$PYTHON" test/python/triton_compile.py "$T/ptx" >"$T/log" 2>&1
status=$?
check 0 '^rows_fp16 .*wgmma.mma_async' 'products of the matrix units'
check 0 '^boxes_1 .*wgmma.mma_async cp.async.bulk.tensor mbarrier' 'tensor maps'
check 0 '^groups .*setmaxnreg' 'groups of warps'
check 0 '^sums .*cp.reduce.async.bulk' 'reductions of boxes'
check 0 '^rows_small .*mma.sync' 'products of a warp'
[ $failed = 0 ] || { finish; exit 1; }

# Triton has one assembler for each of two ranges of targets: the one that takes the original.
for ptxas in "$("$PYTHON" -c 'import os, triton
print(os.path.dirname(triton.__file__))')"/backends/nvidia/bin/ptxas*; do
    "$ptxas" -c -arch=sm_90a -o "$T/cubin" "$T/ptx/rows_small.ptx" >"$T/log" 2>&1 && break
done
assemble() {  # assemble PASS NAME
    "$MOAT" ptx instrument --pass="$1" "$T/ptx/$2.ptx" >"$T/new.ptx" 2>"$T/log" &&
        "$ptxas" -c -arch=sm_90a -o "$T/cubin" "$T/new.ptx" >>"$T/log" 2>&1
    status=$?
    echo assembled >>"$T/log"
    check 0 '^assembled' "$2: $1"
}
for file in "$T"/ptx/*.ptx; do
    name=$(basename "$file" .ptx)
    for pass in count kheap shadow; do
        assemble $pass "$name"
    done
    case $name in
        groups | sums | rows_small | rows_fp8e4nv | layer_norm) ;;
        *) [ "${TEST_ALL:-0}" = 1 ] || continue ;;
    esac
    for pass in check fence; do
        assemble $pass "$name"
    done
done
finish
