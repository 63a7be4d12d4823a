#!/bin/bash
# SPDX-License-Identifier: MIT
# What canaries cost, by number of live buffers: bench/canary_load.c alone and under --mode=canary, with both
# ways to scan, in turns. On a GPU if there is one, otherwise on the CPU device. SECTION=FILE: writes the
# table there instead of into doc/results.md, and the drawing beside it instead of into doc/:
# canary-overhead.svg, for the CPU device canary-overhead-cpu.svg. CANARY_BUFFERS_RUNS,
# CANARY_BUFFERS_SECONDS, CANARY_BUFFERS_LIVE, CANARY_BUFFERS_SCANS; CANARY_SECONDS: see canary_programs.
# canary_programs.
set -eu
here=$(dirname "$0")
"$MOAT" --mode=canary --version >/dev/null 2>&1 ||
    { echo 'canary-buffers.sh: this moat has no --mode=canary' >&2; exit 0; }
RUNS=${CANARY_BUFFERS_RUNS:-5} SECONDS_EACH=${CANARY_BUFFERS_SECONDS:-1}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/canary_programs
. "$here/canary_programs"
device=cpu mib=1
! nvidia-smi -L >/dev/null 2>&1 || device=gpu mib=256
svg=$(dirname "${SECTION:-$here/../doc/.}")/canary-overhead$([ $device = gpu ] || echo -cpu).svg
read -ra scans <<<"${CANARY_BUFFERS_SCANS:-$(canary_programs_scans | paste -sd " ")}"
read -ra lives <<<"${CANARY_BUFFERS_LIVE:-10 100 1000 10000 100000}"

run() {  # run LABEL LIVE OPTION...
    local label=$1 live=$2
    shift 2
    if ! canary_programs_step "$MOAT" --device=$device "$@" "$BUILD/bench/canary_load" "$live" \
        "$SECONDS_EACH" $mib >"$T/out" 2>"$T/log" </dev/null; then
        [ -n "$canary_programs_over" ] ||
            echo "canary-buffers.sh: $label, $live buffers: $(tail -n 1 "$T/log")" >&2
        return 0
    fi
    awk -v label="$label" -v live="$live" -v OFS='\t' '{ print label, $1 ", " live " buffers", "work", $2 }' \
        "$T/out" >>"$T/rows"
}

touch "$T/rows"
for ((i = 0; i < RUNS; i++)); do
    for live in "${lives[@]}"; do
        canary_programs_left 80 || break 2
        run alone "$live" --mode=off
        run copy "$live" --mode=canary
    done
done
for scan in "${scans[@]:1}"; do
    for live in "${lives[@]}"; do
        canary_programs_left 100 || break 2
        # shellcheck disable=SC2046
        run "$scan" "$live" $(canary_programs_options "$scan")
    done
done
{
    echo '## Canaries and the number of buffers'
    echo
    "$here/machine"
    echo "On $([ $device = gpu ] && echo 'the GPU' || echo 'the CPU device')," \
        "$(canary_programs_runs "$T/rows") without and with in turns, one with the other way to scan," \
        "what canaries add to the median" \
        "of each:" \
        'a kernel that reads and writes memory, one that computes, an empty one that is waited for,' \
        'and an allocation with its free.' \
        "The kernels are drawn in \`$(basename "$svg")\`."
    echo
    # An average over such different things is meaningless.
    python3 "$here/canary_table.py" "$T/rows" work us alone "${scans[@]}" | grep -v '^| \*\*'
} >"$T/section"
cat "$T/section"
row='^\| (memory|arithmetic|launch), ([0-9]+) buffers \|[^|]*\| ([-+0-9.]+)% \|'
for scan in "${scans[@]}"; do
    python3 "$here/canary_table.py" "$T/rows" work us alone "$scan" |
        sed -nE "s/$row/\1, $scan\t\2\t\3/p"
done | python3 "$here/canary_plot.py" 'What canaries add to kernels' 'live buffers' 'percent' >"$svg"
"$here/finish" "canary-buffers-$device" "$T/section"
