#!/bin/bash
# SPDX-License-Identifier: MIT
# The suite's programs on a GPU at their large sizes: alone and under --mode=canary, in turns; then, a few
# times, with --canary-scan=managed and under compute-sanitizer, if it is installed. Page faults in managed
# memory are counted by CUPTI, in runs of their own (um_faults.c). Programs that were built before are taken
# from $BUILD/cache/gpu-suite. SECTION=FILE: writes the tables there instead of into doc/results.md.
# CANARY_SUITE_RUNS, CANARY_SUITE_FEW, CANARY_SUITE_PROGRAMS; CANARY_SECONDS and CANARY_ROWS: see
# canary_programs. CANARY_SUITE_STEPS: which of turns, managed, faults and sanitizer; all by default.
set -eu
here=$(dirname "$0")
"$MOAT" --mode=canary --version >/dev/null 2>&1 ||
    { echo 'canary-suite.sh: this moat has no --mode=canary' >&2; exit 0; }
nvidia-smi -L >/dev/null 2>&1 || { echo 'canary-suite.sh: no GPU on this machine' >&2; exit 0; }
RUNS=${CANARY_SUITE_RUNS:-2} FEW=${CANARY_SUITE_FEW:-1} \
    STEPS=" ${CANARY_SUITE_STEPS:-turns managed faults sanitizer} "
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/canary_programs
. "$here/canary_programs"
names=${CANARY_SUITE_PROGRAMS:-$(canary_programs_names)}
canary_programs_build "$names"
mapfile -t scans < <(canary_programs_scans)
sanitizer=$(command -v compute-sanitizer || true)
[ -n "$sanitizer" ] || echo 'canary-suite.sh: no compute-sanitizer on this machine' >&2

rows=$(canary_programs_rows canary-suite)

measure() {  # measure LABEL NAME COMMAND...
    local label=$1 name=$2
    shift 2
    # shellcheck disable=SC2046
    canary_programs_step python3 "$here/canary_run.py" "$rows" "$label" "$name" "$@" \
        "$canary_programs_at/$name" $(arguments "$label" "$name") || true
}

# Under compute-sanitizer, and for its baseline, a twentieth of the repetitions, which are every program's
# last argument.
arguments() {
    case $1 in
    short | compute-sanitizer) canary_programs_arguments "$2" | awk '{ $NF = int($NF / 20) + 1; print }' ;;
    *) canary_programs_arguments "$2" ;;
    esac
}

in_turns() {  # in_turns PERCENT TIMES NAME...: each once more that was not measured so many times
    local percent=$1 times=$2 name
    shift 2
    for name; do
        canary_programs_left "$percent" || return 1
        canary_programs_done "$times" "$rows" alone "$name" || measure alone "$name"
        canary_programs_done "$times" "$rows" copy "$name" ||
            measure copy "$name" "$MOAT" --device=gpu --mode=canary
    done
}

# The programs to which canaries seem to add most, by the runs so far.
worst() {
    python3 "$here/canary_table.py" "$rows" work ms alone copy |
        awk -F '|' '$4 ~ /%/ && $2 !~ /\*/ { sub(/^ */, "", $2); sub(/%.*/, "", $4); print $4 + 0, $2 }' |
        sort -rn | head -n 12 | cut -d ' ' -f 2
}

# Their runs so far were used to choose them: only later ones count, until the time is over.
again() {
    local name chosen fresh=''
    mapfile -t chosen < <(worst)
    while [ ${#chosen[@]} -gt 0 ]; do
        for name in "${chosen[@]}"; do
            canary_programs_left 55 || return 0
            if [[ " $fresh " != *" $name "* ]]; then
                awk -F '\t' -v name="$name" '$2 != name || $1 !~ /^(alone|copy)$/ || $3 ~ /^managed_/' \
                    "$rows" >"$T/rest"
                cp "$T/rest" "$rows"
                fresh+=" $name"
            fi
            in_turns 55 1000000 "$name" || return 0
        done
    done
}

has() {
    [[ $STEPS = *" $1 "* ]]
}

# All programs a few times, then the worst of them anew and more often, so that their medians are not chance.
# Turns get 55% of the time, the comparisons the rest.
if has turns; then
    for ((i = 0; i < RUNS; i++)); do
        # shellcheck disable=SC2086
        in_turns 55 $((i + 1)) $names || break
    done
    [ -z "${CANARY_SECONDS:-}" ] || again
fi
if has managed; then
    for scan in "${scans[@]:1}"; do
        for ((i = 0; i < FEW; i++)); do
            for name in $names; do
                ! canary_programs_done $((i + 1)) "$rows" "$scan" "$name" || continue
                canary_programs_left 70 || break 3
                # shellcheck disable=SC2046
                measure "$scan" "$name" "$MOAT" --device=gpu $(canary_programs_options "$scan")
            done
        done
    done
fi
# Programs with managed memory of their own are counted alone too.
uncounted='' tries=0
if counter=$("$here/cupti_library" um_faults "$T" 2>"$T/why"); then
    export UM_FAULTS_COUNTER=$counter
    for name in $(has faults && echo "$names"); do
        canary_programs_left 80 || break
        # shellcheck disable=SC2046
        [ ${#scans[@]} = 1 ] ||
            measure "${scans[1]}" "$name" "$MOAT" --device=gpu $(canary_programs_options "${scans[1]}")
        ! canary_programs_has "$name" managed || measure alone "$name"
        # If two of them have no counts, the others have none either.
        grep -q $'\tmanaged_cpu\t' "$rows" || [ $((++tries)) -lt 2 ] || break
    done
    unset UM_FAULTS_COUNTER
    uncounted=$(awk -F '\t' '$3 == "managed_cpu" { n++ } $3 == "managed_none" { why = $4 }
        END { if (!n) print why == "" ? "no time was left" : why }' "$rows")
else
    uncounted=$(tail -n 1 "$T/why")
fi
if [ -n "$sanitizer" ] && has sanitizer; then
    for name in $names; do
        ! canary_programs_done 1 "$rows" compute-sanitizer "$name" || continue
        canary_programs_left 100 || break
        measure short "$name"
        measure compute-sanitizer "$name" "$sanitizer" --tool memcheck
    done
fi
{
    echo '## The suite with canaries'
    echo
    "$here/machine"
    echo "Large sizes, $(canary_programs_runs "$rows") alone and with canaries in turns," \
        "those anew and more often to which canaries seemed to add most;" \
        "$FEW of the others. Columns say what is added to the program alone:" \
        '`copy` is `--mode=canary` as it is, `managed` the same with `--canary-scan=managed`;' \
        'compute-sanitizer has a twentieth of the repetitions' \
        'and is compared with the program alone with as many.' \
        "$([ -n "$uncounted" ] && echo "Page faults in managed memory are not counted: $uncounted." ||
            echo 'In brackets, with what a program alone has: page faults in managed memory, of the CPU' \
                'and, in groups, of the GPU, as CUPTI counts them in one run more.')"
    printf '\nThe work of the programs, as they measure it, without start-up and checks:\n\n'
    python3 "$here/canary_table.py" "$rows" work ms alone "${scans[@]}" ${sanitizer:+compute-sanitizer:short}
    printf '\nWhole programs, with the start of CUDA and of moat:\n\n'
    python3 "$here/canary_table.py" "$rows" wall ms alone "${scans[@]}" ${sanitizer:+compute-sanitizer:short}
    printf '\nPage faults of the CPU, whole programs, average over the programs:\n\n'
    printf '| alone | copy | managed |\n| --- | --- | --- |\n'
    awk -F '\t' '$3 == "faults" { sum[$1] += $4; n[$1]++ }
        function mean(label) { return n[label] ? sprintf("%.0f", sum[label] / n[label]) : "-" }
        END { printf "| %s | %s | %s |\n", mean("alone"), mean("copy"), mean("managed") }' "$rows"
} >"$T/section"
cat "$T/section"
"$here/finish" canary-suite-gpu "$T/section"
