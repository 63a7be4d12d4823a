#!/bin/bash
# SPDX-License-Identifier: MIT
# --on-error=skip on the CPU device: each instruction that faults is reported once, the kernel goes on without
# the access, loads and atomics give 0, and the context is not in error. Without it the first fault ends the
# kernel, as on a GPU.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
expect() {  # expect REPORTS LINE OPTION...
    local reports=$1 line=$2 got
    shift 2
    timeout 60 "$MOAT" --device=cpu "$@" "$BUILD/tool/on_error" >"$T/log" 2>&1 </dev/null
    got="$? $(grep -c 'ERROR: moat: wild-access' "$T/log")"
    if [ "$got" = "97 $reports" ] && grep -q "^$line" "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $*: status and reports $got, expected 97 $reports; expected: $line"
        sed 's/^/    | /' "$T/log"
    fi
}
expect 1 'launched 0, waited 700, '
expect 1 'launched 0, waited 700, ' --on-error=stop
for mode in api canary pages count; do
    expect 3 'launched 0, waited 0, copied 0, value 42' --on-error=skip --mode=$mode
done
for lanes in plain auto; do
    expect 3 'launched 0, waited 0, copied 0, value 42' --on-error=skip --cpu-lanes=$lanes
done
for operation in ld.global st.global atom.global; do
    if grep -q "PTX.*$operation" "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL not reported: $operation"
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
