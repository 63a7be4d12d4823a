#!/bin/bash
# SPDX-License-Identifier: MIT
# --fill=BYTE: memory of every family is full of the byte when the program gets it (fill.c), in every mode,
# and nothing is reported for that; without it fresh memory holds zeros in canary mode too.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu} passed=0 failed=0

try() {  # try MODE OPTION BYTE LINES
    local out status wrong
    out=$("$MOAT" --device="$device" --mode="$1" $2 --log-file=/dev/null "$BUILD/tool/fill" </dev/null)
    status=$?
    wrong=$(grep -vx "[a-z]* $3 $3" <<<"$out" | grep -Ex "$4")
    if [ $status = 0 ] && [ -z "$wrong" ] && [ "$(wc -l <<<"$out")" = 5 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL --mode=$1 $2: status $status"
        sed 's/^/    | /' <<<"$out"
    fi
}

for mode in api canary pages; do
    try $mode --fill=171 171 '.*'
    try $mode '' 0 'plain .*'
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
