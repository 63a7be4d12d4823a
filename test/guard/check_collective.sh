#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# --mode=check and what blocks and clusters do together: each program of test/guard/check_collective.cu must
# be reported as what it is, with kernel, line and thread; its twin runs silently and checked.
set -u
. test/guard/check.bash
compile 90a check_collective

lacks() {  # lacks NAME: prints what a report should show and does not
    [ "$1" != tensor_encoded ] || return
    grep -q 'in kernel .* .*check_collective.cu:[0-9]' "$T/log" || echo 'the line is not named'
    grep -Eq '^(READ|WRITE) of size [0-9]+ by thread \([0-9]+,0,0\) in block' "$T/log" ||
        echo 'the thread is not named'
    grep -q '^launched by cuLaunchKernel' "$T/log" || echo 'the launch is not shown'
    [[ $found != heap-* ]] || grep -q '^allocated by' "$T/log" || echo 'no allocation'
    # A copy writes to its other end.
    ! grep -q 'the same line also writes to this address' "$T/log" || echo 'it is said to write there, too'
}

list_cases "$T/check_collective"
while IFS=$'\t' read -r name types; do
    run "$T/check_collective" good "$name"
    [ "$status" = 0 ] && [ -z "$found" ] && [[ $name = tensor_encoded ]] ||
        { grep -q 'kernel launches checked' "$T/log" && ! grep -q 'kernel launches not checked' "$T/log" &&
            [ "$status" = 0 ] && [ -z "$found" ]; }
    verdict=$?
    # A device that refuses the program without moat, too, says so.
    [ $verdict = 0 ] || [ "${GUARD_DEVICE:-cpu}" != gpu ] || {
        timeout "${CHECK_LIMIT:-60}" "$T/check_collective" good "$name" >"$T/alone" 2>&1 </dev/null
        more="; without moat: status $? $(tail -n 1 "$T/alone")"
    }
    verdict $verdict "good $name"
    more=
    run "$T/check_collective" bad "$name"
    missing=$(lacks "$name" | paste -sd ,)
    [ "$status" = 97 ] && [[ $found =~ ^($types)$ ]] && [ -z "$missing" ]
    verdict $? "bad $name${missing:+ ($missing)}"
done <"$T/cases"
# The driver's compiler takes what is loaded.
if command -v ptxas >/dev/null && command -v nvlink >/dev/null; then
    timeout 60 "$MOAT" --device=cpu --mode=check --dump-rewritten="$T/dump" "$T/check_collective" good \
        tensor_from >"$T/log" 2>&1 </dev/null
    {
        printf '.version 8.0\n.target sm_90a\n.address_size 64\n'
        sed -n 's/^"\(.*\)\\n"$/\1/p' src/kcheck/kcheck_functions.inc | sed 's/\\\(["\\]\)/\1/g'
    } >"$T/judge.ptx"
    ptxas -arch=sm_90a -c -maxrregcount 32 "$T/judge.ptx" -o "$T/judge.cubin" >"$T/log" 2>&1 &&
        ptxas -arch=sm_90a -c "$T"/dump/*.ptx -o "$T/cubin" >>"$T/log" 2>&1 &&
        nvlink -arch=sm_90a "$T/cubin" "$T/judge.cubin" -o "$T/linked" >>"$T/log" 2>&1
    verdict $? 'what is loaded compiles for sm_90a'
fi
enough_cases 6
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
