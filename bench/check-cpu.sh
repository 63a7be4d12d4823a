#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=check costs on the CPU device: the programs of the suite with --mode=off and with --mode=check,
# in turns, by the processor time (user and system) of all their processes. check-cpu.sh [NAME...]: all
# programs, or these; with names nothing is written into doc/. CHECK_CPU_RUNS: how often; the least of each
# counts. Programs take the sizes of cpu_sizes.tsv, or the suite's own where that has none; rewritten modules
# come from the cache, which the first run fills. Nothing may be reported.
set -eu
here=$(dirname "$0")
command -v nvcc >/dev/null || { echo 'check-cpu.sh: no nvcc on this machine' >&2; exit 0; }
RUNS=${CHECK_CPU_RUNS:-5}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cache=$BUILD/cache/check-cpu
mkdir -p "$cache"
export XDG_CACHE_HOME=$T/cache
tsv=$here/../test/programs/programs.tsv

args_of() {  # args_of NAME
    local args
    args=$(awk -F'\t' -v name="$1" '$1 == name { print $2 }' "$here/cpu_sizes.tsv")
    [ -n "$args" ] || args=$(awk -F'\t' -v name="$1" '$1 == name { print $3 }' "$tsv")
    echo "$args"
}

build() {  # build NAME
    local sm source=$here/../test/programs/$1.cu
    sm=$(awk -F'\t' -v name="$1" '$1 == name { print $2 }' "$tsv")
    [ "$cache/$1" -nt "$source" ] ||
        nvcc -O2 -cudart shared -gencode "arch=compute_$sm,code=compute_$sm" -o "$cache/$1" "$source"
}

run() {  # run MODE NAME: a row MODE NAME milliseconds, or MODE NAME - if it went wrong
    local TIMEFORMAT='%U %S' status=0
    # shellcheck disable=SC2046
    { time timeout 300 "$MOAT" --device=cpu --mode="$1" "$cache/$2" $(args_of "$2") \
        >"$T/log" 2>&1 </dev/null; } 2>"$T/time" || status=$?
    if { [ $status != 0 ] && [ $status != 77 ]; } || grep -q 'ERROR: moat' "$T/log"; then
        echo "check-cpu.sh: $2, mode $1: status $status: $(tail -n 1 "$T/log")" >&2
        echo "$1 $2 -" >>"$T/rows"
        return
    fi
    awk -v row="$1 $2" '{ printf "%s %.0f\n", row, 1000 * ($1 + $2) }' "$T/time" >>"$T/rows"
}

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 "$tsv" | cut -f 1)
for name in "${names[@]}"; do
    build "$name"
    run check "$name"
    cold=$(awk '{ print $3 }' "$T/rows")
    echo "cold $name $cold" >>"$T/all"
    : >"$T/rows"
    for ((i = 0; i < RUNS; i++)); do
        run off "$name"
        run check "$name"
    done
    cat "$T/rows" >>"$T/all"
    : >"$T/rows"
done

{
    echo '## --mode=check on the CPU device'
    echo
    "$here/machine"
    echo "Processor time of the whole program, start included, with --mode=off and with --mode=check, the" \
        "least of $RUNS runs of each in turns; and how long the first run took, which rewrites the modules" \
        "and fills the cache."
    echo
    echo '| program | off ms | check ms | added | first run ms |'
    echo '| --- | --- | --- | --- | --- |'
    awk '
        !($2 in seen) { seen[$2] = 1; order[++names] = $2 }
        $3 == "-" { bad[$2] = 1; next }
        !(($1, $2) in least) || $3 < least[$1, $2] { least[$1, $2] = $3 }
        END {
            for (i = 1; i <= names; i++) {
                n = order[i]
                if (bad[n]) { printf "| %s | failed | | | |\n", n; failed++; continue }
                a = least["off", n] + 0 ? least["off", n] : 1
                r = 100 * (least["check", n] / a - 1)
                printf "| %s | %d | %d | %+.0f%% | %d |\n", n, a, least["check", n], r, least["cold", n]
                for (j = k++; j > 0 && all[j] > r; j--) all[j + 1] = all[j]
                all[j + 1] = r
                sum += r; off += a; check += least["check", n]; first += least["cold", n]
                if (k == 1 || r > worst) { worst = r; which = n }
            }
            printf "| all of them | %d | %d | %+.0f%% | %d |\n\n", off, check, 100 * (check / off - 1), first
            printf "Added: %+.0f%% on average, %+.0f%% in the median, %+.0f%% at worst (%s).\n",
                sum / k, all[int((k + 1) / 2)], worst, which
            if (failed) printf "%d failed.\n", failed
        }' "$T/all"
} >"$T/section"
cat "$T/section"
[ $# -gt 0 ] || "$here/finish" check-cpu "$T/section"
