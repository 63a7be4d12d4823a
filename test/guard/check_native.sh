#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# What moat adds to kernels is executed in C on the CPU device, and nothing is different but the time: the
# functions of the heap and of the judge are recognised in what moat makes of a program, and each program of
# check_kheap.cu, wrong and right, is reported with the same words with --cpu-native and without. With one
# thread, so that each block does the same.
set -u
. test/guard/check.bash
compile 75 check_kheap
program=$T/check_kheap
unset GUARD_DEVICE

run --dump-rewritten="$T/dump" "$program" good list
"$BUILD/tool/native_bound" "$T"/dump/*.ptx | sort | tr '\n' ' ' >"$T/bound"
heap='moat_kheap_aligned moat_kheap_free moat_kheap_malloc '
[ "$(cat "$T/bound")" = "moat_check_access moat_check_bounds moat_check_enter $heap" ]
verdict $? "executed in C: $(cat "$T/bound")"
# Another version's text is not the one that was offered.
sed -i 's/xor\.b64/or.b64/' "$T"/dump/*.ptx
"$BUILD/tool/native_bound" "$T"/dump/*.ptx | grep -c kheap >"$T/bound"
[ "$(cat "$T/bound")" = 0 ]
verdict $? "with another text: $(cat "$T/bound")"

# Prints each report as a line, sorted: records are taken while the kernel runs, and in some runs one report
# came later than in others.
words() {
    sed -E '/^ *watched$/,$d; s/==[0-9]+==//g; s/(process|thread|pid) [0-9]+/\1/g; s/^Report [0-9]+/Report/
        s/0x[0-9a-f]{6,}/ADDRESS/g; s/^.*[[:space:]]watching .*$//' "$T/log" |
        awk 'BEGIN { RS = "" } { gsub("\n", " | "); print }' | sort
}

compare() {  # compare WHAT OPTION...
    run --cpu-native --cpu-threads=1 "${@:2}"
    words >"$T/native"
    first="$status $found"
    run --no-cpu-native --cpu-threads=1 "${@:2}"
    words >"$T/ptx"
    [ "$first" = "$status $found" ] && diff "$T/native" "$T/ptx" >"$T/difference"
    alike=$?
    [ $alike = 0 ] || { echo 'native, and as PTX:'; head -n 20 "$T/difference" | cut -c -400; }
    verdict $alike "$1 is reported alike"
}

list_cases "$program"
while IFS=$'\t' read -r name _; do
    compare "bad $name" "$program" bad "$name"
    grep -q 'ERROR: moat' "$T/native" || verdict 1 "bad $name is reported"
    compare "good $name" "$program" good "$name"
    compare "bad $name, with canaries" --mode=check,canary "$program" bad "$name"
done <"$T/cases"
enough_cases 36
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
