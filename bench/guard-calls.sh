#!/bin/bash
# SPDX-License-Identifier: MIT
# What the guard adds to calls of the driver API (bench/guard_calls.py). On a GPU if there is one, otherwise
# on the CPU device. GUARD_BENCH_SETS of processes, which take turns GUARD_BENCH_ROUNDS times. SECTION=FILE:
# writes the tables there instead of into doc/results.md. GUARD_BENCH_CALLS=FILE: figures for
# bench/guard-torch.sh.
set -eu
here=$(dirname "$0")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
device=cpu where='the CPU device'
! nvidia-smi -L >/dev/null 2>&1 || { device=gpu where='the GPU'; }
{
    echo '## What the guard adds to a call'
    echo
    "$here/machine"
    echo "On $where, \`--mode=api\`."
    # shellcheck disable=SC2086
    python3 "$here/guard_calls.py" "$MOAT" "$BUILD/bench/guard_calls" $device "${GUARD_BENCH_SETS:-9}" \
        "${GUARD_BENCH_ROUNDS:-60}" ${GUARD_BENCH_CALLS:-}
} >"$T/section"
cat "$T/section"
"$here/finish" "guard-$device" "$T/section"
