#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The suite on a real GPU: every program, small and large, must find its own result right. The table of run
# times goes to the file SECTION names, if any: bench/section suite-gpu <FILE puts it into doc/results.md.
# programs.sh driver: from PTX, on the driver API alone (test/cpu/driver_route.h), each run in another way.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
flags=-arch=$arch
if [ "${1:-}" = driver ]; then
    nvcc -std=c++17 -Xcompiler -Wno-deprecated-declarations -odir "$T" -c test/cpu/driver_route*.cpp || exit 1
    flags="-gencode arch=compute_${arch#sm_},code=compute_${arch#sm_} -cudart none"
    flags+=" $(echo "$T"/driver_route*.o)"
    flags+=" -L$(dirname "$(command -v nvcc)")/../lib64/stubs -lcuda"
fi

tail -n +2 test/programs/programs.tsv | cut -f 1 | xargs -P "$(nproc)" -I{} sh -c \
    "nvcc -O3 $flags -o $T/{} test/programs/{}.cu >$T/{}.log 2>&1 || echo {} >>$T/failed"
[ ! -s "$T/failed" ] || { echo "nvcc fails on $(tr '\n' ' ' <"$T/failed")"; exit 1; }

passed=0 failed=0 skipped=0
run() {  # run NAME ARGS: prints milliseconds, or what the program said
    local start=${EPOCHREALTIME/./} status
    # shellcheck disable=SC2086
    DRIVER_ROUTE=$((passed + failed + skipped)) timeout 120 "$T/$1" $2 >"$T/out" 2>&1
    status=$?
    case $status in
    0) passed=$((passed + 1)) said="$(((${EPOCHREALTIME/./} - start) / 1000))" ;;
    77) skipped=$((skipped + 1)) said=$(tail -n 1 "$T/out") ;;
    *) failed=$((failed + 1)) said="status $status: $(tail -n 1 "$T/out")"; echo "FAIL $1 $2: $said" ;;
    esac
}

{
    echo '## The suite on a GPU'
    echo
    bench/machine
    echo
    echo 'Wall time of the whole program, start-up and its own check included.'
    echo
    echo '| program | small ms | large arguments | large ms |'
    echo '| --- | --- | --- | --- |'
} >"$T/section"
while IFS=$'\t' read -r name _ small large _; do
    run "$name" "$small"
    first=$said
    run "$name" "$large"
    echo "| $name | $first | $large | $said |" >>"$T/section"
done < <(tail -n +2 test/programs/programs.tsv)
result="$passed passed, $failed failed"
[ $skipped = 0 ] || result+=", $skipped skipped"
printf '\n%s\n' "$result." >>"$T/section"
[ -z "${SECTION:-}" ] || cp "$T/section" "$SECTION"
echo "$result"
[ $failed = 0 ] && [ $passed -gt 0 ]
