#!/bin/bash
# SPDX-License-Identifier: MIT
# --api-errors: calls that fail are reported once, with call, code and place, and only on request; a usual
# answer is not. GUARD_DEVICE=gpu: on a GPU instead of the CPU device.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
expect() {  # expect WHAT STATUS REPORTS OPTION...: with the program's argument last
    local what=$1 status=$2 reports=$3 got
    shift 3
    timeout 60 "$MOAT" --device="${GUARD_DEVICE:-cpu}" "${@:1:$#-1}" "$BUILD/tool/api_errors" "${@: -1}" \
        >"$T/log" 2>&1 </dev/null
    got="$? $(grep -c 'ERROR: moat: api-error' "$T/log")"
    if [ "$got" = "$status $reports" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what: status and reports $got, expected $status $reports"
        sed 's/^/    | /' "$T/log"
    fi
}
has() {  # has PATTERN: in the last log
    if grep -q -- "$1" "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL not reported: $1"
    fi
}
expect 'not asked for' 0 0 bad
expect 'usual answers' 0 0 --api-errors good
expect 'failures' 97 4 --api-errors bad
has 'cuMemAlloc_v2 returned 2, CUDA_ERROR_OUT_OF_MEMORY'
has 'cuDeviceGet returned 101, CUDA_ERROR_INVALID_DEVICE'
has 'cuDeviceGetName returned'
has 'cuLaunchKernel returned'
has '#0 .*api_errors\.c:[0-9]'
echo "$passed passed, $failed failed"
[ $failed = 0 ]
