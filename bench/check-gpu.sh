#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=check costs kernels on a GPU, by the time that CUPTI gives for each launch (kernel_times.c): the
# programs of the suite as they are, from PTX that the driver has compiled, and under --mode=check with proofs
# and without, in turns, CHECK_GPU_RUNS times. At the end, while time is left, under compute-sanitizer.
# CHECK_GPU_PROGRAMS=FILE: other programs than the suite's, by lines of a name, a path and arguments, with
# tabs between; then no section of doc/results.md is written. CHECK_GPU_SECONDS: the rounds end after so long.
# CHECK_GPU_WARM=no: the caches are filled already, by a call with CHECK_GPU_RUNS=0.
set -eu
here=$(dirname "$0")
nvidia-smi -L >/dev/null 2>&1 || { echo 'check-gpu.sh: no GPU on this machine' >&2; exit 0; }
RUNS=${CHECK_GPU_RUNS:-3} LIMIT=${CHECK_GPU_SECONDS:-100000}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
library=$("$here/cupti_library" kernel_times "$T") || exit 0
suite=$BUILD/cache/gpu-suite
list=${CHECK_GPU_PROGRAMS:-$T/list}

# The last argument of each program of the suite is how often it repeats its work: a fifth of it is enough.
if [ -z "${CHECK_GPU_PROGRAMS:-}" ]; then
    # shellcheck source=bench/canary_programs
    . "$here/canary_programs"
    canary_programs_build
    for name in $(canary_programs_names); do
        printf '%s\t%s\t%s\n' "$name" "$suite/$name" \
            "$(canary_programs_arguments "$name" | awk '{ $NF = int($NF / 5) + 1; print }')"
    done >"$list"
fi

# run LABEL NAME COMMAND...: rows LABEL NAME LAUNCHES NANOSECONDS KERNEL, or LABEL NAME failed STATUS
run() {
    local label=$1 name=$2 status=0
    shift 2
    rm -f "$T/$name.times"
    CUPTI_WATCH=$T/$name.times CUDA_INJECTION64_PATH=$library timeout 40 "$@" >"$T/$name.out" 2>&1 \
        </dev/null || status=$?
    if [ $status = 77 ]; then
        echo "$label $name skipped 0 -"
    elif [ $status != 0 ] || grep -q 'ERROR: moat' "$T/$name.out"; then
        echo "$label $name failed $status $(tail -n 1 "$T/$name.out" | tr ' ' _)"
        echo "check-gpu.sh: $label $name: status $status: $(tail -n 1 "$T/$name.out")" >&2
    else
        sed -n "s/^kernel /$label $name /p" "$T/$name.times"
        sed -n "s/^ *kernel launches checked */$label $name launches 0 checked:/p
            s/^ *of these proved right.*checks */$label $name launches 0 proved:/p
            s/^ *of these proved in part.*checks */$label $name launches 0 in_part:/p" "$T/$name.out"
    fi
}

turn() {  # turn NAME PROGRAM ARGUMENT...
    local name=$1
    shift
    [ -n "${warm:-}" ] || run native "$name" "$@"
    CUDA_FORCE_PTX_JIT=1 run ptx "$name" "$@"
    run check "$name" "$MOAT" --device=gpu --mode=check "$@"
    run noproofs "$name" "$MOAT" --device=gpu --mode=check --proofs=off "$@"
}
export -f run turn
export T MOAT library

# The caches, moat's and the driver's, are filled by all at once.
[ "${CHECK_GPU_WARM:-yes}" = no ] || while IFS=$'\t' read -r name program arguments; do
    echo "$name $program $arguments"
done <"$list" |
    warm=yes xargs -P "$(nproc)" -I{} bash -c \
        'turn {} >"$0.$(echo {} | cut -d " " -f 1)" 2>&1' "$T/warm" || true

for ((i = 0; i < RUNS; i++)); do
    while IFS=$'\t' read -r name program arguments; do
        [ $SECONDS -lt "$LIMIT" ] || break 2
        # shellcheck disable=SC2086
        turn "$name" "$program" $arguments >>"$T/rows"
    done <"$list"
done

# The work that programs of the suite time themselves; a hundredth of the repetitions is enough for a tool
# that takes hundreds of times as long.
sanitizer=$(command -v compute-sanitizer || true)
seconds() {
    PROGRAM_TIME=1 timeout 20 "$@" 2>&1 </dev/null | sed -n 's/^seconds: //p'
}
if [ -n "$sanitizer" ] && [ -z "${CHECK_GPU_PROGRAMS:-}" ]; then
    while IFS=$'\t' read -r name program arguments; do
        [ $SECONDS -lt "$LIMIT" ] || break
        arguments=$(awk '{ $NF = int($NF / 20) + 1; print }' <<<"$arguments")
        # shellcheck disable=SC2086
        echo "sanitizer $name $(seconds "$program" $arguments) $(seconds "$sanitizer" "$program" $arguments)"
    done <"$list" >>"$T/rows"
fi
[ "$RUNS" != 0 ] || exit 0
[ -z "${CHECK_GPU_ROWS:-}" ] || cp "$T/rows" "$CHECK_GPU_ROWS"
{
    echo '## Kernels under --mode=check on a GPU'
    echo
    "$here/machine"
    python3 "$here/check_gpu.py" "$T/rows" "$list"
} >"$T/section"
cat "$T/section"
[ -n "${CHECK_GPU_PROGRAMS:-}" ] || "$here/finish" check-gpu "$T/section"
