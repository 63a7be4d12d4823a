#!/bin/bash
# SPDX-License-Identifier: MIT
# Memory that two processes share by cuIpcGetMemHandle (test/guard/share_pair.c), plain and in every mode that
# places buffers.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0

run() {  # run TWIN MODE STATUS [OPTION]
    timeout 60 "$MOAT" --device="$device" --mode="$2" ${4:+"$4"} "$BUILD/tool/share_pair" "$1" \
        >"$T/log" 2>&1 </dev/null
    local status=$?
    if [ $status = "$3" ] && { [ "$1" = good ] || grep -q 'ERROR: moat: heap-buffer-overflow' "$T/log"; } &&
        { [ "$2" = api ] || { grep -q 'what was freed is gone' "$T/log" &&
            grep -q 'shared by cuIpcGetMemHandle with' "$T/log"; }; }; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1, $2 ${4:-}: status $status"
        tail -n 25 "$T/log" | sed 's/^/    | /'
    fi
}

for mode in api pages canary; do
    run good "$mode" 0
    run bad "$mode" 97
done
run good canary 0 --canary-memory=plain
run bad canary 97 --canary-memory=plain
echo "$passed passed, $failed failed"
[ $failed = 0 ]
