#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# Proofs at launches under --mode=check: of the correct programs of test/guard/check_proofs.cu the launches
# are proved as the program says, and none if proofs are off; the wrong ones are reported, with proofs and
# without.
set -u
. test/guard/check.bash
compile 80 check_proofs

# run PROOFS good|bad NAME: status in $status, types of what was reported in $found, launches that were proved
# and proved in part in $proved
run() {
    timeout "${CHECK_LIMIT:-60}" "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=check --proofs="$1" \
        "$T/check_proofs" "$2" "$3" >"$T/log" 2>&1 </dev/null
    status=$?
    find_types "$T/log"
    proved=$(sed -n 's/^ *of these proved right.*checks *//p' "$T/log")
    proved="${proved:-0} $(sed -n 's/^ *of these proved in part.*checks *//p' "$T/log")"
    [[ $proved == *[0-9] ]] || proved+=0
    more=", proved: $proved"
}

list_cases "$T/check_proofs"
while IFS=$'\t ' read -r name type whole part; do
    run on good "$name"
    [ "$status $found" = '0 ' ] && [ "$proved" = "$whole $part" ]
    verdict $? "good $name"
    run off good "$name"
    [ "$status $found" = '0 ' ] && [ "$proved" = '0 0' ]
    verdict $? "good $name without proofs"
    run check good "$name"
    again=$(sed -n 's/.*proved right beforehand, run with the checks *//p' "$T/log")
    [ "$status $found" = '0 ' ] && ! grep -q 'a bug of moat' "$T/log" && [ "${again:-0}" = $((whole + part)) ]
    verdict $? "good $name with both"
    for proofs in on off; do
        run $proofs bad "$name"
        [ "$status $found" = "97 $type" ]
        verdict $? "bad $name, proofs $proofs"
    done
done <"$T/cases"
enough_cases 40
# What the arguments of a launch decide is in the report of it, and nothing else is.
decided() {  # decided PROOFS NAME TEXT: TEXT is the note, or none is there if it is empty
    local note
    run "$1" bad "$2"
    note=$(sed -n 's/^note: the launch decides it: //p' "$T/log" | head -n 1)
    [ "$status" = 97 ] && [ "$note" = "$3" ]
    verdict $? "bad $2, proofs $1, decided: $note"
}
decided on argument 'this access needs 1,028 bytes, the buffer has 1,024'
decided on shape 'this access needs 1,536 bytes, the buffer has 1,024'
decided on by_scalar 'this access needs 260 bytes, the variable has 256'
decided off argument ''
decided on in_part ''
decided on freed ''
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
