#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# --mode=check and memory that is not global: each program of test/guard/check_spaces.cu must be reported as
# what it is, with kernel, line, thread, and the variable that was left; its twin runs silently and checked.
set -u
. test/guard/check.bash
compile 90 check_spaces

lacks() {  # lacks NAME: prints what a report should show and does not
    grep -q 'in kernel .* .*check_spaces.cu:[0-9]' "$T/log" || echo 'the line is not named'
    grep -Eq '^(READ|WRITE) of size [0-9]+ by thread \([0-9]+,0,0\) in block' "$T/log" ||
        echo 'the thread is not named'
    grep -q '^launched by cuLaunchKernel at:' "$T/log" || echo 'the launch is not shown'
    [[ $1 == misaligned_* ]] && ! grep -q '^note: an access of [0-9]* bytes needs' "$T/log" &&
        echo 'the alignment is not named'
    [[ $found != heap-* ]] || grep -q '^allocated by' "$T/log" || echo 'no allocation'
    [[ $1 == shared_either || $1 == misaligned_* || $found == heap-* ]] ||
        grep -Eq '^note: it (is located|starts in) .* (of [0-9]+ bytes|before its end)$' "$T/log" ||
        echo 'the variable is not named'
}

list_cases "$T/check_spaces"
while IFS=$'\t' read -r name types; do
    run "$T/check_spaces" good "$name"
    [ "$status" = 0 ] && [ -z "$found" ] && grep -q 'kernel launches checked' "$T/log" &&
        ! grep -q 'kernel launches not checked' "$T/log"
    verdict $? "good $name"
    run "$T/check_spaces" bad "$name"
    missing=$(lacks "$name" | paste -sd ,)
    [ "$status" = 97 ] && [[ $found =~ ^($types)$ ]] && [ -z "$missing" ]
    verdict $? "bad $name${missing:+ ($missing)}"
done <"$T/cases"
enough_cases 16
run "$T/check_spaces" bad shared_neighbour
grep -q '^note: it is located 0 bytes after the shared variable .*tile of 256 bytes' "$T/log"
verdict $? 'the text of a report'
run "$T/check_spaces" bad local_array
grep -q "^note: it is located .* after the function's local variables of [0-9]* bytes" "$T/log"
verdict $? 'the text for local memory'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
