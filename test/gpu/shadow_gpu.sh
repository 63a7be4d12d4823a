#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=shadow on a real GPU, in some two minutes: the cases of test/guard/shadow_errors.cu and their twins,
# all of them in one process for each way of proving, random kernels of the classes that redzones can see,
# what starting costs, and small kernels measured (bench/shadow-gpu.sh). What a text costs to compile is paid
# once: a first process fills the cache. SECTION names a file for the results, if any. SHADOW_DEVICE=cpu
# tries the script where there is no GPU, without the measurements.
set -u
cd "$(dirname "$0")/../.." || exit 1
device=${SHADOW_DEVICE:-gpu}
[ "$device" = cpu ] || nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache T device
passed=0 failed=0

nvcc -std=c++17 -lineinfo -gencode arch=compute_75,code=compute_75 -cudart shared -L"$BUILD/lib/moat" \
    -Iinclude -o "$T/shadow_errors" test/guard/shadow_errors.cu >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }
"$MOAT" --device="$device" --mode=off "$T/shadow_errors" list >"$T/list" 2>/dev/null </dev/null
echo "[$SECONDS s] compiled"

start() {  # start OPTION...: a small program, from its start to its end
    local from
    from=$(date +%s%N)
    timeout 100 "$MOAT" --device="$device" "$@" "$T/shadow_errors" good null >"$T/log" 2>&1 </dev/null
    echo "start $*: $((($(date +%s%N) - from) / 1000000)) ms $(grep -o 'no table of buffers.*' "$T/log")"
}
{
    start --mode=off
    start --mode=shadow
    start --mode=shadow
} | tee "$T/starts"

all() {  # all good|bad on|off
    timeout 100 "$MOAT" --device="$device" --mode=shadow --proofs="$2" --print-limit=0 --error-exitcode=0 \
        "$T/shadow_errors" "$1" all >"$T/all.$1.$2" 2>&1 </dev/null
    echo "status $?" >>"$T/all.$1.$2"
}
random() {  # random CLASS on|off
    timeout 100 "$MOAT" --device="$device" --mode=shadow --proofs="$2" --format=json \
        --log-file="$T/json.$1.$2" --print-limit=0 "$BUILD/tool/check_classes" 23 30 "$1" \
        >"$T/plan.$1.$2" 2>"$T/err.$1.$2" </dev/null
    python3 test/guard/check_compare.py "$T/plan.$1.$2" "$T/json.$1.$2" >"$T/compared.$1.$2" 2>&1
    echo "status $?" >>"$T/compared.$1.$2"
}
export -f all random
printf '%s\0' all good on all good off all bad on all bad off | xargs -0 -n 3 -P 4 bash -c '"$@"' one
for which in good bad; do
    for proofs in on off; do
        python3 test/gpu/shadow_cases.py "$T/list" $which "$T/all.$which.$proofs" >"$T/said"
        read -r more wrong < <(tail -n 1 "$T/said")
        passed=$((passed + ${more:-0})) failed=$((failed + ${wrong:-1}))
        [ "${wrong:-1}" = 0 ] || sed "s/^/proofs $proofs: /" "$T/said"
    done
done
echo "[$SECONDS s] cases: $passed passed, $failed failed"

for class in adjacent freed late idioms; do
    printf '%s\0' random $class off random $class on
done | xargs -0 -n 3 -P 4 bash -c '"$@"' one
for said in "$T"/compared.*; do
    if grep -q '^status 0' "$said"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL class ${said##*/compared.}"
        tail -n 8 "$said" "${said/compared/err}" | cut -c 1-300
    fi
done
echo "[$SECONDS s] classes: $passed passed, $failed failed"

if [ "$device" = gpu ]; then
    start --mode=shadow --shadow-scale=8 | tee -a "$T/starts"
    svg=${SECTION:+$(dirname "$SECTION")/shadow-gpu.svg}
    SHADOW_SVG=$svg SHADOW_ROUNDS=2 SHADOW_REPEATS=8 timeout 150 bench/shadow-gpu.sh >"$T/times"
    cat "$T/times"
fi
if [ -n "${SECTION:-}" ] && [ -s "$T/times" ]; then
    {
        echo '## --mode=shadow on a GPU'
        echo
        bench/machine
        echo
        echo "Programs with errors, their twins, and random kernels: $passed passed, $failed failed."
        echo
        echo 'A small program, from its start to its end; the first time its kernels are compiled:'
        echo
        echo '```'
        cat "$T/starts"
        echo '```'
        echo
        cat "$T/times"
        echo
        echo '![time by encoding](shadow-gpu.svg)'
    } >"$SECTION"
fi
echo "[$SECONDS s] $passed passed, $failed failed"
[ $failed = 0 ]
