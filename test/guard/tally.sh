#!/bin/bash
# SPDX-License-Identifier: MIT
# --mode=tally: a mode observes what a program does, alone and beside others, and decides nothing.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
failed=0

tally() {  # tally OPTION... PROGRAM ARGUMENT...: what the note at the end says
    "$MOAT" --device=cpu "$@" >"$T/log" 2>&1 </dev/null
    sed -n 's/.*tally: //p' "$T/log"
}
expect() {  # expect WHAT FOUND WANTED: a pattern
    # shellcheck disable=SC2053
    if [[ $2 != $3 ]]; then
        echo "FAIL $1: \"$2\", not \"$3\""
        sed 's/^/    | /' "$T/log"
        failed=1
    fi
}

program=$BUILD/tool/count_load
expect 'alone' "$(tally --mode=tally "$program" data)" \
    'alloc 1, free 0, ask 0, function 1, launch 1, graph 0, node 0, wait 1, module gone 0, context gone 0'
expect 'beside counters' "$(tally --mode=tally,count "$program" data)" 'alloc 1, *, function 1, launch 1, *'
# A mode does not see allocations that an earlier one places.
expect 'beside canaries' "$(tally --mode=tally,canary "$program" data)" 'alloc 0, *, function 1, launch 1, *'
expect 'not asked for' "$(tally --mode=canary "$program" data)" ''
exit $failed
