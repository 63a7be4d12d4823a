#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# How much memory many large buffers take with --mode=canary, of a device that gives 2 MiB at a time: at most
# a thousandth more than without moat. And test/guard/canary.sh with --canary-memory=plain.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu} failed=0 passed=0

taken() {  # taken COUNT SIZE OPTION...
    local count=$1 size=$2
    shift 2
    timeout 100 "$MOAT" --device="$device" "$@" "$BUILD/tool/canary_good" memory "$count" "$size" \
        2>/dev/null </dev/null | awk '/^taken/ { print $2 }'
}

for row in '4096 1048576' '2048 2097152' '256 16777216' '40 104857600'; do
    # shellcheck disable=SC2086
    alone=$(taken $row --mode=off) with=$(taken $row --mode=canary)
    if awk -v a="${alone:-0}" -v w="${with:-0}" 'BEGIN { exit !(a > 0 && w > 0 && w <= a * 1.001) }'; then
        passed=$((passed + 1))
    elif [ -z "$alone" ]; then
        echo "no memory for $row"
    else
        failed=$((failed + 1))
        echo "FAIL buffers and bytes $row: $alone bytes alone, ${with:-none} with canaries"
    fi
done
# Most twins have small buffers, which are placed as without the option: a few rounds are enough.
[ "${TEST_ALL:-1}" = 1 ] || export PAIRS_ROUNDS=20
PAIRS_OPTIONS=--canary-memory=plain test/guard/canary.sh || failed=$((failed + 1))
echo "sizes: $passed passed, $failed failed"
[ $failed = 0 ]
