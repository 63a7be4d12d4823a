#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Errors that the arguments of a launch decide, under --mode=check: each wrong program of
# test/guard/check_certain.cu has one report, which is out before the launch and names kernel, line, thread
# and launch, however the launch goes on; where memory decides, the kernel reports. Correct twins are silent.
# With variants together and apart.
set -u
. test/guard/check.bash
compile 80 check_certain

before='note: reported before the kernel runs'
# one NAME TYPE [THREAD BLOCK] -- OPTION...: the wrong program has one report, with that thread before the
# launch
one() {
    local name=$1 type=$2 thread= early=0
    shift 2
    [ "$1" = -- ] || { thread="by thread $1 in block $2"; early=1; shift 2; }
    shift
    run "$@" "$T/check_certain" bad "$name"
    [ "$status $found" = "97 $type" ] && [ "$(grep -c 'ERROR: moat' "$T/log")" = 1 ] &&
        grep -q "$thread\$" "$T/log" && grep -q 'check_certain.cu:' "$T/log" &&
        grep -A 1 '^launched by' "$T/log" | grep -q "#0 $name(bool)" &&
        [ "$(grep -c "^$before" "$T/log")" = $early ]
    verdict $? "bad $name $*"
}

list_cases "$T/check_certain"
while IFS=$'\t ' read -r name type thread block; do
    run "$T/check_certain" good "$name"
    [ "$status $found" = '0 ' ]
    verdict $? "good $name"
    # shellcheck disable=SC2086
    one "$name" "$type" ${thread:+"$thread" "$block"} -- --check-variants=together
    # shellcheck disable=SC2086
    one "$name" "$type" ${thread:+"$thread" "$block"} -- --check-variants=apart
    [ -n "$thread" ] || continue
    one "$name" "$type" "$thread" "$block" -- --on-error=trap
    # The process ends where the error is found.
    run --halt-on-error "$T/check_certain" bad "$name"
    [ "$status $found" = "97 $type" ] && ! grep -q '^launched$' "$T/log"
    verdict $? "bad $name halts before its launch"
done <"$T/cases"
enough_cases 20
one behind heap-buffer-overflow -- --proofs=off
one behind heap-buffer-overflow '(104,0,0)' '(7,0,0)' -- --proofs=check
# The report counts what the kernels did, and nothing twice.
run "$T/check_certain" bad behind
grep -q 'report 1 was seen 3 times in all' "$T/log"
verdict $? 'three elements are counted as three'
run "$T/check_certain" bad reused
grep -q 'report 1 was seen 3 times in all' "$T/log"
verdict $? 'one element in three launches is counted as three'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
