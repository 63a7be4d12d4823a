#!/bin/bash
# SPDX-License-Identifier: MIT
# What moat adds to a launch-bound step, measured inside one process, which pauses moat in turns
# (bench/guard_pause.c, moat_pause of moat.h): sections guard-pause-gpu or guard-pause-cpu of doc/results.md.
# GUARD_PAUSE_SECONDS: of each process, 7. GUARD_PAUSE_RUNS: processes of each mode, 5. DEVICE: gpu or cpu.
# SECTION=FILE: the table goes there.
set -eu
here=$(dirname "$0")
device=${DEVICE:-$(nvidia-smi -L >/dev/null 2>&1 && echo gpu || echo cpu)}
runs=${GUARD_PAUSE_RUNS:-5} seconds=${GUARD_PAUSE_SECONDS:-7}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
{
    echo "## A launch-bound step, with moat and with moat paused, on the ${device^^}"
    echo
    "$here/machine"
    echo "A step is 460 launches of an empty kernel, a memset, a copy and a wait; turns of 3 steps, of" \
        "which every other one is paused; percent that moat adds."
    echo
    echo '| mode | process | median | 95 % interval | pairs of turns |'
    echo '| --- | ---: | ---: | ---: | ---: |'
    for ((run = 1; run <= runs; run++)); do
        for mode in api 'canary --no-kheap' pages 'check --no-kheap'; do
            # shellcheck disable=SC2086
            "$MOAT" --device="$device" --mode=$mode "$BUILD/bench/guard_pause" "$seconds" \
                2>"$T/log" </dev/null >"$T/row" || { cat "$T/log" >&2; exit 1; }
            read -r median low high pairs <"$T/row"
            echo "| $mode | $run | $median | $low to $high | $pairs |"
        done
    done | sort -s -t '|' -k 2,2
} >"$T/section"
cat "$T/section"
"$here/finish" "guard-pause-$device" "$T/section"
