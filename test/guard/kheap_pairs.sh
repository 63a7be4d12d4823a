#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# malloc inside kernels under --mode=canary: each program of test/guard/kheap_errors.c must be reported as
# what it is, with bytes, buffer and kernel; its twin runs silently, many times over. If nvcc is there, or
# they were built before, also C++ objects, recursion and cooperative grids (kheap_objects.cu c++17), and the
# suite's device_heap.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device. SECTION=FILE: writes a table of the results there,
# with the time from the write to the report. PAIRS_OPTIONS and PAIRS_ROUNDS: see test/guard/pairs.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
"$MOAT" --kheap-arrays=32 --version >/dev/null 2>&1 ||
    { echo 'this moat leaves malloc inside kernels alone'; exit 77; }
rounds=100
[ "${TEST_ALL:-1}" = 1 ] || rounds=10
PAIRS_ROUNDS=${PAIRS_ROUNDS:-$rounds}
# shellcheck source=test/guard/pairs
. test/guard/pairs

lacks() {  # lacks LOG NAME TRAIT: prints what a report must show and does not
    local log=$1 name=$2 trait=$3
    if [ "$trait" = free ]; then
        grep -Eq 'Freed by thread \([0-9]+,0,0\) in block' "$log" || echo 'who freed is not said'
    else
        grep -q ' 1 byte outside any live buffer' "$log" || echo 'the byte is not shown'
        grep -Eq 'bytes? (after|before) [0-9]+-byte region' "$log" || echo 'no buffer is named'
    fi
    [[ $name == bad_free || $name == double_much_later ]] ||
        grep -q 'allocated by malloc in a kernel' "$log" ||
        echo 'who allocated is not said'
    grep -Eq '(in kernel|latest first:).*\<(write|flip|twice|both|give|use_objects|tree|grid)\>' "$log" ||
        echo 'the kernel is not named'
    grep -q 'heaps for malloc inside kernels' "$log" || echo 'the summary does not speak of the heap'
}

[ "${1:-}" != --one ] || pairs_one "${@:2}"
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export T

# Programs in CUDA: those that came with the package, or else built here.
compiled() {  # compiled NAME SOURCE STANDARD: its path, or nothing
    if [ "$GUARD_DEVICE" = gpu ] && [ -x "$BUILD/programs/$1" ]; then
        echo "$BUILD/programs/$1"
    elif command -v nvcc >/dev/null && [ "$GUARD_DEVICE" = cpu ]; then
        nvcc -std="$3" -gencode arch=compute_75,code=compute_75 -cudart shared \
            -L"$BUILD/lib/moat" -o "$T/$1" "$2" \
            >"$T/$1.log" 2>&1 && echo "$T/$1" || cat "$T/$1.log" >&2
    fi
}
objects=$(compiled kheap_objects test/guard/kheap_objects.cu c++17)
device_heap=$(compiled device_heap test/programs/device_heap.cu c++14)

for program in "$BUILD/tool/kheap_errors" $objects; do
    "$MOAT" --device="$GUARD_DEVICE" --mode=off "$program" list 2>/dev/null </dev/null | sed "s|^|$program |"
done >"$T/cases"
pairs_all

if [ -n "$device_heap" ]; then
    pairs_watch "$T/log" "$device_heap"
    [ "$status" = 0 ] && [ -z "$found" ] && grep -q 'heaps for malloc inside kernels' "$T/log"
    pairs_verdict $? 'device_heap of the suite'
else
    skipped=$((skipped + 1))
fi

# The monitor alone stops a program whose host does nothing.
pairs_watch "$T/log" --halt-on-error "$BUILD/tool/kheap_errors" bad host_idle
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ] && ! grep -q 'went on' "$T/log.out"
pairs_verdict $? --halt-on-error

# With as many arrays as allowed; and with the heap disabled: then nothing is rewritten and nothing found.
pairs_watch "$T/log" --kheap-arrays=128 "$BUILD/tool/kheap_errors" bad sequential_kernels
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ]
pairs_verdict $? --kheap-arrays=128
pairs_watch "$T/log" --no-kheap "$BUILD/tool/kheap_errors" bad sequential_kernels
[ "$status" = 0 ] && [ -z "$found" ] && ! grep -q 'modules rewritten' "$T/log"
pairs_verdict $? --no-kheap

# A program without malloc in its kernels is not rewritten.
pairs_watch "$T/log" "$BUILD/tool/canary_errors" good single 3
[ "$status" = 0 ] && ! grep -Eq 'modules rewritten|for malloc inside kernels' "$T/log"
pairs_verdict $? 'a program without malloc'

# A module that cannot be redirected beside one that is: the heaps do not mix, and moat says so. The CPU
# device has no machine code.
others=old
[ "$GUARD_DEVICE" = cpu ] || [ ! -e "$BUILD/programs/kheap.cubin" ] || others+=" $BUILD/programs/kheap.cubin"
for other in $others; do
    for order in last first; do
        pairs_watch "$T/log" "$BUILD/tool/kheap_foreign" "$other" $order
        [ "$status" = 0 ] && [ -z "$found" ] && grep -q 'from now on kernels use the driver' "$T/log" &&
            grep -Eq 'not redirected +1$' "$T/log" && grep -q ok "$T/log.out"
        pairs_verdict $? "a module that is not redirected and comes $order"
    done
done

# Together with --mode=count.
pairs_watch "$T/log" --mode=canary,count "$BUILD/tool/kheap_errors" bad single_kernel
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ] && grep -q 'kernels rewritten' "$T/log"
pairs_verdict $? --mode=canary,count

pairs_end
