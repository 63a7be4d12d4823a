#!/bin/bash
# SPDX-License-Identifier: MIT
# The suite's programs on a GPU at their large sizes: alone, under --mode=canary with both ways to scan, in turns; and under
# compute-sanitizer, where it is installed, a few times.
# Programs that were built before are taken from $BUILD/cache/gpu-suite. SECTION=FILE: the tables go there instead of into
# doc/results.md. CANARY_SUITE_RUNS, CANARY_SUITE_SANITIZER_RUNS, CANARY_SUITE_PROGRAMS.
set -eu
here=$(dirname "$0")
"$MOAT" --mode=canary --version >/dev/null 2>&1 || { echo 'canary-suite.sh: this moat has no --mode=canary' >&2; exit 0; }
nvidia-smi -L >/dev/null 2>&1 || { echo 'canary-suite.sh: no GPU on this machine' >&2; exit 0; }
RUNS=${CANARY_SUITE_RUNS:-5} FEW=${CANARY_SUITE_SANITIZER_RUNS:-1}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/canary_programs
. "$here/canary_programs"
canary_programs_build
mapfile -t scans < <(canary_programs_scans)
sanitizer=$(command -v compute-sanitizer || true)
[ -n "$sanitizer" ] || echo 'canary-suite.sh: no compute-sanitizer on this machine' >&2

measure() {  # measure LABEL NAME COMMAND...
    local label=$1 name=$2 args
    shift 2
    args=$(canary_programs_arguments "$name")
    # shellcheck disable=SC2086
    python3 "$here/canary_run.py" "$T/rows" "$label" "$name" "$@" "$canary_programs_at/$name" $args
}

for ((i = 0; i < RUNS; i++)); do
    for name in ${CANARY_SUITE_PROGRAMS:-$(canary_programs_names)}; do
        measure alone "$name"
        for scan in "${scans[@]}"; do
            # shellcheck disable=SC2046
            measure "$scan" "$name" "$MOAT" --device=gpu $(canary_programs_options "$scan")
        done
        if [ -n "$sanitizer" ] && [ "$i" -lt "$FEW" ]; then
            measure compute-sanitizer "$name" "$sanitizer" --tool memcheck
        fi
    done
done
{
    echo '## The suite with canaries'
    echo
    "$here/machine"
    echo "Large sizes, $RUNS runs of each in turns ($FEW of compute-sanitizer). Columns say what is added to the program alone:" \
        '`copy` is `--mode=canary` as it is, `managed` the same with `--canary-scan=managed`.'
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
