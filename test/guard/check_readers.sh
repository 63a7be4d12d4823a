#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Reports of common mistakes, under --mode=check: each case of test/guard/check_readers.cu has one report of
# each of its types, with the note that helps its reader, and its twin is silent. A line is one report, with
# lines of source and without.
set -u
. test/guard/check.bash
compile 80 check_readers

"$MOAT" --device=cpu --mode=off "$T/check_readers" list >"$T/cases" 2>/dev/null </dev/null
while IFS=$'\t;' read -r name types note; do
    run "$T/check_readers" good "$name"
    [ "$status $found" = '0 ' ]
    verdict $? "good $name"
    run "$T/check_readers" bad "$name"
    [ "$status $found" = "97 $types" ] && grep -q "^\(note: .*\)\?$note" "$T/log" &&
        [ "$(grep -c 'ERROR: moat' "$T/log")" = "$(wc -w <<<"$types")" ]
    verdict $? "bad $name"
done <"$T/cases"
[ "$passed" -ge 20 ] || { echo 'the list of cases is too short'; failed=$((failed + 1)); }

# A kernel that waits for what a wrong load did not give: a note says how to end it. The clock goes on while
# the program is stopped, which takes no processor for those seconds.
wait_for() {  # wait_for PATTERN: in the log; returns 1 if it does not come
    local i
    for ((i = 0; i < 500; i++)); do
        ! grep -q "$1" "$T/log" || return 0
        sleep 0.1
    done
    return 1
}
timeout 60 "$MOAT" --device=cpu --mode=check "$T/check_readers" bad endless >"$T/log" 2>&1 </dev/null &
wait_for '^SUMMARY: '
program=$(sed -n 's/^==\([0-9]*\)==ERROR: .*/\1/p' "$T/log")
kill -STOP $program
sleep 10
kill -CONT $program
wait_for 'no CUDA call of the program has ended in the 10 seconds since'
status=$?
kill $!
wait $!
verdict $status 'a kernel that waits for ever'
run --on-error=trap "$T/check_readers" bad endless
[ "$status $found" = '97 heap-buffer-overflow' ] && ! grep -q 'in the 10 seconds since' "$T/log"
verdict $? '--on-error=trap ends it'
run "$T/check_readers" good endless
[ "$status $found" = '0 ' ]
verdict $? 'a kernel that finds what it looks for'

# Without lines of source an access that reads and writes is one report, too, which says how to get lines.
nvcc -std=c++14 -gencode arch=compute_80,code=compute_80 -cudart shared -L"$BUILD/lib/moat" \
    -o "$T/no_lines" test/guard/check_readers.cu >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }
run "$T/no_lines" bad halves
[ "$status" = 97 ] && [ "$(grep -c 'ERROR: moat' "$T/log")" = 1 ] &&
    grep -q '^note: the same kernel also writes to this address$' "$T/log" &&
    grep -q '^note: lines of source are shown of kernels that were compiled with -lineinfo$' "$T/log"
verdict $? 'without lines'
run "$T/check_readers" bad halves
! grep -q 'compiled with -lineinfo' "$T/log"
verdict $? 'with lines'

# What no device can give was not placed by the driver either.
run "$T/check_readers" good impossible
[ "$status $found" = '0 ' ] && ! grep -q 'gave plain memory' "$T/log"
verdict $? 'an allocation that is refused'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
