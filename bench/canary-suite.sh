#!/bin/bash
# SPDX-License-Identifier: MIT
# The suite's programs on a GPU at their large sizes: alone and under --mode=canary, in turns; then, a few times, with
# --canary-scan=managed and under compute-sanitizer, where it is installed. Page faults in managed memory are counted by CUPTI,
# in runs of their own (um_faults.c).
# Programs that were built before are taken from $BUILD/cache/gpu-suite. SECTION=FILE: the tables go there instead of into
# doc/results.md. CANARY_SUITE_RUNS, CANARY_SUITE_FEW, CANARY_SUITE_PROGRAMS; CANARY_SECONDS: see canary_programs.
set -eu
here=$(dirname "$0")
"$MOAT" --mode=canary --version >/dev/null 2>&1 || { echo 'canary-suite.sh: this moat has no --mode=canary' >&2; exit 0; }
nvidia-smi -L >/dev/null 2>&1 || { echo 'canary-suite.sh: no GPU on this machine' >&2; exit 0; }
RUNS=${CANARY_SUITE_RUNS:-5} FEW=${CANARY_SUITE_FEW:-1}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/canary_programs
. "$here/canary_programs"
names=${CANARY_SUITE_PROGRAMS:-$(canary_programs_names)}
canary_programs_build "$names"
mapfile -t scans < <(canary_programs_scans)
sanitizer=$(command -v compute-sanitizer || true)
[ -n "$sanitizer" ] || echo 'canary-suite.sh: no compute-sanitizer on this machine' >&2

measure() {  # measure LABEL NAME COMMAND...
    local label=$1 name=$2 args
    shift 2
    args=$(canary_programs_arguments "$name")
    # shellcheck disable=SC2086
    canary_programs_step python3 "$here/canary_run.py" "$T/rows" "$label" "$name" "$@" "$canary_programs_at/$name" $args || true
}

# All programs a few times rather than some of them often, and what we compare with last.
touch "$T/rows"
for ((i = 0; i < RUNS; i++)); do
    for name in $names; do
        canary_programs_left 60 || break 2
        measure alone "$name"
        measure copy "$name" "$MOAT" --device=gpu --mode=canary
    done
done
for scan in "${scans[@]:1}"; do
    for ((i = 0; i < FEW; i++)); do
        for name in $names; do
            canary_programs_left 75 || break 3
            # shellcheck disable=SC2046
            measure "$scan" "$name" "$MOAT" --device=gpu $(canary_programs_options "$scan")
        done
    done
done
# Programs that have managed memory of their own are counted alone too.
uncounted='' tries=0
if counter=$(canary_programs_counter "$T" 2>"$T/why"); then
    export UM_FAULTS_COUNTER=$counter
    for name in $names; do
        canary_programs_left 88 || break
        # shellcheck disable=SC2046
        [ ${#scans[@]} = 1 ] || measure "${scans[1]}" "$name" "$MOAT" --device=gpu $(canary_programs_options "${scans[1]}")
        ! canary_programs_has "$name" managed || measure alone "$name"
        # What two of them lack the others lack too.
        grep -q $'\tmanaged_cpu\t' "$T/rows" || [ $((++tries)) -lt 2 ] || break
    done
    unset UM_FAULTS_COUNTER
    uncounted=$(awk -F '\t' '$3 == "managed_cpu" { n++ } $3 == "managed_none" { why = $4 } END { if (!n) print why == "" ? "no time was left" : why }' "$T/rows")
else
    uncounted=$(tail -n 1 "$T/why")
fi
for ((i = 0; i < FEW; i++)); do
    for name in $names; do
        { [ -n "$sanitizer" ] && canary_programs_left 100; } || break 2
        measure compute-sanitizer "$name" "$sanitizer" --tool memcheck
    done
done
{
    echo '## The suite with canaries'
    echo
    "$here/machine"
    echo "Large sizes, $(canary_programs_runs "$T/rows") alone and with canaries in turns, $FEW of the others. Columns say what is added to the program alone:" \
        '`copy` is `--mode=canary` as it is, `managed` the same with `--canary-scan=managed`.' \
        "$([ -n "$uncounted" ] && echo "Page faults in managed memory are not counted: $uncounted." ||
            echo 'In brackets, with what a program alone has: page faults in managed memory, of the CPU and, in groups, of the GPU, as CUPTI counts them in one run more.')"
    printf '\nThe work of the programs, as they measure it, without start-up and checks:\n\n'
    python3 "$here/canary_table.py" "$T/rows" work ms alone "${scans[@]}" ${sanitizer:+compute-sanitizer}
    printf '\nWhole programs, with the start of CUDA and of moat:\n\n'
    python3 "$here/canary_table.py" "$T/rows" wall ms alone "${scans[@]}" ${sanitizer:+compute-sanitizer}
    printf '\nPage faults of the CPU, whole programs, average over the programs:\n\n| alone | copy | managed |\n| --- | --- | --- |\n'
    awk -F '\t' '$3 == "faults" { sum[$1] += $4; n[$1]++ }
        function mean(label) { return n[label] ? sprintf("%.0f", sum[label] / n[label]) : "-" }
        END { printf "| %s | %s | %s |\n", mean("alone"), mean("copy"), mean("managed") }' "$T/rows"
} >"$T/section"
cat "$T/section"
if [ -n "${SECTION:-}" ]; then
    cp "$T/section" "$SECTION"
else
    "$here/section" canary-suite-gpu <"$T/section"
fi
