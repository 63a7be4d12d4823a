#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=count adds to the start of the suite's programs, with an empty and with a warm cache, and to
# PyTorch's import with the first step. Each program runs at its smallest size, ROUNDS times each way, the
# ways in turns: without moat (on the CPU device: --mode=off) and with a warm cache; once with an empty one.
# count_start.sh [NAME...]: all programs and pytorch, and the tables go to doc/results.md; or these, and they
# are printed. An idle process keeps the GPU open meanwhile, because otherwise the driver starts and stops it
# with every program. SECTION=FILE: they go there, and PyTorch's to FILE.torch. Programs are taken from
# $BUILD/programs, or compiled. JOBS programs at a time, each on cores of its own. After a SIGTERM the tables
# have what there is.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build} MOAT=${MOAT:-$BUILD/bin/moat} ROUNDS=${ROUNDS:-7} JOBS=${JOBS:-1} \
    TORCH_ROUNDS=${TORCH_ROUNDS:-5}
device=cpu
! nvidia-smi -L >/dev/null 2>&1 || device=gpu
T=$(mktemp -d) || exit 1
trap 'exec {hold}>&-; wait; rm -rf "$T"' EXIT
export BUILD XDG_CACHE_HOME=$T/cache

# Ends with the pipe.
exec {hold}>/dev/null
kept=
if [ "$device" = gpu ] && [ -x "$BUILD/bench/guard_calls" ]; then
    # shellcheck disable=SC2034
    exec {hold}> >("$BUILD/bench/guard_calls" >/dev/null)
    kept=', while an idle process keeps the GPU open'
fi

program() {  # program NAME SM: its path
    [ ! -x "$BUILD/programs/$1" ] || { echo "$BUILD/programs/$1"; return; }
    command -v nvcc >/dev/null || return 1
    if [ "$device" = cpu ]; then
        nvcc -cudart shared -L"$BUILD/lib/moat" "$(test/programs/object "$1" "$2")" -o "$T/$1" || return 1
    else
        nvcc -O2 -gencode 'arch=compute_90,code=[sm_90,compute_90]' "test/programs/$1.cu" -o "$T/$1" ||
            return 1
    fi
    echo "$T/$1"
}

# Checks without importing it, which takes seconds.
has_torch() {
    python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' 2>/dev/null
}
torch_version() {
    python3 -c 'import importlib.metadata; print(importlib.metadata.version("torch"))' 2>/dev/null
}

took() {  # took COMMAND...: milliseconds; status 1 if it failed
    local start=${EPOCHREALTIME/./} us
    timeout 100 "$@" >/dev/null 2>&1 </dev/null || return 1
    us=$((${EPOCHREALTIME/./} - start))
    echo $((us / 1000)).$((us / 100 % 10))
}

# measure NAME COMMAND...: a row NAME COLD, then a pair PLAIN,WARM for each round
measure() {
    local name=$1 rounds=$ROUNDS i cold pairs='' one
    shift
    local plain=("$@") warm=("$MOAT" --device="$device" --mode=count "$@")
    [ "$device" = gpu ] || plain=("$MOAT" --device=cpu --mode=off "$@")
    [ "$name" != pytorch ] || rounds=$TORCH_ROUNDS
    took "${plain[@]}" >/dev/null || return 1
    cold=$(took "${warm[@]}") || return 1
    for ((i = 0; i < rounds; i++)); do
        one=$(took "${plain[@]}") || return 1
        pairs+=" $one,$(took "${warm[@]}")" || return 1
    done
    echo "$name $cold$pairs"
}

# Median, average of the differences and their 95% interval (Student's t), for each row.
statistics() {
    awk '
        function median(v, n,   i, j, x) {
            for (i = 2; i <= n; i++) {
                x = v[i]; for (j = i - 1; j > 0 && v[j] > x; j--) v[j + 1] = v[j]; v[j + 1] = x }
            return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        }
        function student(n) {
            if (n > 6)
                return n > 30 ? 1.96 : n > 15 ? 2.07 : n > 9 ? 2.2 : 2.4
            return n > 4 ? 2.78 : n > 3 ? 3.18 : n > 2 ? 4.3 : 12.7
        }
        {
            n = NF - 2; sum = square = 0
            for (i = 1; i <= n; i++) {
                split($(i + 2), p, ","); plain[i] = p[1]; warm[i] = p[2];
                d[i] = p[2] - p[1]; sum += d[i]; square += d[i] * d[i]
            }
            mean = sum / n
            rest = square - sum * mean
            half = n > 1 ? student(n) * sqrt((rest > 0 ? rest : 0) / (n - 1) / n) : 0
            print $1, median(plain, n), $2, median(warm, n), median(d, n), mean, mean - half, mean + half
        }'
}

title() {  # title WHAT ROUNDS
    echo "## $1 under --mode=count, on $([ "$device" = cpu ] && echo 'the CPU device' || echo 'a GPU')"
    echo
    bench/machine
    echo
    echo "Milliseconds from start to end; plain," \
        "and with a warm cache, in turns, $2 times, $JOBS at a time$kept."
    echo
}

suite_table() {
    grep -qv '^pytorch ' "$T/rows" || return 0
    title 'Start of programs' "$ROUNDS"
    echo '| program | plain ms | empty cache | warm cache | added: median | average | 95% interval |'
    echo '| --- | ---: | ---: | ---: | ---: | ---: | ---: |'
    grep -v '^pytorch ' "$T/rows" | statistics | tee "$T/figures" |
        awk '{ printf "| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f to %.1f |\n",
              $1, $2, $3, $4, $5, $6, $7, $8 }'
    echo
    sort -n -k5,5 "$T/figures" | awk '
        { v[NR] = $5; sum += $5; square += $5 * $5; if ($5 <= 20) within++ }
        END {
            mean = sum / NR; half = NR > 1 ? 1.96 * sqrt((square - sum * mean) / (NR - 1) / NR) : 0
            printf "Added by a warm cache, of the medians of %d programs: %.1f ms on average " \
                "(95%%: %.1f to %.1f), %.1f in the middle, %.1f at worst; %d within 20 ms.\n",
                NR, mean, mean - half, mean + half,
                NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[NR], within
        }'
}

torch_table() {
    grep -q '^pytorch ' "$T/rows" || return 0
    title 'Start of PyTorch' "$TORCH_ROUNDS"
    echo "PyTorch $(torch_version), import and first step of a small ResNet:"
    echo
    echo '| plain ms | empty cache | warm cache | added: median | average | 95% interval |'
    echo '| ---: | ---: | ---: | ---: | ---: | ---: |'
    grep '^pytorch ' "$T/rows" | statistics |
        awk '{ printf "| %.0f | %.0f (%+.1f%%) | %.0f | %+.1f%% | %+.1f%% | %+.1f%% to %+.1f%% |\n",
        $2, $3, ($3 / $2 - 1) * 100, $4, $5 / $2 * 100, $6 / $2 * 100, $7 / $2 * 100, $8 / $2 * 100 }'
}

worker() {  # worker NUMBER: every JOBS-th program
    local per=$(($(nproc) / JOBS)) line=0 name sm args path
    [ $per -gt 0 ] && [ "$JOBS" -gt 1 ] &&
        taskset -cp "$(($1 * per))-$(($1 * per + per - 1))" $BASHPID >/dev/null
    for name in "${names[@]}"; do
        [ "$name" != pytorch ] || continue
        [ $((line++ % JOBS)) = "$1" ] || continue
        IFS=$'\t' read -r name sm args _ < <(grep "^$name	" test/programs/programs.tsv)
        path=$(program "$name" "$sm") || { echo "$name: there is no program" >&2; continue; }
        # shellcheck disable=SC2086
        measure "$name" "$path" $args >>"$T/rows.$1" || echo "$name: does not run on this device" >&2
    done
}

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 test/programs/programs.tsv | cut -f 1; echo pytorch)
late=
trap late=1 TERM
for ((i = 0; i < JOBS; i++)); do worker $i & done
wait
# shellcheck disable=SC2046
[ -z "$late" ] || kill $(jobs -rp) 2>/dev/null
cat "$T"/rows.* 2>/dev/null | sort >"$T/rows"
if [ -z "$late" ] && [[ " ${names[*]} " == *' pytorch '* ]] && [ "$device" = gpu ] && has_torch; then
    measure pytorch python3 bench/torch_step.py first >>"$T/rows" &
    wait $! || [ -n "$late" ] || echo 'PyTorch: does not run' >&2
    # shellcheck disable=SC2046
    [ -z "$late" ] || kill $(jobs -rp) 2>/dev/null
fi
[ -s "$T/rows" ] || { echo 'nothing was measured'; exit 77; }
if [ -n "${SECTION:-}" ]; then
    suite_table | tee "$SECTION"
    torch_table | tee "$SECTION.torch"
elif [ $# -gt 0 ]; then
    suite_table
    torch_table
else
    suite_table | bench/section "count-start-$device"
    ! grep -q '^pytorch ' "$T/rows" || torch_table | bench/section "count-start-torch-$device"
fi
