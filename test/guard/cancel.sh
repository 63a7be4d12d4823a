#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# A program that cancels threads inside calls (test/guard/cancel_threads.c): no lock stays held, no other
# thread waits for ever, and the process ends as usual, in every mode. CANCEL_COUNT: how many are cancelled in
# each, 3000, or 100 where TEST_ALL is 0; GUARD_DEVICE=gpu: on a GPU.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu} count=3000
[ "${TEST_ALL:-1}" = 1 ] || count=100
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
for options in --mode={api,pages,canary,check,shadow,count,off} '--mode=api --heap'; do
    # An empty cache: modules are compiled, written and read.
    # shellcheck disable=SC2086
    XDG_CACHE_HOME=$T/cache timeout 120 "$MOAT" --device="$device" $options "$BUILD/tool/cancel_threads" \
        "${CANCEL_COUNT:-$count}" "$RANDOM" \
        >"$T/log" 2>&1 </dev/null
    status=$?
    if [ $status = 0 ] && grep -q ' cancelled, ' "$T/log" && ! grep -q 'ERROR' "$T/log"; then
        passed=$((passed + 1))
        echo "$options: $(grep ' cancelled, ' "$T/log")"
    else
        failed=$((failed + 1))
        echo "FAIL $options: status $status"
        tail -n 25 "$T/log" | sed 's/^/    | /'
    fi
    rm -rf "$T/cache"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
