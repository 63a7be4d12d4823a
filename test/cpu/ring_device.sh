#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The ring of errors, written by kernels: what fits arrives, and the rest is counted. On the CPU device, or
# with GUARD_DEVICE=gpu on a GPU, with more threads.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
device=${GUARD_DEVICE:-cpu} passed=0 failed=0
many=20
[ "$device" = cpu ] || many=500

check() {  # check NAME EXPECTED RECORDS BLOCKS THREADS CALLS
    local name=$1 expected=$2
    shift 2
    if "$MOAT" --device="$device" --mode=off "$BUILD/tool/ring_load" "$@" >"$T/out" 2>&1 </dev/null &&
        grep -qE "^$expected\$" "$T/out"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$name: expected '$expected'"
        tail -n 5 "$T/out"
    fi
    [ "$device" = cpu ] || { echo "$name:"; cat "$T/out"; }
}

check 'all fit' 'records 4096 lost 0' 4096 16 64 4
check 'one' 'records 1 lost 0' 256 1 1 1
check 'too many' 'records [1-9][0-9]* lost [0-9]*' 64 $many 256 4
check 'a ring of one' 'records [1-9][0-9]* lost [0-9]*' 1 $many 128 2
echo "$passed passed, $failed failed"
[ $failed = 0 ]
