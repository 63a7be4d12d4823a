#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --heap-signals (heap_signals_check.c): an overflow is reported when a signal follows at once; the program's
# handlers, its output and the way it ends are as they are without the heap.
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
library=$(realpath "$BUILD/lib/libmoat-heap.so")
tool=$BUILD/tool/heap_signals_check
passed=0 failed=0
fail() {
    failed=$((failed + 1))
    echo "$1"
    head -n 20 "$T/log" | sed 's/^/    | /'
}
run() {  # run OPTIONS WAY...: the status in $status
    local options=$1
    shift
    MOAT_OPTIONS=$options LD_PRELOAD=$library timeout 60 "$tool" "$@" >"$T/out" 2>"$T/log" </dev/null
    status=$?
}
mapfile -t ways < <("$tool")
[ ${#ways[@]} -gt 5 ] || { echo 'no ways'; exit 1; }
for way in "${ways[@]}"; do
    "$tool" "$way" >"$T/wanted" 2>/dev/null
    wanted=$?
    for bug in '' bug; do
        run heap-signals "$way" $bug
        reports=$(grep -c 'ERROR: moat: heap-buffer-overflow' "$T/log")
        expected=${bug:+1}
        [ $way != small_stack ] || expected=  # there is no room for a check
        if [ $status != $wanted ] || ! cmp -s "$T/out" "$T/wanted"; then
            fail "$way $bug: status $status, $wanted without the heap, or other output"
        elif [ "$reports" != "${expected:-0}" ]; then
            fail "$way $bug: $reports reports"
        else
            passed=$((passed + 1))
        fi
    done
done
run '' default bug
if [ $status = 139 ] && ! grep -q 'ERROR: moat' "$T/log"; then
    passed=$((passed + 1))
else
    fail "without the option a handler is there: status $status"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
