#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Every row of heap_pairs.def and of pairs.cc: with libmoat-heap.so the bad program's error is reported, with
# its type, and the good one runs without output. HEAP_RUNS: how often the good ones run. A write of one byte
# is undetected if it writes what the canary has there already, so bad programs change the byte, or write an
# even one, as the first byte of a tail canary is odd. HEAP_AT_ONCE: how many rows run in parallel, 1 by
# default. SECTION=FILE: the results are written there.
set -u
here=$(dirname "$0")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
library=$(realpath "$BUILD/lib/libmoat-heap.so")
tool=$BUILD/tool/heap_pairs
runs=${HEAP_RUNS:-2}
at_once=${HEAP_AT_ONCE:-1}
[[ $at_once =~ ^[1-9][0-9]{0,3}$ ]] || {
    echo "heap_pairs: HEAP_AT_ONCE is a number from 1 to 9999, not $at_once" >&2
    exit 2
}
passed=0 failed=0 rows=0 names=()
fail() {
    failed=$((failed + 1))
    echo "$1"
    head -n 20 "$T/log" | sed 's/^/    | /'
}
run() {  # run MODE PROGRAM ARGS...
    local mode=$1
    shift
    MOAT_OPTIONS=heap-free=$mode LD_PRELOAD=$library timeout 60 "$@" >"$T/out" 2>"$T/log" </dev/null
}
check_row() {  # check_row PROGRAM NAME TYPE FOUND
    local mode i
    for mode in eager lazy; do
        run $mode "$1" bad "$2"
        if [ "$4" = NEVER ] || { [ "$4" = LAZY ] && [ $mode = eager ]; }; then
            :  # it may or may not be detected: nothing to check
        elif [ "$(grep -c '^==[0-9]*==ERROR: moat: ' "$T/log")" != 1 ] ||
            ! grep -q "ERROR: moat: $3 " "$T/log"; then
            fail "bad_$2 ($mode): not one report of $3"
            continue
        fi
        for ((i = 0; i < runs; i++)); do
            if ! run $mode "$1" good "$2" || [ -s "$T/log" ]; then
                fail "good_$2 ($mode): not silent"
                continue 2
            fi
        done
        passed=$((passed + 1))
    done
}
start_row() {  # start_row PROGRAM NAME TYPE FOUND: in a folder of its own, when a slot is free
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do
        wait -n
    done
    rows=$((rows + 1))
    names[rows]=$2
    mkdir "$T/$rows"
    (
        T=$T/$rows
        check_row "$@" >"$T/said"
        echo "$passed $failed" >"$T/counts"
    ) &
}
finish_rows() {  # prints their output, in their order
    local i counts
    wait
    for ((i = 1; i <= rows; i++)); do
        cat "$T/$i/said"
        if ! read -r -a counts 2>/dev/null <"$T/$i/counts"; then
            echo "${names[i]}: its run ended without a result"
            counts=(0 1)
        fi
        passed=$((passed + counts[0])) failed=$((failed + counts[1]))
    done
}
"$tool" list >"$T/rows" || exit 1
while read -r name _ type found; do
    start_row "$tool" "$name" "$type" "$found"
done <"$T/rows"
if command -v g++ >/dev/null; then
    g++ -std=c++17 -O0 -g -w -o "$T/pairs_cxx" "$here/pairs.cc" -pthread || exit 1
    "$T/pairs_cxx" list >"$T/rows_cxx"
    while read -r name _ type found; do
        start_row "$T/pairs_cxx" "$name" "$type" "$found"
    done <"$T/rows_cxx"
    cat "$T/rows_cxx" >>"$T/rows"
fi
finish_rows
# Whose head was overwritten as a whole has no size and no stack: the report says so, and only then.
lost='^note: its size and the place that allocated it were overwritten too$'
run eager "$tool" bad under_32_all
grep -q "$lost" "$T/log" || fail 'under_32_all: it is not said that the size is lost'
run eager "$tool" bad under_8
! grep -q "$lost" "$T/log" || fail 'under_8: the size is not lost'
echo "covered: $(wc -l <"$T/rows") pairs," \
    "$(grep -c NEVER "$T/rows") of them with an error that cannot be found (reads)"
{
    echo "## The heap's programs, with and without their errors"
    echo
    "$here/../../bench/machine"
    echo
    echo 'Programs with one planted heap error and their correct twins, eager and lazy;' \
        "each twin ran $runs times in each:"
    echo
    echo '| pairs | errors that cannot be found | passed | failed |'
    echo '| --- | --- | --- | --- |'
    echo "| $(wc -l <"$T/rows") | $(grep -c NEVER "$T/rows") | $passed | $failed |"
} >"${SECTION:-/dev/null}"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
