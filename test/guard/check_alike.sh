#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --check-variants=apart and together report the same errors with the same words: each wrong program of
# test/guard/check_errors.cu and check_spaces.cu is run both ways, and what is reported is compared, but for
# addresses and numbers of processes. On the CPU device, with one thread, so that the order is the same.
set -u
. test/guard/check.bash

words() {
    sed -E '/^ *watched$/,$d; s/==[0-9]+==//g; s/(process|thread|pid) [0-9]+/\1/g
        s/0x[0-9a-f]{6,}/ADDRESS/g; s/^.*[[:space:]]watching .*$//' "$T/log"
}
unset GUARD_DEVICE
apart=0 enough=40
# Where TEST_ALL is 0, every second program.
[ "${TEST_ALL:-0}" != 0 ] || enough=20
number=0
for program in '75 check_errors' '90 check_spaces'; do
    # shellcheck disable=SC2086
    compile $program
    program=$T/${program#* }
    list_cases "$program"
    while IFS=$'\t ' read -r name _; do
        number=$((number + 1))
        [ $enough = 40 ] || [ $((number % 2)) = 1 ] || continue
        run --check-variants=together --cpu-threads=1 "$program" bad "$name"
        words >"$T/together"
        first="$status $found"
        run --check-variants=apart --cpu-threads=1 "$program" bad "$name"
        words >"$T/apart"
        apart=$((apart + $(grep -c 'modules loaded unchanged, with checked variants' "$T/log")))
        [ "$first" = "$status $found" ] && grep -q 'ERROR: moat' "$T/apart" &&
            diff "$T/together" "$T/apart" >"$T/difference"
        alike=$?
        [ $alike = 0 ] || { echo 'together, and apart:'; head -n 20 "$T/difference"; }
        verdict $alike "$name is reported alike"
    done <"$T/cases"
done
# Else nothing was compared.
[ "$apart" -gt $((enough / 2)) ]
verdict $? "$apart programs had variants apart"
enough_cases $enough
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
