#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=shadow on a real GPU, several commands side by side (units.bash): the cases of
# test/guard/shadow_errors.cu and their twins, all of them in one process for each way of proving; random
# kernels of the classes that redzones can see, and of jumps over them, which are missed and counted; and each
# case in a process of its own, with its report (test/guard/shadow_mode.sh, in parts). bench/shadow-gpu.sh
# measures. SECTION names a file for the results,
# if any. DEVICE=cpu tries the script where there is no GPU. shadow_gpu.sh all good|bad on|off and
# shadow_gpu.sh random CLASS on|off: one of these commands.
set -u
cd "$(dirname "$0")/../.." || exit 1
device=${DEVICE:-gpu}
[ "$device" = cpu ] || nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=${GPU_CACHE:-$T/cache}
# Contexts in cases that end them: each takes a GPU up to a second, and beside other programs ten.
[ "$device" = cpu ] || export RESETS=2

all() {  # all good|bad on|off: each case in one process
    local passed failed program
    program=$(test/guard/compiled 75 shadow_errors -Iinclude -lcuda 2>"$T/log") || { cat "$T/log"; return 1; }
    cp "$program" "$T/shadow_errors"
    "$MOAT" --device=cpu --mode=off "$T/shadow_errors" list >"$T/list" 2>/dev/null </dev/null
    timeout 200 "$MOAT" --device="$device" --mode=shadow --proofs="$2" --print-limit=0 --error-exitcode=0 \
        "$T/shadow_errors" "$1" all >"$T/said" 2>&1 </dev/null
    echo "status $?" >>"$T/said"
    python3 test/gpu/shadow_cases.py "$T/list" "$1" "$T/said" >"$T/cases"
    read -r passed failed < <(tail -n 1 "$T/cases")
    [ "${failed:-1}" = 0 ] || cat "$T/cases"
    echo "${passed:-0} passed, ${failed:-1} failed"
    [ "${failed:-1}" = 0 ]
}

random() {  # random CLASS on|off
    local status
    timeout 200 "$MOAT" --device="$device" --mode=shadow --proofs="$2" --format=json --log-file="$T/json" \
        --no-cache --print-limit=0 "$BUILD/tool/check_classes" 23 "${SHADOW_KERNELS:-120}" "$1" >"$T/plan" \
        2>"$T/err" </dev/null
    python3 test/guard/check_compare.py "$T/plan" "$T/json" \
        "$([ "$1" = far ] && echo missed)" >"$T/compared" 2>&1
    status=$?
    [ "$1" != far ] || sed -n 's/.* wrong, //p' "$T/compared"
    [ $status = 0 ] || tail -n 8 "$T/compared" "$T/err" | cut -c 1-300
    echo "$((status == 0)) passed, $((status != 0)) failed"
    return $status
}
case ${1:-} in
all | random) "$@"; exit ;;
esac

# shellcheck source=test/gpu/units.bash
. test/gpu/units.bash
export GUARD_DEVICE=$device CHECK_LIMIT=${CHECK_LIMIT:-100} TEST_ALL=0
[ -z "${GPU_CACHE:-}" ] || export CHECK_CACHE=$GPU_CACHE
units_begin shadow
for proofs in on off; do
    for which in good bad; do
        unit "cases.$which.$proofs" 240 "$0" all $which $proofs
    done
    for class in adjacent freed late idioms far; do
        unit "random.$class.$proofs" 240 "$0" random $class $proofs
    done
done
# Parts of some 15 programs.
for part in rest {1..14}; do
    words=CASES_PART=$part
    [ "$part" = rest ] || words+=/14
    unit "shadow_mode.$part" 240 env "$words" test/guard/shadow_mode.sh
done
units_end
if [ -n "${SECTION:-}" ]; then
    {
        echo '## Errors found under --mode=shadow on a GPU'
        echo
        bench/machine
        echo
        echo '| programs | result |'
        echo '| --- | --- |'
        echo "| with errors, and their twins, all in one process, with proofs and without |" \
            "$(units_sum cases) |"
        echo "| random kernels of 5 classes, ${SHADOW_KERNELS:-120} each, with proofs and without |" \
            "$(units_sum random) |"
        echo "| of these accesses of another buffer, beyond the redzone: nothing can be seen there |" \
            "$(grep -h missed "$(units_file random.far.on)" || echo 'not run') |"
        echo "| each in a process of its own, with its report (\`shadow_mode.sh\`) |" \
            "$(units_sum shadow_mode) |"
    } >"$SECTION"
fi
[ $left = 0 ] || echo "parts that have not been run to their end: $left"
echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
[ $failed = 0 ] && [ $passed -gt 0 ]
