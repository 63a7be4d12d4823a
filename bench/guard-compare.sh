#!/bin/bash
# SPDX-License-Identifier: MIT
# What calls of the driver API cost under this build of moat and under another one, OTHER, the folder of a
# packed build (make dist) of an earlier commit; OTHER_IS names it in the table. On a GPU if there is one,
# otherwise on the CPU device. GUARD_BENCH_SETS of processes, which take turns GUARD_BENCH_ROUNDS times.
# SECTION=FILE: writes the tables there instead of into doc/results.md.
set -eu
here=$(dirname "$0")
[ -n "${OTHER:-}" ] || { echo 'guard-compare: OTHER names no packed build to compare with'; exit 77; }
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
device=cpu where='the CPU device'
! nvidia-smi -L >/dev/null 2>&1 || { device=gpu where='the GPU'; }
{
    echo '## What calls cost, before and now'
    echo
    "$here/machine"
    echo "On $where; before: ${OTHER_IS:-another build}."
    python3 "$here/guard_compare.py" "$MOAT" "$OTHER/bin/moat" "$BUILD/bench/guard_calls" $device \
        "${GUARD_BENCH_SETS:-5}" \
        "${GUARD_BENCH_ROUNDS:-40}"
} >"$T/section"
cat "$T/section"
"$here/finish" "guard-compare-$device" "$T/section"
