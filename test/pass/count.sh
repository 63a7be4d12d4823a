#!/bin/bash
# SPDX-License-Identifier: MIT
# The counting pass counts what kernels are known to do, and what the CPU device counts itself.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0

result() {  # result STATUS WHAT [LOG]
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        echo "ok   $2"
    else
        failed=$((failed + 1))
        echo "FAIL $2"
        [ -z "${3:-}" ] || tail -n 20 "$3" | sed 's/^/    | /'
    fi
}

"$BUILD/tool/count_run" >"$T/log" 2>&1
result $? 'known counts' "$T/log"

# With one thread in a block, an instruction of a warp is one of a thread. Two things differ, and are not
# compared: --stats adds what a function does to the kernel, the pass to the function (loads from global
# memory in `calls`); and a read-modify-write is a store to --stats (loads from shared memory in `barriers`,
# from global memory in `spellings`).
"$BUILD/tool/count_run" counted 2>"$T/log" |
    sed -E 's/^((calls|spellings) [0-9]+) [0-9]+/\1 -/; s/^(barriers [0-9]+ [0-9]+) [0-9]+/\1 -/' \
        >"$T/counted"
MOAT_OPTIONS=stats "$BUILD/tool/count_run" plain 2>"$T/table" || cat "$T/table"
awk '
    $3 == "launches" { for (i = 3; i <= NF; i++) column[$i] = i; next }
    {
        line = $NF
        for (kind = 0; kind < 2; kind++)
            for (space = 1; space <= 4; space++) {
                heading = (kind ? "st-" : "ld-") spaces[space]
                value = heading in column ? $column[heading] : 0
                line = line " " (heading == skipped[$NF] ? "-" : value)
            }
        print line
    }
    BEGIN {
        split("generic global shared local", spaces, " ")
        skipped["calls"] = skipped["spellings"] = "ld-global"
        skipped["barriers"] = "ld-shared"
    }' "$T/table" | sort >"$T/stats"
sort "$T/counted" | diff -u "$T/stats" - >"$T/diff" && [ "$(wc -l <"$T/stats")" = 9 ]
result $? 'the same as --stats' "$T/diff"

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
