#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=check adds to a launch, with proofs and without (bench/launch_cost.py), or the mode of
# LAUNCH_COST_MODE, check or fence. On a GPU if there is one, otherwise on the CPU device. GUARD_BENCH_SETS of
# processes take turns GUARD_BENCH_ROUNDS times; GPU_SECONDS: no set is begun that would end later.
# SECTION=FILE: writes the tables there instead of into doc/results.md.
set -eu
here=$(dirname "$0")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
mode=${LAUNCH_COST_MODE:-check} device=cpu where='the CPU device'
! nvidia-smi -L >/dev/null 2>&1 || { device=gpu where='the GPU'; }
{
    echo "## What $mode mode adds to a launch$([ $device = cpu ] || echo ', on a GPU')"
    echo
    "$here/machine"
    echo "On $where."
    python3 "$here/launch_cost.py" "$MOAT" "$BUILD/bench/launch_cost" $device "${GUARD_BENCH_SETS:-9}" \
        "${GUARD_BENCH_ROUNDS:-60}" "$mode" $((${GPU_SECONDS:-100000} - SECONDS))
} >"$T/section"
cat "$T/section"
"$here/finish" "$mode-launch-$device" "$T/section"
