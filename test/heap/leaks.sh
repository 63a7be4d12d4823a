#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Memory that is in use when a process ends is no leak (heap_leaks_check.c), whatever threads do meanwhile;
# one leaked block is reported. LEAK_RUNS: how often each way runs; 10 times, or 2 where TEST_ALL is 0.
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
library=$(realpath "$BUILD/lib/libmoat-heap.so")
tool=$BUILD/tool/heap_leaks_check
passed=0 failed=0 runs=10
[ "${TEST_ALL:-1}" != 0 ] || runs=2
run() {
    MOAT_OPTIONS=leak-check LD_PRELOAD=$library timeout 60 "$tool" "$1" >"$T/out" 2>"$T/log" </dev/null
}
fail() {
    failed=$((failed + 1))
    echo "$1"
    head -n 20 "$T/log" | sed 's/^/    | /'
}
mapfile -t ways < <("$tool")
[ ${#ways[@]} -gt 3 ] || { echo 'no ways'; exit 1; }
for way in "${ways[@]}"; do
    flagged=0
    for ((i = 0; i < ${LEAK_RUNS:-$runs}; i++)); do
        if run "$way" && [ ! -s "$T/log" ]; then
            passed=$((passed + 1))
        else
            flagged=$((flagged + 1))
            cp "$T/log" "$T/first"
        fi
    done
    if [ $flagged != 0 ]; then
        cp "$T/first" "$T/log"
        fail "$way: $flagged runs are not silent"
    fi
    run "$way+bug"
    if [ "$(grep -c '^==[0-9]*==ERROR: moat: memory-leak' "$T/log")" = 1 ] &&
        grep -q '^77 bytes in 1 buffer' "$T/log"; then
        passed=$((passed + 1))
    else
        fail "$way+bug: the leak is not reported once"
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
