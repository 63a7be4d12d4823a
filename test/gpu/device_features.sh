#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The programs of test/cpu that nvcc compiles, on a real GPU, alone and watched: kernels that launch kernels
# and graphs, tensor maps, wgmma and mma.sp. They compare what a device does with what they compute themselves
# and print "all right", which shows that the CPU device is tested against what a GPU does. On the CPU device:
# test/cpu/device_side.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
[ "${capability:-0}" -ge 90 ] ||
    { echo "the GPU is of compute capability $capability, they need 90"; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0 skipped=0

flags_of() {  # flags_of PROGRAM: for nvcc; nothing: not for this GPU
    case $1 in
    nested) echo "-rdc=true -arch=sm_$capability" ;;
    warpgroup) [ "$capability" != 90 ] || echo '-gencode arch=compute_90a,code=sm_90a' ;;
    *) echo "-arch=sm_$capability" ;;
    esac
}

one() {  # one WHAT COMMAND...
    local what=$1 status
    shift
    timeout 120 "$@" >"$T/log" 2>&1 </dev/null
    status=$?
    if [ $status = 0 ] && grep -qx 'all right' "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what: status $status"
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}

for program in nested tensors warpgroup sparse; do
    flags=$(flags_of $program)
    if [ -z "$flags" ]; then
        echo "skip $program: not for compute capability $capability"
        skipped=$((skipped + 1))
        continue
    fi
    # shellcheck disable=SC2086
    if ! nvcc -std=c++17 $flags -o "$T/$program" test/cpu/$program.cu >"$T/log" 2>&1; then
        failed=$((failed + 1))
        echo "FAIL $program: nvcc"
        tail -n 20 "$T/log" | sed 's/^/    | /'
        continue
    fi
    one "$program" "$T/$program"
    for mode in api pages canary; do
        one "$program, --mode=$mode" "$MOAT" --device=gpu --mode=$mode "$T/$program"
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
