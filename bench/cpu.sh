#!/bin/bash
# SPDX-License-Identifier: MIT
# How fast the CPU device is: the kernels of test/programs at the sizes of cpu_sizes.tsv, one core and two,
# against the same work in plain C (cpu_kernels); loading and launching. cpu.sh [NAME...]: all programs, or
# these; with names, nothing is written into doc/. CPU_BENCH_BEFORE=MOAT: the moat of an earlier build,
# against which the programs are timed in turns; CPU_BENCH_RUNS.
set -eu
here=$(dirname "$0")
RUNS=${CPU_BENCH_RUNS:-5}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cache=$BUILD/cache/bench
mkdir -p "$cache"

size_of() {  # size_of NAME COLUMN
    awk -F'\t' -v name="$1" -v column="$2" '$1 == name { print $column }' "$here/cpu_sizes.tsv"
}

build() {  # build NAME: the program, and its plain twin if there is one
    local source=$here/../test/programs/$1.cu twin=$here/cpu_kernels/plain_$1.c
    if [ ! "$cache/$1" -nt "$source" ]; then
        nvcc -O2 -cudart shared -gencode arch=compute_75,code=compute_75 -o "$cache/$1" "$source" || return 1
    fi
    if [ -f "$twin" ] && [ ! "$cache/plain_$1" -nt "$twin" ]; then
        "${CC:-gcc}" -std=gnu11 -O2 -D_GNU_SOURCE -o "$cache/plain_$1" "$twin" -lm || return 1
    fi
}

# Rows of $T/rows: LABEL RUN NAME KERNEL seconds cpu-seconds warp-insns thread-insns branches divergent
# launches
run() {  # run LABEL RUN NAME OPTION...: status 1 if the program fails
    local label="$1 $2" name=$3
    shift 3
    # shellcheck disable=SC2046
    "${moat:-$MOAT}" --device=cpu --mode=off "$@" "$cache/$name" $(size_of "$name" 2) >/dev/null \
        2>"$T/log" </dev/null || return 1
    awk -v label="$label" -v name="$name" '
        function get(heading) { return heading in at ? $at[heading] : 0 }
        !/^moat: kernels: / { next }
        $3 == "launches" { split("", at); for (i = 3; i <= NF; i++) at[$i] = i; next }
        {
            print label, name, $NF, get("seconds"), get("cpu-seconds"),
                get("warp-insns"), get("thread-insns"),
                get("branches"), get("divergent"), get("launches")
        }' "$T/log" >>"$T/rows"
}

plain() {  # plain RUN NAME: the program's twin
    [ -x "$cache/plain_$2" ] || return 0
    # shellcheck disable=SC2046
    "$cache/plain_$2" $(size_of "$2" 2) |
        awk -v run="$1" -v name="$2" '{ print "plain", run, name, "-", $2, $2 }' >>"$T/rows"
}

fail() {  # fail NAME: it ran before
    echo "cpu.sh: $1 failed: $(tail -n 1 "$T/log")" >&2
    exit 1
}

# About 100 kB of PTX out of the programs' own, as many as their names allow.
large_text() {
    local name
    : >"$T/large.ptx"
    for name in "${names[@]}"; do
        "$MOAT" ptx print --raw "$cache/$name" >"$T/one.ptx"
        [ ! -s "$T/large.ptx" ] || sed -i -E '/^\.(version|target|address_size)/d' "$T/one.ptx"
        cat "$T/large.ptx" "$T/one.ptx" >"$T/both.ptx"
        [ "$(stat -c %s "$T/both.ptx")" -lt 105000 ] || continue
        ! "$MOAT" ptx verify "$T/both.ptx" >/dev/null 2>&1 || mv "$T/both.ptx" "$T/large.ptx"
    done
}

report() {  # report TABLE: kernels, summary, plain or threads, from $T/rows
    awk -v table="$1" -v least=1e6 -v least_launch=20e-6 -f "$here/cpu_report.awk" \
        "$here/cpu_sizes.tsv" "$T/rows"
}

if ! command -v nvcc >/dev/null; then
    echo 'cpu.sh: no nvcc here, so none of the programs: only calls are measured' >&2
    "$BUILD/bench/cpu_calls"
    exit 0
fi
mapfile -t names < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else cut -f 1 "$here/cpu_sizes.tsv"; fi)
failed=()
for name in "${names[@]}"; do
    if ! build "$name" || ! run count 0 "$name" --stats --cpu-threads=1; then
        failed+=("$name")
        echo "cpu.sh: $name does not run: $(tail -n 1 "$T/log" 2>/dev/null)" >&2
    fi
done
for ((i = 0; i < RUNS; i++)); do
    for name in "${names[@]}"; do
        [[ " ${failed[*]} " != *" $name "* ]] || continue
        run one $i "$name" --times --cpu-threads=1 || fail "$name"
        # Programs that the earlier one does not run are not compared.
        [ -z "${CPU_BENCH_BEFORE:-}" ] ||
            moat=$CPU_BENCH_BEFORE run before $i "$name" --times --cpu-threads=1 || true
        [ "$(nproc)" -lt 2 ] || run two $i "$name" --times --cpu-threads=2 || fail "$name"
        plain $i "$name"
    done
done
# The same with the instruction sets of other processors, once.
lanes=$("$MOAT" info | sed -n 's/.*lanes on //p' | head -n 1)
for other in avx2 plain; do
    "$MOAT" info --cpu-lanes=$other | grep -q "lanes on $other" || continue
    for name in "${names[@]}"; do
        [[ " ${failed[*]} " != *" $name "* ]] || continue
        [ $other = "$lanes" ] || run lanes-$other 0 "$name" --times --cpu-threads=1 --cpu-lanes=$other ||
            fail "$name"
    done
done
large_text

summary() {
    "$here/machine"
    echo "Lanes: $lanes. $((${#names[@]} - ${#failed[@]})) programs of the suite" \
        "at the sizes of \`bench/cpu_sizes.tsv\`, runs of each: $RUNS. Rates are thread instructions" \
        "per second of processor time" \
        "on one core; a kernel's time is the median of its runs. Kernels that execute less than a million" \
        "or take less than 20 us a launch are left out."
    [ ${#failed[@]} = 0 ] || echo "Not run: ${failed[*]}."
    echo
    report summary
    echo
    "$BUILD/bench/cpu_calls" "$T/large.ptx"
}
{
    echo '## CPU device'
    echo
    summary
} | tee "$T/results"
{
    echo '## Speed'
    echo
    echo "Written by \`bench/cpu.sh\`. $(tail -n +3 "$T/results")"
    for table in kernels plain threads ${CPU_BENCH_BEFORE:+before}; do
        echo
        report "$table"
    done
} >"$T/tables"
if [ $# -gt 0 ]; then
    cat "$T/tables"
else
    "$here/section" cpu-device <"$T/results"
    "$here/section" speed "$here/../doc/cpu-device.md" <"$T/tables"
fi
