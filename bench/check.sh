#!/bin/bash
# SPDX-License-Identifier: MIT
# check.sh [--load] [RUNS]: what `make check` takes from a fresh clone, without ccache, RUNS times (5), as
# section check-time of doc/results.md. --load: beside a compiler on every processor, as section check-load,
# with how many runs were green. What a run that failed printed, and the logs of its tests, are kept in a
# folder that is named. Not for `make bench`, which it would build anew five times: does nothing there unless
# CHECK_RUNS says how often.
set -u
cd "$(dirname "$0")/.." || exit 1
load=0 section=check-time
[ "${1:-}" != --load ] || { load=1 section=check-load; shift; }
[ -z "${MOAT:-}" ] || [ -n "${CHECK_RUNS:-}" ] || exit 0
runs=${1:-${CHECK_RUNS:-5}}
T=$(mktemp -d) || exit 1
loads=()
finish() {
    local pid
    for pid in "${loads[@]}"; do kill "$pid" 2>/dev/null; done
    rm -rf "$T/clone" "$T/large.c"
    rmdir "$T" 2>/dev/null || {
        [ -n "$(find "$T" -name 'failed-*')" ] && echo "kept: $T" >&2 || rm -rf "$T"
    }
}
trap finish EXIT
export CCACHE_DISABLE=1
PATH=$(tr : '\n' <<<"$PATH" | grep -v ccache | paste -sd :)
unset MOAT BUILD MAKEFLAGS MAKELEVEL

compile() {  # without end
    while :; do cc -O2 -w -c -o /dev/null "$T/large.c"; done
}
if [ $load = 1 ]; then
    body='{ int s = 0; for (int i = 0; i < n; i++) s += a[i] * %d; return s; }'
    for ((i = 0; i < 20000; i++)); do printf "int f%d(int *a, int n) $body\n" $i $i; done >"$T/large.c"
    for ((i = 0; i < $(nproc); i++)); do
        compile &
        loads+=($!)
    done
fi

step() {  # step LOG COMMAND...: seconds of the clock and of processors, in $took
    local log=$1 status
    shift
    { TIMEFORMAT='%R %U %S'; time "$@" >>"$log" 2>&1 </dev/null; } 2>"$T/time"
    status=$?
    took=$(awk '{ print $1, $2 + $3 }' "$T/time")
    return $status
}
green=0
: >"$T/rows"
for ((run = 1; run <= runs; run++)); do
    rm -rf "$T/clone"
    git clone -q . "$T/clone" || exit 1
    log=$T/log-$run
    build='' tests=''
    if step "$log" make -C "$T/clone" variants && build=$took && step "$log" make -C "$T/clone" check; then
        green=$((green + 1))
        echo "$build $took" >>"$T/rows"
        rm -f "$log"
    else
        mv "$log" "$T/failed-$run"
        [ ! -d "$T/clone/build/test-logs" ] || cp -r "$T/clone/build/test-logs" "$T/failed-$run-logs"
    fi
    echo "run $run of $runs: $green green" >&2
done
{
    bench/machine
    [ $load = 0 ] || echo 'A compiler ran on every processor beside it.'
    printf '\n`make check` from a fresh clone, without ccache: %d of %d runs green. Seconds of those.\n\n' \
        $green "$runs"
    echo '| | average | median | worst |'
    echo '| --- | ---: | ---: | ---: |'
    while read -r label column; do
        awk -v c="$column" '{
            n = split(c, k, "+"); s = 0; for (i = 1; i <= n; i++) s += $k[i]; print s }' "$T/rows" | sort -n |
            awk -v label="${label//_/ }" '{ v[NR] = $1; sum += $1 }
                END { if (NR) printf "| %s | %.0f | %.0f | %.0f |\n", label, sum / NR,
                    (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, v[NR] }'
    done <<'END'
build,_clock 1
build,_processors 2
tests,_clock 3
tests,_processors 4
all,_clock 1+3
all,_processors 2+4
END
} | bench/section $section
rm -f "$T/time" "$T/rows"
[ $green = "$runs" ]
