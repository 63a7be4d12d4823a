#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=check on a real GPU, many commands side by side (units.bash): programs with errors and their twins
# (the scripts below, in parts), random kernels of every class (test/guard/check_classes.sh), and random
# kernels whose reports and results must be those of the CPU device. The table goes to the file SECTION names,
# if any: bench/section check-errors-gpu <FILE puts it into doc/results.md. DEVICE=cpu: on the CPU device, to
# test this script. Each kind of tests gets its first share early. Arguments: only the kinds of these names
# (classes, seeds, together, or a script's name); with the same GPU_ROWS the table has what other runs did.
# check_gpu.sh seed N: one round of the comparison with the CPU device.
set -u
cd "$(dirname "$0")/../.." || exit 1
device=${DEVICE:-gpu}
[ "$device" = cpu ] || nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT

# run DEVICE FOLDER SEED [KERNEL...]: in FOLDER source lines of errors, the program's output, and the log; the
# kernels are left out.
run() {
    mkdir -p "$2"
    timeout 200 "$MOAT" --device="$1" --mode=check --on-error=skip --format=json --log-file="$2/json" \
        --print-limit=0 "$BUILD/tool/check_differential" "$3" 500 "${@:4}" >"$2/out" 2>"$2/err" </dev/null
    echo "status $?" >>"$2/out"
    grep -o '"line":[0-9]*' "$2/json" | sort -u >"$2/lines"
}
# Kernels whose errors the CPU device has found, not check: they access memory that is nobody's by a pointer
# that was in no buffer. Check performs that, and a GPU ends the context.
strays() {  # strays FOLDER
    grep '"event":"error"' "$1/json" | grep -v '"call":' | grep -o '"name":"kernel_[0-9]*"' |
        tr -dc '0-9\n' | sort -un
}
if [ "${1:-}" = seed ]; then
    left_out=()
    run cpu "$T/cpu" "$2"
    # What a kernel has left in memory decides what others do.
    while mapfile -t more < <(strays "$T/cpu") && [ ${#more[@]} -gt 0 ] && [ ${#left_out[@]} -lt 50 ]; do
        left_out+=("${more[@]}")
        run cpu "$T/cpu" "$2" "${left_out[@]}"
    done
    run "$device" "$T/other" "$2" "${left_out[@]}"
    grep -q '^done' "$T/cpu/out" && [ -s "$T/cpu/lines" ] && cmp "$T/cpu/out" "$T/other/out" &&
        cmp "$T/cpu/lines" "$T/other/lines"
    status=$?
    if [ $status != 0 ]; then
        echo "kernels left out: ${left_out[*]:-none}"
        diff -U 2 "$T/cpu/lines" "$T/other/lines" | head -n 10
        echo 'on the CPU device:'
        cat "$T/cpu/out"
        echo "on the other device ($device):"
        cat "$T/other/out"
        tail -n 5 "$T/other/err"
        grep '"event":"error"' "$T/other/json" | tail -n 1 | cut -c 1-1000
        diff -U 1 "$T/cpu/out" "$T/other/out"
    fi
    echo "$((status == 0)) passed, $((status != 0)) failed"
    exit $status
fi

# shellcheck source=test/gpu/units.bash
. test/gpu/units.bash
export GUARD_DEVICE=$device CHECK_LIMIT=${CHECK_LIMIT:-100} TEST_ALL=0
[ -z "${GPU_CACHE:-}" ] || export CHECK_CACHE=$GPU_CACHE
units_begin check
# A script, and in how many parts it runs, each of some 20 programs.
parts='check_apart 3
check_mode 7
check_graphs 6
check_proofs 6
check_memory 4
check_children 4
check_certain 4
check_kheap 3
check_spaces 3
check_collective 3
check_races 2
check_linked 1
check_strays 1'

wanted=("$@")
want() {  # want NAME SECONDS COMMAND...: the unit, unless another kind is wanted
    local kind
    for kind in "${wanted[@]}"; do
        [[ $1 != "$kind".* ]] || break
        kind=
    done
    if [ ${#wanted[@]} = 0 ] || [ -n "$kind" ]; then
        unit "$@"
    else
        units_names+=("$1")
    fi
}

scripts() {  # scripts PART...
    local part script of words
    for part; do
        while read -r script of; do
            [ "$part" -le "$of" ] || continue
            [ "$of" = 1 ] && words='' || words="CASES_PART=$part/$of"
            # shellcheck disable=SC2086
            want "$script.$part" 240 env $words test/guard/$script.sh
        done <<<"$parts"
    done
}

# The same with the variants of a module together, which is not what a GPU gets by default.
together() {  # together PART
    local script
    for script in check_proofs check_mode; do
        want "together.$script.$1" 240 env MOAT_OPTIONS=check-variants=together CASES_PART="$1/6" \
            test/guard/$script.sh
    done
}

# 1,000 kernels for each class, in rounds of other random numbers: a few with variants apart, which are
# compiled one by one, and most of them together.
rounds='1 200 apart
2 800 together'
classes=$(test/guard/check_classes.sh list)
round() {  # round NUMBER
    local program class proofs cases variants
    read -r cases variants < <(sed -n "s/^$1 //p" <<<"$rounds")
    while read -r program class proofs; do
        want "classes.$1.$class.$proofs" 240 env CHECK_SEED=$((100 + $1)) CHECK_CASES="$cases" \
            MOAT_OPTIONS=check-variants="$variants" test/guard/check_classes.sh "$program" "$class" "$proofs"
    done <<<"$classes"
}

seeds() {  # seeds NUMBER...
    local seed
    for seed; do want "seeds.$seed" 240 "$0" seed "$seed"; done
}

scripts 1
seeds 1
together 1
round 1
scripts 2
round 2
together 3
scripts 3 4 5
seeds 2
together 5
scripts 6 7
seeds 3 4
units_end
if [ -n "${SECTION:-}" ]; then
    {
        echo '## Random kernels under --mode=check on a GPU'
        echo
        bench/machine
        echo
        echo '| programs of | result |'
        echo '| --- | --- |'
        while read -r script _; do
            echo "| \`$script.sh\` | $(units_sum "$script") |"
        done <<<"$parts"
        echo
        echo "Random kernels of $(cut -d ' ' -f 2 <<<"$classes" | sort -u | wc -l) classes, each with" \
            'proofs and without; each passes only if all of its kernels do:'
        echo
        echo '| kernels of each | variants | result |'
        echo '| ---: | --- | --- |'
        while read -r number cases variants; do
            echo "| $cases | $variants | $(units_sum "classes.$number") |"
        done <<<"$rounds"
        echo
        echo "With \`--check-variants=together\`, half of \`check_proofs.sh\` and of \`check_mode.sh\`:" \
            "$(units_sum together)."
        echo "500 random kernels whose reports and results must be those of the CPU device, 4 times:" \
            "$(units_sum seeds)."
    } >"$SECTION"
fi
[ $left = 0 ] || echo "parts that have not been run to their end: $left"
echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
[ $failed = 0 ] && [ $passed -gt 0 ]
