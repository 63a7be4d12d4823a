#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=check adds to a launch, with proofs and without (bench/check_launch.py). On a GPU if there is one,
# otherwise on the CPU device. GUARD_BENCH_SETS of processes take turns GUARD_BENCH_ROUNDS times. SECTION=FILE:
# writes the tables there instead of into doc/results.md.
set -eu
here=$(dirname "$0")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
device=cpu where='the CPU device'
! nvidia-smi -L >/dev/null 2>&1 || { device=gpu where='the GPU'; }
{
    echo '## What check mode adds to a launch'
    echo
    "$here/machine"
    echo "On $where."
    python3 "$here/check_launch.py" "$MOAT" "$BUILD/bench/check_launch" $device "${GUARD_BENCH_SETS:-9}" \
        "${GUARD_BENCH_ROUNDS:-60}"
} >"$T/section"
cat "$T/section"
"$here/finish" "check-launch-$device" "$T/section"
