#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs of the suite that run together on one GPU, each pair of eight: 28 pairs, alone and each program
# under --mode=canary, in turns. Programs that were built before are taken from $BUILD/cache/gpu-suite.
# SECTION=FILE: writes the table there instead of into doc/results.md. CANARY_PAIRS_RUNS;
# CANARY_PAIRS_PROGRAMS: which; CANARY_SECONDS and CANARY_ROWS: see canary_programs.
set -eu
here=$(dirname "$0")
"$MOAT" --mode=canary --version >/dev/null 2>&1 ||
    { echo 'canary-pairs.sh: this moat has no --mode=canary' >&2; exit 0; }
nvidia-smi -L >/dev/null 2>&1 || { echo 'canary-pairs.sh: no GPU on this machine' >&2; exit 0; }
RUNS=${CANARY_PAIRS_RUNS:-3}
# As in the paper: graphs, transforms, images in pitched memory, host memory, arithmetic; plain and
# stream-ordered memory.
read -ra programs <<<"${CANARY_PAIRS_PROGRAMS:-bfs fft spmv pitched zero_copy nbody stencil2d async_alloc}"
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/canary_programs
. "$here/canary_programs"
canary_programs_build "${programs[*]}"
rows=$(canary_programs_rows canary-pairs)

# together LABEL A B COMMAND...: a row with the time from when both begin their work to when both have done it
together() {
    local label=$1 a=$2 b=$3 one two longer
    shift 3
    rm -rf "$T/a" "$T/b" "$T/gate"
    mkdir "$T/gate"
    open_gate &
    local opener=$!
    # shellcheck disable=SC2046
    PROGRAM_GATE=$T/gate canary_programs_start python3 "$here/canary_run.py" "$T/a" x x "$@" \
        "$canary_programs_at/$a" $(canary_programs_arguments "$a")
    # shellcheck disable=SC2046
    PROGRAM_GATE=$T/gate canary_programs_step python3 "$here/canary_run.py" "$T/b" x x "$@" \
        "$canary_programs_at/$b" $(canary_programs_arguments "$b") || true
    canary_programs_join || true
    wait $opener || true
    [ -z "$canary_programs_over" ] || return 0
    one=$(awk -F '\t' '$3 == "work" { print $4 }' "$T/a")
    two=$(awk -F '\t' '$3 == "work" { print $4 }' "$T/b")
    longer=$(awk -v a="$one" -v b="$two" 'BEGIN { print (a + 0 > b + 0 ? a : b) }') || true
    [ -z "$canary_programs_over" ] || return 0
    if [ -n "$one" ] && [ -n "$two" ] && [ -n "$longer" ] && [ ! -e "$T/gate/late" ]; then
        printf '%s\t%s\twork\t%s\n' "$label" "$a, $b" "$longer"
    else
        printf '%s\t%s\tfailed\t1\n' "$label" "$a, $b"
    fi >>"$rows"
}

# Opens the gate when both are ready; or after ten seconds, because one may have failed, and then they are no
# pair.
open_gate() {
    local i ready
    for ((i = 0; i < 1000; i++)); do
        ready=("$T/gate"/*)
        if [ ${#ready[@]} -ge 2 ]; then
            : >"$T/gate/go"
            return
        fi
        sleep 0.01
    done
    : >"$T/gate/late"
    : >"$T/gate/go"
}

for ((i = 0; i < RUNS; i++)); do
    for ((a = 0; a < ${#programs[@]}; a++)); do
        for ((b = a + 1; b < ${#programs[@]}; b++)); do
            pair="${programs[a]}, ${programs[b]}"
            canary_programs_left 100 || break 3
            canary_programs_done $((i + 1)) "$rows" alone "$pair" ||
                together alone "${programs[a]}" "${programs[b]}"
            canary_programs_done $((i + 1)) "$rows" canary "$pair" ||
                together canary "${programs[a]}" "${programs[b]}" "$MOAT" --device=gpu --mode=canary
        done
    done
done
{
    echo '## Pairs of programs with canaries'
    echo
    "$here/machine"
    echo "Two programs of the suite begin their work at the same moment, $(canary_programs_runs "$rows")" \
        "without and with canaries in turns; the time until both have done it."
    echo
    python3 "$here/canary_table.py" "$rows" work ms alone canary
} >"$T/section"
cat "$T/section"
"$here/finish" canary-pairs-gpu "$T/section"
