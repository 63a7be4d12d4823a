#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=check: a buffer that is freed in the order of a stream while a kernel in another one uses it, and
# nothing orders the two, is reported with the launch and the free; whatever may order them is silent.
set -u
# Loading a kernel late would wait for the streams that the programs hold.
export CUDA_MODULE_LOADING=EAGER
. test/guard/check.bash
compile 75 check_races

run() {  # run bad|good NAME
    timeout "${CHECK_LIMIT:-60}" "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=check "$T/check_races" "$@" \
        >"$T/log" 2>&1 </dev/null
    status=$?
    find_types "$T/log" all
}

is_told() {  # the report has both stacks
    grep -q "in kernel .*fill(" "$T/log" &&
        grep -q '^WRITE of size 4 by an unknown thread' "$T/log" &&
        grep -q "^launched by cuLaunchKernel at:" "$T/log" &&
        grep -q '^allocated by cuMemAllocAsync' "$T/log" &&
        grep -q '^freed by cuMemFreeAsync at:' "$T/log" &&
        grep -q '^note: the kernel had not ended when the buffer was freed' "$T/log"
}

list_cases "$T/check_races"
while IFS=$'\t' read -r name types; do
    run good "$name"
    [ "$status" = 0 ] && [ -z "$found" ]
    verdict $? "good $name"
    [ -n "$types" ] || continue
    run bad "$name"
    [ "$status" = 97 ] && [ "$found" = "$types" ] && is_told
    verdict $? "bad $name"
done <"$T/cases"
enough_cases 15
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
