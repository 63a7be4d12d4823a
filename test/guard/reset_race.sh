#!/bin/bash
# SPDX-License-Identifier: MIT
# A thread resets the device while four others allocate and free (reset_race.c): in every mode the program
# goes on, with errors of the driver, and ends. Of reports, only those of frees that came after a reset are
# right. The same with launches and stream-ordered memory. GUARD_DEVICE=gpu: on a GPU, where the driver alone
# can do it. RESET_RACE_SECONDS: how long each run takes; 1, or 0.3 where TEST_ALL is 0.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
[ "${TEST_ALL:-1}" = 0 ] && usual=0.3 || usual=1
device=${GUARD_DEVICE:-cpu} seconds=${RESET_RACE_SECONDS:-$usual} passed=0 failed=0 skipped=0
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT

race() {  # race MODE WHAT...
    timeout $((${seconds%.*} * 10 + 30)) "$MOAT" --device="$device" --mode="$1" --log-file="$T/log" \
        "$BUILD/tool/reset_race" \
        "$seconds" "${@:2}" >"$T/out" 2>&1 </dev/null
    status=$?
    others=$(sed -nE 's/.*ERROR: moat: ([a-z-]+).*/\1/p' "$T/log" 2>/dev/null |
        grep -Evx '(bad|double)-free' | sort | uniq -c)
}

all() {  # all WHAT...: in each mode
    local mode
    for mode in off api canary pages count check shadow; do
        race "$mode" "$@"
        if { [ $status = 0 ] || [ $status = 97 ]; } && [ -z "$others" ] &&
            grep -q 'rounds, .* resets' "$T/out"; then
            passed=$((passed + 1))
        elif [ "$mode" = off ] && [ "$device" = gpu ]; then
            echo "the driver alone cannot do this: $* (status $status)"
            skipped=$((skipped + 1))
            return
        else
            failed=$((failed + 1))
            echo "FAIL --mode=$mode $*: status $status"
            { echo "$others"; tail -n 20 "$T/out" "$T/log"; } 2>/dev/null | sed 's/^/    | /'
        fi
    done
}

all
all launch
all launch order
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
