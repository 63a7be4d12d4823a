#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# Kernels in graphs under --mode=check: of the correct programs of test/guard/check_graphs.cu as many kernels
# run without checks as the program says, and with all checks and their bounds if proofs are off; the wrong
# ones are reported, with proofs and without. GUARD_DEVICE=gpu: on a GPU.
set -u
. test/guard/check.bash
compile 80 check_graphs

stat() {  # stat LABEL: the number behind it in the summary
    local n
    n=$(sed -n "s/^ *kernels in launched graphs $1.*[a-z]  *\([0-9,]*\)$/\1/p" "$T/log")
    echo "${n:-0}"
}

# run PROOFS good|bad NAME: status in $status, types of what was reported in $found, kernels of launched
# graphs in $ran: proved, in part, with all checks and bounds
run() {
    timeout "${CHECK_LIMIT:-60}" "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=check --proofs="$1" \
        "$T/check_graphs" "$2" "$3" >"$T/log" 2>&1 </dev/null
    status=$?
    find_types "$T/log"
    ran="$(stat 'proved right') $(stat 'proved in part') $(stat 'run with all checks')"
    more=", kernels: $ran"
}

list_cases "$T/check_graphs"
while IFS=$'\t ' read -r name type whole part full; do
    [ "$name" != updatable ] || [ "${GUARD_DEVICE:-cpu}" = gpu ] || continue
    run on good "$name"
    [ "$status $found" = '0 ' ] && [ "$ran" = "$whole $part $full" ]
    verdict $? "good $name"
    run off good "$name"
    [ "$status $found" = '0 ' ] && [ "$ran" = "0 0 $((whole + part + full))" ]
    verdict $? "good $name without proofs"
    run check good "$name"
    [ "$status $found" = '0 ' ] && [ "$ran" = "0 0 $((whole + part + full))" ] &&
        ! grep -q 'a bug of moat' "$T/log"
    verdict $? "good $name with both"
    for proofs in on off check; do
        run $proofs bad "$name"
        [ "$status $found" = "97 $type" ] && ! grep -q 'a bug of moat' "$T/log"
        verdict $? "bad $name, proofs $proofs"
    done
done <"$T/cases"
enough_cases 60
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
