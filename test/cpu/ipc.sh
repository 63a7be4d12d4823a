#!/bin/bash
# SPDX-License-Identifier: MIT
# Two processes that share memory, events and pools of the CPU device: with the library's code in the program itself,
# where a sanitizer sees it, and by `moat`, unwatched and watched.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0

try() {  # try WHAT COMMAND...
    local what=$1 start=${EPOCHREALTIME/./} status
    shift
    timeout 100 "$@" >"$T/log" 2>&1 </dev/null
    status=$?
    if [ $status = 0 ] && grep -q 'first: ok' "$T/log" && grep -q 'second: ok' "$T/log"; then
        passed=$((passed + 1))
        echo "ok   $what ($(((${EPOCHREALTIME/./} - start) / 1000)) ms)"
    else
        failed=$((failed + 1))
        echo "FAIL $what: status $status"
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}

try 'the library in it' "$BUILD/tool/ipc_pair"
if ! grep -q fsanitize "$BUILD/flags" 2>/dev/null; then
    cc -std=gnu11 -D_GNU_SOURCE -Isrc -o "$T/ipc_pair" test/cpu/ipc_pair.c -L"$BUILD/lib/moat" -lcuda -pthread || exit 1
    try '--mode=off' "$MOAT" --device=cpu --mode=off "$T/ipc_pair"
    try '--mode=off --cpu-devices=2' "$MOAT" --device=cpu --mode=off --cpu-devices=2 "$T/ipc_pair"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
