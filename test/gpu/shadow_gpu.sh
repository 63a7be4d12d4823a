#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=shadow on a real GPU, in less than three minutes: programs with errors and their twins
# (test/guard/shadow_errors.cu), random kernels of the classes that redzones can see, what starting costs, and
# small kernels measured (bench/shadow-gpu.sh). SECTION names a file for the results, if any.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache T
passed=0 failed=0

if command -v nvcc >/dev/null; then
    nvcc -std=c++17 -lineinfo -gencode arch=compute_75,code=compute_75 -cudart shared -L"$BUILD/lib/moat" \
        -o "$T/shadow_errors" test/guard/shadow_errors.cu >"$T/log" 2>&1 || cat "$T/log"
    "$MOAT" --device=gpu --mode=off "$T/shadow_errors" list >"$T/list" 2>/dev/null </dev/null
else
    echo 'no nvcc: no programs, no times'
    : >"$T/list"
fi

one() {  # one GOOD NAME TYPES OPTION...: prints what is wrong
    local which=$1 name=$2 types=$3 log status found
    shift 3
    log=$T/$which.$name.${*//\//_}
    timeout 60 "$MOAT" --device=gpu --mode=shadow --print-limit=0 "$@" "$T/shadow_errors" "$which" "$name" \
        >"$log" 2>&1 </dev/null
    status=$?
    found=$(sed -n 's/.*ERROR: moat: \([a-z-]*\).*/\1/p' "$log" | uniq | tr '\n' ' ')
    found=${found% }
    if [ "$which" = good ] || [ "$types" = missed ]; then
        [ $status = 0 ] && [ -z "$found" ] && grep -q 'kernel launches checked' "$log" && return
    else
        [ $status = 97 ] && [[ $found =~ ^($types)$ ]] && grep -q '^ended$' "$log" && return
    fi
    echo "FAIL $which $name $*: status $status, reported: ${found:-nothing}"
    grep -v '^    ' "$log" | tail -n 25 | sed 's/^/    | /'
}
export -f one
while IFS=$'\t' read -r name types; do
    for which in good bad; do
        printf '%s\0' "$which" "$name" "$types" --proofs=on
        printf '%s\0' "$which" "$name" "$types" --proofs=off
    done
done <"$T/list" | xargs -0 -r -n 4 -P 4 bash -c 'one "$@" >"$T/said.$1.$2.$4" 2>&1' one
for said in "$T"/said.*; do
    [ -e "$said" ] || continue
    if [ -s "$said" ]; then failed=$((failed + 1)); cat "$said"; else passed=$((passed + 1)); fi
done
echo "[$SECONDS s] programs: $passed passed, $failed failed"

for class in adjacent freed late idioms; do
    for proofs in on off; do
        timeout 60 "$MOAT" --device=gpu --mode=shadow --proofs=$proofs --no-cache --format=json \
            --log-file="$T/json" --print-limit=0 \
            "$BUILD/tool/check_classes" 23 60 $class >"$T/plan" 2>"$T/err" </dev/null
        if python3 test/guard/check_compare.py "$T/plan" "$T/json" >"$T/log" 2>&1; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL class $class, proofs $proofs"
            tail -n 8 "$T/log" "$T/err" | cut -c 1-300
        fi
    done
done
echo "[$SECONDS s] classes"

# What the first launch costs: the shadow is made then.
if [ -s "$T/list" ]; then
    for options in --mode=off --mode=check --mode=shadow '--mode=shadow --shadow-scale=8'; do
        for i in 1 2 3; do
            from=$(date +%s%N)
            # shellcheck disable=SC2086
            "$MOAT" --device=gpu $options "$T/shadow_errors" good null >"$T/log" 2>&1 </dev/null
            echo "start $options, run $i: $((($(date +%s%N) - from) / 1000000)) ms" \
                "$(grep -o 'no table of buffers.*' "$T/log")"
        done
    done | tee "$T/starts"
    SHADOW_ROUNDS=2 SHADOW_REPEATS=8 timeout 100 bench/shadow-gpu.sh >"$T/times"
    cat "$T/times"
fi
if [ -n "${SECTION:-}" ] && [ -s "${T}/times" ]; then
    {
        echo '## --mode=shadow on a GPU'
        echo
        bench/machine
        echo
        echo "Programs with errors, their twins, and random kernels: $passed passed, $failed failed."
        echo
        echo 'A small program, from its start to its end, three times:'
        echo
        echo '```'
        cat "$T/starts"
        echo '```'
        echo
        echo 'Eight kernels, in microseconds as the driver compiles their PTX, and ratios to it: under' \
            '--mode=check, and under --mode=shadow with proofs, and without, by the bytes of memory that a' \
            'byte' \
            'of the shadow describes, with its load and without.'
        echo
        cat "$T/times"
    } >"$SECTION"
fi
echo "[$SECONDS s] $passed passed, $failed failed"
[ $failed = 0 ]
