#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# Random kernels under --mode=check: accesses next to a buffer, far inside another one, to freed buffers, at
# once and later, through roots of every kind, in memory from malloc in kernels too, and accesses of variables
# in every other space; each wrong one
# is reported once with type, line, thread and buffer, no correct one is, wrong stores change nothing, and
# wrong loads give 0; with proofs and without. check_classes.sh list: all rows of a program, a class, and
# whether with proofs; check_classes.sh PROGRAM CLASS PROOFS: one of them. CHECK_CASES: kernels of each.
set -u
rows() {
    printf '%s\n' check_classes\ {adjacent,far,freed,late,idioms,misaligned}\ {on,off} \
        check_classes\ heap-{adjacent,far,freed,late,idioms,misaligned}\ {on,off} \
        check_places\ {shared,local,constant,parameter}\ {on,off} \
        check_wholes\ {matrices,copies,boxes}\ {on,off}
}
[ "${1:-}" != list ] || { rows; exit 0; }
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v python3 >/dev/null || { echo 'no python3'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
# make check always runs the same kernels.
cases=30 seed=${CHECK_SEED:-17}
[ "${TEST_ALL:-0}" = 0 ] || { cases=1000; seed=${CHECK_SEED:-$((RANDOM + 1))}; }
cases=${CHECK_CASES:-$cases}
passed=0 failed=0
while read -r program class proofs; do
    timeout 600 "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=check --proofs="$proofs" \
        --no-cache --format=json --log-file="$T/log" --print-limit=0 \
        "$BUILD/tool/$program" "$seed" $cases "$class" >"$T/plan" 2>"$T/err" </dev/null
    if result=$(python3 test/guard/check_compare.py "$T/plan" "$T/log" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s, proofs %s, seed %s\n%s\n' "$class" "$proofs" "$seed" "$result"
        tail -5 "$T/err"
    fi
done < <([ $# = 0 ] && rows || echo "$@")
echo "$passed passed, $failed failed"
[ $failed = 0 ]
