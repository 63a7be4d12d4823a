#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=fence: a thousand random mistakes of test/guard/fence_mistakes.cu in one context, by each way of the
# fence. After each of them a neighbour's memory is as it was, bit for bit, no context is lost, right kernels
# compute, and moat has reported each kind of mistake. Right kernels run silently, and by the mask alone.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache FENCE_DRIVER=$BUILD/lib/moat/libmoat-cpu.so
passed=0 failed=0
program=$(test/guard/compiled 90 fence_mistakes -O2 2>"$T/log") || { cat "$T/log"; exit 1; }
cp "$program" "$T/mistakes"

run() {  # run OPTION... good|bad COUNT SEED: what the program printed in $T/out, moat's reports in $T/log
    local options=()
    while [[ $1 == --* ]]; do options+=("$1"); shift; done
    : >"$T/log"
    timeout 300 "$MOAT" --device=cpu --mode=fence --log-file="$T/log" ${options[@]+"${options[@]}"} \
        "$T/mistakes" "$@" >"$T/out" 2>&1 </dev/null
    status=$?
}

verdict() {  # verdict STATUS WHAT
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $2: status $status"
    tail -n 30 "$T/out" "$T/log" | sed 's/^/    | /'
}

count() {  # count TEXT: the number behind it in the summary
    sed -n "s/^ *$1 *\([0-9,]*\)$/\1/p" "$T/log" | tr -d ,
}

seeds=1
[ "${TEST_ALL:-0}" = 0 ] || seeds=10
for way in mask check modulo; do
    for seed in $(seq $seeds); do
        run --fence=$way --on-error=skip --error-exitcode=0 bad 1000 "$seed"
        [ $status = 0 ]
        verdict $? "$way: 1,000 mistakes, seed $seed"
        # What the fence lets through, the CPU device finds itself: then there is no such note.
        [ "$(grep -c 'ERROR: moat' "$T/log")" = "$(grep -c 'note: contained' "$T/log")" ]
        verdict $? "$way: the fence has contained them all, seed $seed"
        while read -r kind n; do
            name=$kind
            [ "$kind" != write_function ] || name=store
            [ "$n" -gt 0 ] && grep -q "ERROR: .* in kernel void $name<" "$T/log"
            verdict $? "$way: $kind, seed $seed"
        done <"$T/out"
        for type in wild-access null-dereference misaligned-address {shared,local}-buffer-overflow; do
            # A mask does not know the address.
            [ $way != check ] || grep -q "ERROR: moat: $type" "$T/log"
            verdict $? "$way: $type, seed $seed"
        done
        run --fence=$way --proofs=off good 200 "$seed"
        [ $status = 0 ] && ! grep -q ERROR "$T/log" &&
            { [ $way = check ] || [ "$(count 'of these by the mask alone')" = 400 ]; }
        verdict $? "$way: right kernels, seed $seed"
    done
done

# Without a fence the first mistake ends the context or changes the neighbour: the test can fail.
timeout 60 "$MOAT" --device=cpu --mode=off "$T/mistakes" bad 100 1 >"$T/out" 2>&1 </dev/null
status=$?
[ $status = 3 ] || [ $status = 4 ]
verdict $? 'without a fence'

echo "$passed passed, $failed failed"
[ $failed = 0 ]
