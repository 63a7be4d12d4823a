#!/bin/bash
# SPDX-License-Identifier: MIT
# Calls that moat refuses return what the driver itself would: test/guard/refusals.c with moat and, by
# --mode=off, without.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0

for state in $("$BUILD/tool/refusals" list); do
    timeout 60 "$MOAT" --device="$device" --mode=off "$BUILD/tool/refusals" "$state" \
        >"$T/off" 2>/dev/null </dev/null
    for mode in api pages canary; do
        timeout 60 "$MOAT" --device="$device" --mode=$mode --log-file="$T/log" "$BUILD/tool/refusals" \
            "$state" >"$T/on" </dev/null
        status=$?
        if [ $status = 97 ] && [ -s "$T/off" ] && diff "$T/off" "$T/on" >"$T/diff" &&
            grep -q heap-use-after-free "$T/log"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL $state in mode $mode: status $status"
            sed 's/^/    | /' "$T/diff"
        fi
    done
done

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
