#!/bin/bash
# SPDX-License-Identifier: MIT
# Every way in which programs reach the driver, test/guard/attach.c, must lead through the guard.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0

fail() {
    failed=$((failed + 1))
    echo "FAIL $1"
    tail -n 20 "$T/log" | sed 's/^/    | /'
}

# The path of a libcuda, for ways that open it by path: the machine's own, or a file that was never loaded.
libcuda=$BUILD/lib/moat/libcuda.so.1
[ "$device" = cpu ] || libcuda=$(ldconfig -p | sed -n 's/.*libcuda\.so\.1 .*=> //p' | head -n 1)
[ -e "$libcuda" ] || libcuda=/usr/local/nvidia/lib64/libcuda.so.1
for way in $("$BUILD/tool/attach" list); do
    timeout 60 "$MOAT" --device="$device" "$BUILD/tool/attach" "$way" "$libcuda" >"$T/log" 2>&1 </dev/null
    status=$?
    if [ $status = 97 ] && grep -q 'ERROR: moat: heap-buffer-overflow' "$T/log"; then
        passed=$((passed + 1))
    else
        fail "$way: status $status"
    fi
    [ "$device $way" != 'cpu driver_beside' ] ||
        grep -q 'drivers in namespaces of their own (dlmopen).* 1$' "$T/log" ||
        fail "$way: nothing is said of the driver that is not watched"
done

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
