#!/bin/bash
# SPDX-License-Identifier: MIT
# What allocations and frees cost under --mode=api and --mode=check, by size (bench/alloc_cost.py). On a GPU
# if there is one, otherwise on the CPU device. GUARD_BENCH_SETS of processes take turns GUARD_BENCH_ROUNDS
# times; GPU_SECONDS: no set is begun that would end later. SECTION=FILE: writes the tables there instead of
# into doc/results.md.
set -eu
here=$(dirname "$0")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
device=cpu where='the CPU device'
! nvidia-smi -L >/dev/null 2>&1 || { device=gpu where='the GPU'; }
{
    echo '## What an allocation costs'
    echo
    "$here/machine"
    echo "On $where."
    python3 "$here/alloc_cost.py" "$MOAT" "$BUILD/bench/alloc_cost" $device "${GUARD_BENCH_SETS:-5}" \
        "${GUARD_BENCH_ROUNDS:-30}" $((${GPU_SECONDS:-100000} - SECONDS))
} >"$T/section"
cat "$T/section"
"$here/finish" "alloc-$device" "$T/section"
