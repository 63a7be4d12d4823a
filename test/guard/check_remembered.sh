#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=check remembers what it has found out about a launch for those that are equal, and about buffers for
# those that are not: a free, an allocation or an announcement between two of them is seen all the same,
# whichever thread makes it.
set -u
. test/guard/check.bash
compile 80 check_remembered -Iinclude -lcuda

list_cases "$T/check_remembered"
while IFS=$'\t' read -r name type; do
    for variants in together apart; do
        run --check-variants=$variants "$T/check_remembered" good "$name"
        proved=$(sed -n 's/^ *of these proved .*checks *//p' "$T/log" | head -n 1)
        more=", proved: ${proved:-none}"
        [ "$status $found" = '0 ' ] && [ "${proved:-0}" -ge 7 ]
        verdict $? "good $name, variants $variants"
        run --check-variants=$variants "$T/check_remembered" bad "$name"
        [ "$status $found" = "97 $type" ]
        verdict $? "bad $name, variants $variants"
    done
done <"$T/cases"
enough_cases 59
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
