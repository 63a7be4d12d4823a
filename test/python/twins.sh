#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# Errors that authors of Triton's kernels make: each is reported under the command without options with the
# kernel's function and line, the line of the launch, and the tensor with its name, type, shape and the index;
# its correct twin runs silently.
set -u
# shellcheck source=test/python/common
. test/python/common
program=test/python/triton_twins.py
export XDG_CACHE_HOME=$T/cache

line() {  # line WHAT CASE: the line with that mark
    grep -n "# $1: $2\$" $program | cut -d: -f1
}

twins() {  # twins CASE KIND KERNEL [TENSOR PLACE]
    local error launch
    error=$(line error "$1")
    launch=$(line launch "$1")
    watch triton_twins.py -- "$1" bad
    check 97 "ERROR: moat: $2 on device 0 address .* in kernel $3 $program:$error\$" "$1: the kernel"
    check 97 "^    #0 $1 $program:$launch\$" "$1: the launch"
    check 97 "^allocated by " "$1: the allocation"
    [ -z "${4:-}" ] || check 97 "^note: the nearest tensor is $4, .*; the access (is )?$5" "$1: the tensor"
    not 'the same line also writes' "$1"
    check 97 '^done' "$1: the program goes on"
    watch triton_twins.py -- "$1" good
    check 0 'moat: 0 errors' "$1: its twin"
}

over=heap-buffer-overflow under=heap-buffer-underflow freed=heap-use-after-free out='outside of it'
twins mask $over add '`left`, argument x_ptr: float32, shape \[3000\]' "at index \[3000\], $out"
twins inclusive $over clamp '`scores`, argument x_ptr: float32, shape \[999\]' "at index \[999\], $out"
twins stride $over softmax '`logits`, argument in_ptr: float32, shape \[60, 100\]' "at index \[6.*\], $out"
twins grid $over multiply '`weights`, argument a_ptr: float16, shape \[64, 128\]' "at index \[64, 0\], $out"
twins dtype $over fill '`ones`, argument out_ptr: float16, shape \[1000\]' "at index \[1000\], $out"
twins freed $freed copy_from
twins table $freed gather_rows
twins atomic $over count '`bins`, argument bins_ptr: int32, shape \[16\]' "at index \[16\], $out"
twins short $over norm '`gains`, argument weight_ptr: float32, shape \[256\]' "at index \[256\], $out"
twins attention $over attend '`keys`, argument k_ptr: float16, shape \[100, 64\]' "at index \[1.*, $out"
twins descriptor $over double '`images`, argument source: float32, shape \[48, 128\]' \
    'begins inside of it, at index \[32, (0|64)\], and ends at index \[63, [0-9]+\], outside of it'
twins before $under shift '`samples`, argument x_ptr: float32, shape \[1000\]' '1 element before its first'
twins scatter $over scatter_to '`table`, argument out_ptr: float32, shape \[20, 10\]' "at index \[30, 0\]"
finish
