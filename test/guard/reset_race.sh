#!/bin/bash
# SPDX-License-Identifier: MIT
# A thread resets the device while four others allocate and free (reset_race.c): in every mode the program
# goes on, with errors of the driver, and ends. Of reports, only those of frees that came after a reset are
# right. The same with launches and stream-ordered memory. GUARD_DEVICE=gpu: on a GPU, where what the driver
# alone cannot do in each of five runs is skipped. RESET_RACE_SECONDS: how long each run takes; 1, or 0.3
# where TEST_ALL is 0. reset_race.sh MODE...: these modes only, behind off.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
[ "${TEST_ALL:-1}" = 0 ] && usual=0.3 || usual=1
device=${GUARD_DEVICE:-cpu} seconds=${RESET_RACE_SECONDS:-$usual} passed=0 failed=0 skipped=0
[ "$device" = cpu ] || nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT

race() {  # race MODE WHAT...
    rm -f "$T/log"
    timeout -k 5 $((${seconds%.*} * 10 + 30)) "$MOAT" --device="$device" --mode="$1" --log-file="$T/log" \
        "$BUILD/tool/reset_race" "$seconds" "${@:2}" >"$T/out" 2>&1 </dev/null
    status=$?
    others=$(sed -nE 's/.*ERROR: moat: ([a-z-]+).*/\1/p' "$T/log" 2>/dev/null |
        grep -Evx '(bad|double)-free' | sort | uniq -c)
}

went_well() {
    { [ $status = 0 ] || [ $status = 97 ]; } && [ -z "$others" ] && grep -q 'rounds, .* resets' "$T/out"
}

driver_fails() {  # driver_fails WHAT...: in one of four more runs
    for _ in 1 2 3 4; do
        race off "$@"
        went_well || return 0
    done
    return 1
}

all() {  # all WHAT...: in each mode
    local mode
    for mode in off "${modes[@]}"; do
        race "$mode" "$@"
        if went_well; then
            passed=$((passed + 1))
            continue
        fi
        echo "--mode=$mode $*: status $status"
        { echo "$others"; tail -n 20 "$T/out" "$T/log"; } 2>/dev/null | sed 's/^/    | /'
        if [ "$device" = gpu ] && { [ "$mode" = off ] || driver_fails "$@"; }; then
            echo "the driver alone cannot do this: $* (status $status)"
            skipped=$((skipped + 1))
            return
        fi
        echo "FAIL --mode=$mode $*"
        failed=$((failed + 1))
    done
}

[ $# -gt 0 ] && modes=("$@") || modes=(api canary pages count check shadow)
all
all launch
all launch order
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
