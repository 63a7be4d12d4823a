#!/bin/bash
# SPDX-License-Identifier: MIT
# Errors of Triton's kernels in Python's terms: the line of the kernel, the line of the launch, the tensor.
set -u
# shellcheck source=test/python/common
. test/python/common
program=test/python/triton_bounds.py
load=$(grep -n 'line of the bad load' $program | cut -d: -f1)
launch=$(grep -n 'line of the launch' $program | cut -d: -f1)

pages=(--mode=pages --torch-alloc --pages-own=1 --pages-align=16)
described=$(grep -n "line of the bad descriptor's load" $program | cut -d: -f1)

watch "${pages[@]}" triton_bounds.py -- bad load
check 97 "heap-buffer-overflow on device 0 address 0x[0-9a-f]+ in kernel scale .*:$load\$" 'the kernel'
check 97 'READ of size' 'a load'
check 97 "#0 main .*triton_bounds.py:$launch\$" 'the launch'
check 97 'is `weights`, argument source_ptr: float32, shape \[25, 40\], strides \[40, 1\]; ' 'the tensor'
check 97 '; the access is at index \[25, 0\], outside of it' 'the index'
check 97 'AcceleratorError' 'PyTorch raises its error'
check 97 "line $launch, in main" 'at the launch'
watch "${pages[@]}" triton_bounds.py -- bad store
check 97 'WRITE of size' 'a store'
check 97 'is `result`, argument target_ptr' 'its tensor'
for where in load store before; do
    watch "${pages[@]}" triton_bounds.py -- good $where
    check 0 '^sum 2000' "the twin: $where"
    not 'ERROR' "the twin: $where"
done
watch --mode=canary triton_bounds.py -- bad store
check 97 'heap-buffer-overflow' 'a store, by canaries: each tensor is a buffer of its own'
watch "${pages[@]}" --format=json triton_bounds.py -- bad load
check 97 '"function": *"main"' 'the Python frame in JSON'

# Both: what check compares is exact, and what it does not, as a map that another kernel made, faults behind
# the tensor's page. A box is compared as a whole, from its first element on; a fault is at the first element
# that is not there.
watch --tensors triton_bounds.py -- bad before
check 97 'the access is 4 elements before its first' '--tensors: a load before the tensor'
check 97 '^sum 1992' '--tensors: the program goes on'
watch --tensors triton_bounds.py -- bad described
check 97 "in kernel double .*:$described\$" '--tensors: a descriptor with too many rows'
# Two blocks have such a box; either may be the first.
box='begins inside of it, at index \[32, (0|64)\], and ends at index \[63, [0-9]+\], outside of it'
check 97 "is \`table\`, argument source_ptr: .*; the access $box" 'its tensor'
watch --tensors triton_bounds.py -- good described
check 0 '^sum 12288' '--tensors: its twin'
not 'ERROR' '--tensors: its twin'
watch "${pages[@]}" triton_bounds.py -- bad described
check 97 'is `table`, argument source_ptr: .*; the access is at index \[48, (0|64)\], ' 'pages: its tensor'

alloc=$(grep -n 'line of the allocation' $program | cut -d: -f1)
watch --mode=check triton_bounds.py -- bad load
check 97 "heap-buffer-overflow on device 0 address 0x[0-9a-f]+ in kernel scale .*:$load\$" 'check: the kernel'
check 97 "#0 main .*triton_bounds.py:$launch\$" 'check: the launch'
check 97 "#0 main .*triton_bounds.py:$alloc\$" 'check: the allocation'
check 97 'is `weights`, argument source_ptr: float32, shape \[25, 40\], strides \[40, 1\]; ' 'its tensor'
check 97 '; the access is at index \[25, 0\], outside of it' 'check: the index'
check 97 '^sum 2000' 'check: the program goes on'
watch --mode=check triton_bounds.py -- bad before
check 97 'the access is 4 elements before its first' 'check: a load before the tensor'
watch --mode=check triton_bounds.py -- bad described
check 97 "in kernel double .*:$described\$" 'check: a descriptor that the kernel makes, with too many rows'
check 97 'is `table`, argument source_ptr: ' 'check: its tensor'
watch --mode=check triton_bounds.py -- good described
check 0 '^sum 12288' 'check: its twin'
not 'ERROR' 'check: its twin'
watch --mode=check triton_bounds.py -- good load
check 0 '^sum 2000' 'check: the twin'
not 'ERROR' 'check: the twin'

# A program whose own folder has the name of a package.
mkdir -p "$T/triton" && cp $program "$T/triton"
program=$T/triton/${program##*/}
timeout 600 "$MOAT" --device=cpu --mode=check "$PYTHON" "$program" bad load >"$T/log" 2>&1 </dev/null
status=$?
check 97 "#0 main .*triton_bounds.py:$launch\$" 'the launch, of a program in a folder called triton'
check 97 "#0 main .*triton_bounds.py:$alloc\$" 'its allocation'

watch --mode=api after_fault.py
check 97 '^raised AcceleratorError' 'a launch whose kernel has failed raises'
check 97 '^capturing False' 'its stream is not being captured'
finish
