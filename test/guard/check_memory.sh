#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# --mode=check and memory of every kind, and blocks that a pool announces: each program of
# test/guard/check_memory.cu must be reported as what it is, with kernel, line, thread and buffer; its twin
# runs silently and checked, and no access is left to chance. GUARD_DEVICE=gpu: on a GPU.
set -u
. test/guard/check.bash
compile 75 check_memory -Iinclude -lcuda
program=$T/check_memory

lacks() {  # lacks NAME: prints what a report should show and does not
    grep -q 'in kernel .* .*check_memory.cu:[0-9]' "$T/log" || echo 'the line is not named'
    grep -Eq '^(READ|WRITE) of size 4 by thread \(0,0,0\) in block' "$T/log" || echo 'the thread is not named'
    grep -q '^launched by cuLaunchKernel at:' "$T/log" || echo 'the launch is not shown'
    grep -Eq '^0x[0-9a-f]+ is located [0-9]+ bytes (after|before|inside) [0-9]+-byte region' "$T/log" ||
        echo 'the buffer is not named'
    [[ $1 != announced_* && $1 != into_* && $1 != between && $1 != withdrawn ]] ||
        grep -q 'is located [0-9]* bytes [a-z]* 1000-byte .* named \(activations\|left\|right\)' "$T/log" ||
        echo 'the announced block is not named'
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
enough_cases 30
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
