#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=canary on a real GPU: test/guard/canary.sh with both ways to scan, and beside them the stress test.
# The tables go to the file SECTION names, if any: bench/section canary-errors-gpu <FILE puts them into
# doc/results.md. CANARY_STRESS_SECONDS: how long the stress test runs, 30 by default.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
"$MOAT" --mode=canary --version >/dev/null 2>&1 || { echo 'this moat has no --mode=canary'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export GUARD_DEVICE=gpu CANARY_STRESS_SECONDS=${CANARY_STRESS_SECONDS:-30}
status=0

part() {  # part NAME SCRIPT OPTION: its output in $T/NAME
    PAIRS_OPTIONS=$3 SECTION=$T/$1.md "test/guard/$2.sh" >"$T/$1" 2>&1
    local result=$?
    sed "s/^/$1: /" "$T/$1"
    [ $result = 0 ] || [ $result = 77 ]
}

part stress canary_stress '' &
part copy canary '' || status=1
part managed canary --canary-scan=managed || status=1
wait $! || status=1
if [ -n "${SECTION:-}" ]; then
    {
        echo '## Canaries on a GPU'
        echo
        bench/machine
        echo
        echo "Stress test, $CANARY_STRESS_SECONDS s: $(grep '^with errors' "$T/stress")."
        cat "$T/copy.md"
        printf '\nWith --canary-scan=managed: %s.\n' "$(tail -n 1 "$T/managed")"
    } >"$SECTION"
fi
sum() {  # sum WORD: over all
    sed -nE "s/.*(^|[ ,])([0-9]+) $1.*/\\2/p" <(tail -qn 1 "$T"/{copy,stress,managed}) |
        awk '{ n += $1 } END { print n + 0 }'
}
echo "$(sum passed) passed, $(sum failed) failed, $(sum skipped) skipped"
exit $status
