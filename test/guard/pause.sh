#!/bin/bash
# SPDX-License-Identifier: MIT
# moat_pause (moat.h): calls of that time pass without a look, whichever way the program found them, and those
# before and after it are seen. Where a kernel's own code is rewritten, or without moat, nothing is paused.
# GUARD_DEVICE=gpu: on a GPU.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu} passed=0 failed=0
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache

check() {  # check LINE LAUNCHES OPTION...
    local line=$1 launches=$2 status counted
    shift 2
    timeout 60 "$MOAT" --device="$device" "$@" "$BUILD/tool/pause_calls" >"$T/log" 2>&1 </dev/null
    status=$?
    counted=$(sed -n 's/^ *kernel launches.*  *\([0-9][0-9]*\)$/\1/p' "$T/log" | head -n 1)
    if [ $status = 0 ] && grep -qx "$line" "$T/log" && [ "$counted" = "$launches" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $*: status $status"
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}

check 'seen 8' 8 --mode=api
check 'seen 8' 8 --mode=api --api-errors
check 'seen 8' 8 --mode=pages
check 'seen 8' 8 --mode=canary --no-kheap
check 'seen 8' 8 --mode=check --no-kheap
check 'not paused, seen 15' 15 --mode=count
check 'not paused, seen 15' '' --mode=off
echo "$passed passed, $failed failed"
[ $failed = 0 ]
