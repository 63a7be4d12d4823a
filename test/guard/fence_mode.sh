#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# --mode=fence: each wrong kernel of test/guard/fence_tenant.cu is contained, by every way of the fence:
# memory that moat does not know of stays as it is, bit for bit, the program gets the error that it would have
# had, and moat reports it. Its right twin runs silently, and fenced.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
# shellcheck source=test/guard/found.bash
. test/guard/found.bash
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0
program=$(test/guard/compiled 90 fence_tenant -O2 2>"$T/log") || { cat "$T/log"; exit 1; }
cp "$program" "$T/fence_tenant"
export FENCE_DRIVER=$BUILD/lib/moat/libmoat-cpu.so

run() {  # run OPTION... PROGRAM ARG...: status in $status, what was reported in $found
    timeout 60 "$MOAT" --device=cpu --mode=fence "$@" >"$T/log" 2>&1 </dev/null
    status=$?
    find_types "$T/log"
}

verdict() {  # verdict STATUS WHAT
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $2: status $status, reported: ${found:-nothing}"
    tail -n 30 "$T/log" | sed 's/^/    | /'
}

seeds=2
[ "${TEST_ALL:-0}" = 0 ] || seeds=30
"$MOAT" --device=cpu --mode=off "$T/fence_tenant" list >"$T/cases" 2>/dev/null </dev/null
number=0
for way in mask check modulo; do
    while read -r name _ often options; do
        number=$((number + 1))
        # The ways differ in the variant for pointers into the partition alone.
        case $way/${TEST_ALL:-0} in
        check/0) [ $((number % 3)) = 0 ] || continue ;;
        modulo/0) [ $((number % 4)) = 0 ] || continue ;;
        esac
        run --fence=$way ${options:+"$options"} "$T/fence_tenant" good "$name"
        [ "$status" = 0 ] && [ -z "$found" ] && grep -q 'kernel launches fenced' "$T/log"
        verdict $? "$way: good $name"
        n=$seeds
        [ "$often" = seeds ] && { [ $way = mask ] || [ "${TEST_ALL:-0}" != 0 ]; } || n=1
        for seed in $(seq $n); do
            run --fence=$way ${options:+"$options"} --error-exitcode=0 "$T/fence_tenant" bad "$name" "$seed"
            # A fault of the device's would be the same error, and a report too.
            [ "$status" = 0 ] && [ -n "$found" ] && grep -Eq '^note: (contained|refused): ' "$T/log"
            verdict $? "$way: bad $name $seed"
        done
    done <"$T/cases"
done
[ "$passed" -gt 250 ] || { echo 'the list of cases is too short'; failed=$((failed + 1)); }

# Without a fence, the neighbour's memory does change: the test can fail.
timeout 60 "$MOAT" --device=cpu --mode=off "$T/fence_tenant" bad write >"$T/log" 2>&1 </dev/null
status=$? found=
[ $status = 3 ]
verdict $? 'without a fence the neighbour changes'

# Under MPS the neighbours are other processes, and no driver is named: then the kernel aims at no buffer.
FENCE_DRIVER='' run --error-exitcode=0 "$T/fence_tenant" bad write
[ "$status" = 0 ] && [ -n "$found" ]
verdict $? 'without a neighbour in the process'

# The paper's fence says nothing.
run --fence-silent "$T/fence_tenant" bad write
grep -q 'error 0, neighbour intact' "$T/log" && [ -z "$found" ]
verdict $? 'silent'

echo "$passed passed, $failed failed"
[ $failed = 0 ]
