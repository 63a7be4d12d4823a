#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# --mode=check and memory from malloc and new in kernels: each program of test/guard/check_kheap.cu must be
# reported as what it is, with kernel, line, thread and block; its twin runs silently and checked, and no
# access is left to chance. GUARD_DEVICE=gpu: on a GPU.
set -u
. test/guard/check.bash
compile 75 check_kheap
program=$T/check_kheap

lacks() {  # lacks NAME: prints what a report should show and does not
    grep -q 'in kernel .* .*check_kheap.cu:[0-9]' "$T/log" || echo 'the line is not named'
    if [[ $found == *-free && $found != heap-* ]]; then
        grep -Eq '^Freed by thread \([0-9]+,0,0\) in block' "$T/log" || echo 'who freed is not said'
    else
        grep -Eq '^(READ|WRITE) of size [0-9]+ by thread \([0-9]+,0,0\) in block' "$T/log" ||
            echo 'the thread is not named'
    fi
    # A function that kernels call does not know by which launch.
    [ "$1" = objects ] || grep -q '^launched by cuLaunchKernel at:' "$T/log" || echo 'the launch is not shown'
    [[ $found == wild-access || $1 == not_from_malloc ]] ||
        grep -q '^allocated by malloc in a kernel' "$T/log" || echo 'who allocated is not said'
    [[ $found != *after-free && $found != double-free ]] || grep -q '^freed by free in a kernel' "$T/log" ||
        echo 'who freed is not said'
}

list_cases "$program"
while IFS=$'\t' read -r name types; do
    run "$program" good "$name"
    [ "$status" = 0 ] && [ -z "$found" ] && grep -q 'kernel launches checked' "$T/log" &&
        ! grep -q 'kernel launches not checked\|whose allocation moat did not see' "$T/log"
    verdict $? "good $name"
    run "$program" bad "$name"
    missing=$(lacks "$name" | paste -sd ,)
    [ "$status" = 97 ] && [[ $found =~ ^($types)$ ]] && [ -z "$missing" ]
    verdict $? "bad $name${missing:+ ($missing)}"
done <"$T/cases"
enough_cases 24

run "$program" bad list
grep -Eq ' is located 0 bytes after 20-byte region ' "$T/log"
verdict $? 'the bounds of a block'

# With canaries too, and without the heap.
run --mode=check,canary "$program" bad list
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ]
verdict $? 'with canaries'
run --no-kheap "$program" bad list
[ "$status" = 0 ] && [ -z "$found" ]
verdict $? --no-kheap
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
