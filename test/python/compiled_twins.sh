#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# Errors in kernels that run in functions of torch.compile: each is reported with the kernel, the program's
# own lines and the tensor; its correct twin runs silently, with right results.
set -u
# shellcheck source=test/python/common
. test/python/common
program=test/python/compiled_twins.py
export XDG_CACHE_HOME=$T/cache

line() {  # line WHAT CASE: the line with that mark
    grep -n "# $1: $2\$" $program | cut -d: -f1
}

twins() {  # twins CASE SUMMARY FRAME TENSOR
    # PyTorch's cache does not know that the global variable BAD has changed.
    TORCHINDUCTOR_CACHE_DIR=$T/bad watch compiled_twins.py -- "$1" bad
    check 97 "^SUMMARY: moat: heap-buffer-overflow $2\$" "$1: the kernel"
    check 97 "^    #[0-9] $3\$" "$1: the launch"
    check 97 "^note: the nearest tensor is $4" "$1: the tensor"
    check 97 'moat: 1 error$' "$1: one report"
    check 97 '^done' "$1: the program goes on"
    TORCHINDUCTOR_CACHE_DIR=$T/good watch compiled_twins.py -- "$1" good
    check 0 'moat: 0 errors' "$1: its twin"
    check 0 '^done' "$1: its twin's results"
    not 'kernel launches not checked|NOTHING WAS WATCHED' "$1: its twin"
    rm -rf "$T/good" "$T/bad"
}

copied="$T/bad/.*.py:[0-9]+ in silu"  # the file into which Inductor wrote the kernel
leaves='begins inside of it, at index \[8, 36\], and ends at index \[9, 0\], outside of it'
twins direct "$copied" "direct $program:[0-9]+" '`buf1`, argument x_ptr: float32, shape \[10, 33\]'
twins model "$copied" "model $program:[0-9]+" \
    "\`buf[0-9]+\`, argument x_ptr: float32, shape \[9, 37\], .*$leaves"
twins opaque "$program:$(line error opaque) in take" "rows $program:$(line launch opaque)" \
    '`table`, argument table_ptr: float32, shape \[30, 40\], .* at index \[30, 0\], outside of it'
twins resized "$T/bad/.* in triton_poi_fused_add_0" "resized $program:[0-9]+" \
    '`.*`, argument in_ptr0: .*; .* inside of it, at index \[8, 0\], but it is larger than the buffer'
finish
