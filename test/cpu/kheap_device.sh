#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The heap for malloc inside kernels, put into kernels directly: programs that check their memory while others
# allocate and free, with and without concurrent scans; memory that runs out; overflows that must be found. On
# the CPU device, or with GUARD_DEVICE=gpu on a GPU, with more threads. KHEAP_PTX=FILE:
# bench/kheap_kernels.cu, compiled before.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
ptx=${KHEAP_PTX:-$T/kernels.ptx} device=${GUARD_DEVICE:-cpu} passed=0 failed=0
if [ -z "${KHEAP_PTX:-}" ]; then
    command -v clang >/dev/null || { echo 'no clang on this machine'; exit 77; }
    test/clang/ptx bench/kheap_kernels.cu sm_75 -O2 >"$ptx" || exit 1
fi
few=512 some=2000 many=6000
[ "$device" = cpu ] || few=1000 some=100000 many=1000000

check() {  # check NAME EXPECTED-LAST-LINE MIB ARRAYS PROGRAM:THREADS...
    local name=$1 expected=$2 mib=$3 arrays=$4
    shift 4
    if "$MOAT" --device="$device" --mode=off "$BUILD/tool/kheap_load" ours "$ptx" "$mib" 1 "$arrays" "$@" \
        >"$T/out" 2>&1 </dev/null &&
        tail -n 1 "$T/out" | grep -qE "^$expected\$"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$name: expected '$expected'"
        tail -n 5 "$T/out"
    fi
}

clean='records 0 lost 0 pending 0'
big=64
[ "$device" = cpu ] || big=1024
check 'a few of each' "$clean" $big 32 alloc-dealloc:$few alloc-cycle-dealloc:$few grid-point:$few \
    add-string:$few random-graph:$few
check 'many of each' "$clean" $big 32 alloc-dealloc:$many grid-point:$some add-string:$some random-graph:$some
check '128 arrays' "$clean" $big 128 alloc-cycle-dealloc:$some random-graph:$some
check 'stress' "$clean" $big 32 stress:$few
KHEAP_NO_MONITOR=1 check 'stress without scans' "$clean" $big 32 stress:$few
KHEAP_NO_MONITOR=1 check 'more than fits at once, without scans' "$clean" 1 32 \
    alloc-dealloc:$((many * 10)) alloc-cycle-dealloc:$few
check 'memory runs out, and is there again' "$clean" 1 32 exhaust:20000 alloc-cycle-dealloc:$few stress:32
check 'arrays grow' "$clean" $big 32 malloc-16:$((some * 40)) malloc-16:$((some * 40))
check 'overflows' 'records [1-9][0-9]* lost 0 pending 0' $big 32 latency:$few
echo "$passed passed, $failed failed"
[ $failed = 0 ]
