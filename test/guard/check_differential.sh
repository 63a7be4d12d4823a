#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# Random kernels whose buffers lie so far apart that the CPU device itself notices accesses outside of them:
# what --mode=check reports, and what memory holds afterwards, must equal what the device reports and skips.
# Proofs are made and checked too.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v python3 >/dev/null || { echo 'no python3'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
# make check always runs the same kernels.
kernels=500 rounds=1 first=17
[ "${TEST_ALL:-0}" = 0 ] || { rounds=20; first=$((RANDOM + 1)); }
run() {  # run MODE SEED: the source lines of errors in $T/MODE.lines, the program's output in $T/MODE.out
    timeout 600 "$MOAT" --device=cpu --mode="$1" --proofs=check --on-error=skip --no-cache --format=json \
        --print-limit=0 --log-file="$T/$1.json" "$BUILD/tool/check_differential" "$2" $kernels \
        >"$T/$1.out" 2>"$T/$1.err" </dev/null
    python3 - "$T/$1.json" >"$T/$1.lines" <<'PY'
import json, sys
lines = set()
for text in open(sys.argv[1]):
    event = json.loads(text)
    if "a bug of moat" in text:
        print("disproved")
    if event["event"] == "error":
        lines.add(event.get("kernel", {}).get("line", 0))
print(*sorted(lines), sep="\n")
PY
}
passed=0 failed=0
for ((round = 0; round < rounds; round++)); do
    seed=${CHECK_SEED:-$((first + round))}
    run api "$seed"
    run check "$seed"
    if grep -q '^done' "$T/api.out" && cmp -s "$T/api.out" "$T/check.out" && [ -s "$T/api.lines" ] &&
        cmp -s "$T/api.lines" "$T/check.lines"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL seed $seed: $(wc -l <"$T/api.lines") lines by the device, $(wc -l <"$T/check.lines") by us"
        diff "$T/api.lines" "$T/check.lines" | head -10
        diff "$T/api.out" "$T/check.out" | head -4
        tail -3 "$T/check.err"
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
