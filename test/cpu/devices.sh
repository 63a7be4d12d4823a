#!/bin/bash
# SPDX-License-Identifier: MIT
# Several devices: test/cpu/device_peers.c, with the library's code in the program itself and by `moat`; and
# test/cpu/device_peers.cu through the CUDA runtime where nvcc is installed.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0

try() {  # try WHAT COMMAND...
    local what=$1 start=${EPOCHREALTIME/./} status
    shift
    timeout 100 "$@" >"$T/log" 2>&1 </dev/null
    status=$?
    if [ $status = 0 ] && grep -Eqx 'device_peers: ok|all right' "$T/log"; then
        passed=$((passed + 1))
        echo "ok   $what ($(((${EPOCHREALTIME/./} - start) / 1000)) ms)"
    else
        failed=$((failed + 1))
        echo "FAIL $what: status $status"
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}

try 'the library in it' env MOAT_OPTIONS=cpu-devices=3:cpu-memory=64M "$BUILD/tool/device_peers"
if ! grep -q fsanitize "$BUILD/flags" 2>/dev/null; then
    cc -std=gnu11 -D_GNU_SOURCE -Isrc -o "$T/peers" test/cpu/device_peers.c -L"$BUILD/lib/moat" -lcuda -pthread || exit 1
    try 'by moat' "$MOAT" --device=cpu --mode=off --cpu-devices=3 --cpu-memory=64M "$T/peers"
    if command -v nvcc >/dev/null; then
        nvcc -gencode arch=compute_90,code=compute_90 -cudart shared -L"$BUILD/lib/moat" test/cpu/device_peers.cu -o "$T/runtime" || exit 1
        for mode in off api; do
            try "by the runtime, --mode=$mode" "$MOAT" --device=cpu --mode=$mode --cpu-devices=3 "$T/runtime"
        done
    fi
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
