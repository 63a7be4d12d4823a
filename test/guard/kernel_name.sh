#!/bin/bash
# SPDX-License-Identifier: MIT
# --kernel-name in --mode=canary: an overflow is reported if a kernel that may have done it matches, and left
# out and counted if none does; so is what kernels do to memory from malloc. GUARD_DEVICE=gpu: on a GPU.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu} passed=0 failed=0
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache

check() {  # check REGEX STATUS LEFT-OUT TOOL CASE
    local left
    timeout 60 "$MOAT" --device="$device" --mode=canary --kernel-name="$1" "$BUILD/tool/$4" bad "$5" \
        >"$T/log" 2>&1 </dev/null
    status=$?
    left=$(sed -n 's/^ *errors left out by --kernel-name.*  *\([0-9]*\)$/\1/p' "$T/log")
    if [ $status = "$2" ] && [ "${left:-0}" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $5, --kernel-name=$1: status $status, ${left:-0} left out"
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}

check '^flip$' 97 0 canary_errors single
check 'fill|other' 97 0 canary_errors single
check '^other$' 0 1 canary_errors single
check . 97 0 kheap_errors double_free
check '^other$' 0 1 kheap_errors double_free
echo "$passed passed, $failed failed"
[ $failed = 0 ]
