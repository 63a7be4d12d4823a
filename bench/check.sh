#!/bin/bash
# SPDX-License-Identifier: MIT
# check.sh [RUNS]: what `make check` takes from a fresh clone, without ccache, RUNS times (5), as section
# check-time of doc/results.md. Not for `make bench`, which it would build anew five times: does nothing there
# unless CHECK_RUNS says how often.
#
# check.sh --load [--beside] [RUNS]: the tests of `make check` again and again until RUNS (20) runs stand in
# FILE, beside a compiler on every processor; with --beside, beside whatever the machine does anyway. The
# clone is built once for each commit, in CHECK_CLONE (build/check-load), with ccache if there is one. Each
# run adds a line to FILE, bench/check_load.tsv: commit, start, passed, failed, skipped, seconds, load
# average. So it may be stopped at any time and goes on where it was; a run that was stopped leaves no line.
# Section check-load is made from FILE after every run; --rows makes it without one.
#
# What a run that failed printed, and the logs of its tests, are kept in a folder that is named.
set -u
cd "$(dirname "$0")/.." || exit 1
rows=$PWD/bench/check_load.tsv mode=quiet beside=0
while [[ ${1:-} == --* ]]; do
    case $1 in
    --load) mode=load ;;
    --beside) beside=1 ;;
    --rows) mode=rows ;;
    *) sed -n '3s/^# //p; 7s/^# //p' "$0" >&2; exit 2 ;;
    esac
    shift
done
[ -z "${MOAT:-}" ] || [ -n "${CHECK_RUNS:-}" ] || exit 0
T=$(mktemp -d) || exit 1
chmod 755 "$T"  # a test changes its user, and uses what was built
loads=()
finish() {
    local pid
    for pid in "${loads[@]}"; do kill "$pid" 2>/dev/null; done
    rm -rf "$T/clone" "$T/large.c"
    if [ -n "$(find "$T" -name 'failed-*' -print -quit)" ]; then
        echo "kept: $T" >&2
    else
        rm -rf "$T"
    fi
}
trap finish EXIT
unset MOAT BUILD MAKEFLAGS MAKELEVEL

keep_failed() {  # keep_failed NAME LOG CLONE
    mv "$2" "$T/failed-$1"
    [ ! -d "$3/build/test-logs" ] || cp -r "$3/build/test-logs" "$T/failed-$1-logs"
    echo "run $1 failed: $T/failed-$1" >&2
}
summary() {  # summary LABEL < numbers: a row with average, median and worst
    sort -n | awk -v label="$1" '{ v[NR] = $1; sum += $1 }
        END { if (NR) printf "| %s | %.0f | %.0f | %.0f |\n", label, sum / NR,
            (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, v[NR] }'
}
head_of_table() {
    echo '| | average | median | worst |'
    echo '| --- | ---: | ---: | ---: |'
}

# --- fresh clones, on a machine that does nothing else ---

step() {  # step LOG COMMAND...: seconds of the clock and of processors, in $took
    local log=$1 status
    shift
    { TIMEFORMAT='%R %U %S'; time "$@" >>"$log" 2>&1 </dev/null; } 2>"$T/time"
    status=$?
    took=$(awk '{ print $1, $2 + $3 }' "$T/time")
    return $status
}
quiet() {  # quiet RUNS
    local run green=0 log build clone=$T/clone
    export CCACHE_DISABLE=1
    PATH=$(tr : '\n' <<<"$PATH" | grep -v ccache | paste -sd :)
    : >"$T/rows"
    for ((run = 1; run <= $1; run++)); do
        rm -rf "$clone"
        git clone -q . "$clone" || exit 1
        log=$T/log-$run
        if step "$log" make -C "$clone" variants && build=$took && step "$log" make -C "$clone" check; then
            green=$((green + 1))
            echo "$build $took" >>"$T/rows"
        else
            keep_failed $run "$log" "$clone"
        fi
        echo "run $run of $1: $green green" >&2
    done
    {
        printf '## What `make check` takes\n\n'
        bench/machine
        printf '\nFrom a fresh clone, without ccache: %d of %d runs green. Seconds of those.\n\n' $green "$1"
        head_of_table
        awk '{ print $1 }' "$T/rows" | summary 'build, clock'
        awk '{ print $2 }' "$T/rows" | summary 'build, processors'
        awk '{ print $3 }' "$T/rows" | summary 'tests, clock'
        awk '{ print $4 }' "$T/rows" | summary 'tests, processors'
        awk '{ print $1 + $3 }' "$T/rows" | summary 'all, clock'
        awk '{ print $2 + $4 }' "$T/rows" | summary 'all, processors'
    } | bench/section check-time
    [ $green = "$1" ]
}

# --- again and again, on a busy machine ---

compile() {  # without end
    while :; do cc -O2 -w -c -o /dev/null "$T/large.c"; done
}
start_load() {
    local i body='{ int s = 0; for (int i = 0; i < n; i++) s += a[i] * %d; return s; }'
    for ((i = 0; i < 20000; i++)); do printf "int f%d(int *a, int n) $body\n" $i $i; done >"$T/large.c"
    for ((i = 0; i < $(nproc); i++)); do
        compile &
        loads+=($!)
    done
}
watch_load() {  # the load average, every ten seconds, without end
    while :; do
        cut -d' ' -f1 /proc/loadavg
        sleep 10
    done
}
one_run() {  # one_run CLONE: the tests, and their line of FILE
    local log=$T/log started=$SECONDS at watcher status last commit
    commit=$(git -C "$1" rev-parse --short HEAD)
    at=$(date -u +%Y-%m-%dT%H:%MZ)
    watch_load >"$T/averages" &
    watcher=$!
    (cd "$1" && test/run build build/asan) >"$log" 2>&1 </dev/null
    status=$?
    kill $watcher
    last=$(tail -n 1 "$log")
    [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]] || return 1
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$commit" "$at" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" \
        "${BASH_REMATCH[4]:-0}" $((SECONDS - started)) \
        "$(awk '{ s += $1 } END { printf "%.1f", s / NR }' "$T/averages")" >>"$rows"
    [ $status = 0 ] || keep_failed "$at" "$log" "$1"
}
count_green() {
    awk -F '\t' '{ n++; green += $4 == 0 } END { printf "%d of %d runs green", green, n }' "$rows"
}
load_section() {
    [ -s "$rows" ] || return 0
    {
        printf '## The tests of `make check` on a busy machine\n\n'
        bench/machine
        printf '\n%s, by `bench/check.sh --load`. Seconds, and load averages.\n\n' "$(count_green)"
        head_of_table
        cut -f 6 "$rows" | summary 'tests, clock'
        cut -f 7 "$rows" | summary 'load average'
        printf '\n| commit | runs | green | passed, of the last |\n| --- | ---: | ---: | ---: |\n'
        awk -F '\t' '!($1 in n) { order[++k] = $1 } { n[$1]++; green[$1] += $4 == 0; passed[$1] = $3 }
            END {
                for (i = 1; i <= k; i++) {
                    c = order[i]
                    print "| " c " | " n[c] " | " green[c] " | " passed[c] " |"
                }
            }' "$rows"
    } | bench/section check-load
}
loaded() {  # loaded RUNS
    local clone=${CHECK_CLONE:-$PWD/build/check-load} head built
    head=$(git rev-parse HEAD)
    [ -d "$clone/.git" ] || git clone -q . "$clone" || exit 1
    built=$(cat "$clone/build/check-load-built" 2>/dev/null)
    if [ "$built" != "$head" ]; then
        git -C "$clone" fetch -q "$PWD" "$head" && git -C "$clone" checkout -q --detach "$head" || exit 1
        make -C "$clone" variants >"$T/build" 2>&1 || { tail -n 20 "$T/build" >&2; exit 1; }
        echo "$head" >"$clone/build/check-load-built"
    fi
    [ $beside = 1 ] || start_load
    touch "$rows"
    while [ "$(wc -l <"$rows")" -lt "$1" ]; do
        one_run "$clone" || exit 1
        load_section
        echo "$(count_green)" >&2
    done
    awk -F '\t' '$4 { bad = 1 } END { exit bad }' "$rows"
}

case $mode in
quiet) quiet "${1:-${CHECK_RUNS:-5}}" ;;
load) loaded "${1:-20}" ;;
rows) load_section ;;
esac
