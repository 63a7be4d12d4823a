#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# Random kernels under --mode=check: accesses next to a buffer, far inside another one, to freed buffers, at
# once and later, through roots of every kind, and accesses of variables in every other space; each wrong one
# is reported once with type, line, thread and buffer, no correct one is, wrong stores change nothing, and
# wrong loads give 0.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v python3 >/dev/null || { echo 'no python3'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
# make check always runs the same kernels.
cases=200 seed=${CHECK_SEED:-17}
[ "${TEST_ALL:-0}" = 0 ] || { cases=1000; seed=${CHECK_SEED:-$((RANDOM + 1))}; }
passed=0 failed=0
while read -r program class; do
    timeout 600 "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=check --no-cache --format=json \
        --log-file="$T/log" --print-limit=0 "$BUILD/tool/$program" "$seed" $cases "$class" \
        >"$T/plan" 2>"$T/err" </dev/null
    if result=$(python3 test/guard/check_compare.py "$T/plan" "$T/log" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s, seed %s\n%s\n' "$class" "$seed" "$result"
        tail -5 "$T/err"
    fi
done <<E
check_classes adjacent
check_classes far
check_classes freed
check_classes late
check_classes idioms
check_classes misaligned
check_places shared
check_places local
check_places constant
check_places parameter
E
echo "$passed passed, $failed failed"
[ $failed = 0 ]
