#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=fence: random kernels (test/guard/fence_random.c) by each way of the fence. What the fence lets
# through is found by the CPU device, or changes a neighbour's memory. All variants of kernels are used.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache FENCE_DRIVER=$BUILD/lib/moat/libmoat-cpu.so
passed=0 failed=0
cc -g -Isrc -o "$T/random" test/guard/fence_random.c -L"$BUILD/lib/moat" -lcuda -ldl || exit 1

run() {  # run WAY COUNT SEED [KERNEL]: what the program printed in $T/out, moat's reports in $T/log
    : >"$T/log"
    timeout 600 "$MOAT" --device=cpu --mode=fence --fence="$1" --on-error=skip --error-exitcode=0 \
        --print-limit=1000000 --log-file="$T/log" "$T/random" "${@:2}" >"$T/out" 2>&1 </dev/null
    status=$?
}

verdict() {  # verdict STATUS WHAT
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $2: status $status"
    head -n 200 "$T/out" | sed 's/^/    | /'
    tail -n 30 "$T/log" | sed 's/^/    | /'
}

count() {  # count TEXT: the number behind it in the summary
    sed -n "s/^ *$1 *\([0-9,]*\)$/\1/p" "$T/log" | tr -d ,
}

kernels=300
[ "${TEST_ALL:-0}" = 0 ] || kernels=5000
for way in mask check modulo; do
    run $way $kernels 1
    [ $status = 0 ]
    verdict $? "$way: no context is lost and the neighbour is as it was"
    [ "$(grep -c 'ERROR: moat' "$T/log")" = "$(grep -c 'note: contained' "$T/log")" ]
    verdict $? "$way: the fence has contained all"
    [ "$(count 'of these proved to stay inside, run without a fence')" -gt 20 ] &&
        [ "$(count 'of these proved in part, with a fence for the others')" -gt 20 ] &&
        { [ $way = check ] || [ "$(count 'of these by the mask alone')" -gt 500 ]; }
    verdict $? "$way: all variants are used"
done

# A load by a generic address that the fence takes for one of constant memory, and that is not aligned.
run mask 2767 101 2766
grep -A1 'PTX line 107' "$T/log" | grep -q 'contained: the access was made at the aligned address'
verdict $? 'a misaligned generic address in no other space is contained'

# Without a fence the test can fail.
timeout 60 "$MOAT" --device=cpu --mode=off "$T/random" 100 1 >"$T/out" 2>&1 </dev/null
status=$?
[ $status = 1 ]
verdict $? 'without a fence'
echo "covered: $((3 * kernels)) kernels"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
