#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=count adds to the start of the suite's programs, with an empty and with a warm cache. Each program runs at its
# smallest size, ROUNDS times each way, the ways interleaved: without moat (on the CPU device: --mode=off), in the default
# mode, and with a warm cache; once with an empty one. Medians.
# count_start.sh [NAME...]: all programs, and the table goes to doc/results.md, or these, and it is printed.
# Programs are taken from $BUILD/programs, or compiled.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build} MOAT=${MOAT:-$BUILD/bin/moat} ROUNDS=${ROUNDS:-7}
device=cpu
! nvidia-smi -L >/dev/null 2>&1 || device=gpu
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache

program() {  # program NAME SM: its path
    [ ! -x "$BUILD/programs/$1" ] || { echo "$BUILD/programs/$1"; return; }
    command -v nvcc >/dev/null || return 1
    if [ $device = cpu ]; then
        nvcc -cudart shared -L"$BUILD/lib/moat" "$(test/programs/object "$1" "$2")" -o "$T/$1" || return 1
    else
        nvcc -O2 -gencode 'arch=compute_90,code=[sm_90,compute_90]' "test/programs/$1.cu" -o "$T/$1" || return 1
    fi
    echo "$T/$1"
}

took() {  # took COMMAND...: milliseconds; status 1 if it failed
    local start=${EPOCHREALTIME/./} us
    timeout 100 "$@" >/dev/null 2>&1 </dev/null || return 1
    us=$((${EPOCHREALTIME/./} - start))
    echo $((us / 1000)).$((us / 100 % 10))
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

measure() {  # measure NAME PROGRAM ARGS: a row
    local name=$1 i cold
    # shellcheck disable=SC2206
    local run=("$2" $3) plain=()
    [ $device = gpu ] || plain=("$MOAT" --device=cpu --mode=off)
    took "${plain[@]}" "${run[@]}" >/dev/null || return 1
    cold=$(took "$MOAT" --device=$device --mode=count "${run[@]}") || return 1
    rm -f "$T"/way.*
    for ((i = 0; i < ROUNDS; i++)); do
        took "${plain[@]}" "${run[@]}" >>"$T/way.plain"
        took "$MOAT" --device=$device "${run[@]}" >>"$T/way.api"
        took "$MOAT" --device=$device --mode=count "${run[@]}" >>"$T/way.warm"
    done
    echo "$name $(median <"$T/way.plain") $(median <"$T/way.api") $cold $(median <"$T/way.warm")"
}

table() {
    local where='the CPU device'
    [ $device = cpu ] || where='a GPU'
    echo "## Start under --mode=count, on $where"
    echo
    bench/machine
    echo
    echo "Milliseconds from start to end, medians of $ROUNDS. Added: warm over plain; over api, the default mode, stands what is --mode=count's own."
    echo
    echo '| program | plain | api | empty cache | warm cache | added | over api |'
    echo '| --- | ---: | ---: | ---: | ---: | ---: | ---: |'
    awk '{ printf "| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", $1, $2, $3, $4, $5, $5 - $2, $5 - $3 }' "$T/rows"
    echo
    for column in '5 2 plain' '5 3 api'; do
        # shellcheck disable=SC2086
        set -- $column
        awk -v a="$1" -v b="$2" '{ print $a - $b }' "$T/rows" | sort -n | awk -v over="$3" '{ v[NR] = $1; sum += $1 } END {
            printf "Warm over %s: %.1f ms on average, %.1f in the middle, %.1f at worst, of %d programs.\n", over, sum / NR,
                NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[NR], NR }'
    done
}

: >"$T/rows"
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 test/programs/programs.tsv | cut -f 1)
for name in "${names[@]}"; do
    IFS=$'\t' read -r name sm args _ < <(grep "^$name	" test/programs/programs.tsv)
    path=$(program "$name" "$sm") || { echo "$name: there is no program"; continue; }
    measure "$name" "$path" "$args" >>"$T/rows" || echo "$name: does not run on this device"
done
[ -s "$T/rows" ] || { echo 'nothing was measured'; exit 77; }
if [ $# -gt 0 ]; then
    table
else
    table | bench/section "count-start-$device"
fi
