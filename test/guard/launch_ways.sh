#!/bin/bash
# SPDX-License-Identifier: MIT
# Every way to launch a kernel behaves as without moat, and modes see each launch, graph and node.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
program=$BUILD/tool/launch_ways
failed=0 passed=0

# try MODE WAY...: the numbers that the program prints equal those of the note at the end.
try() {
    local mode=$1 said told
    shift
    "$MOAT" --device=cpu --mode="$mode" "$program" "$@" >"$T/out" 2>"$T/log" </dev/null
    local status=$?
    said=$(grep '^launch' "$T/out")
    told=$(sed -n 's/.*tally: .*\(launch [0-9]*, graph [0-9]*, node [0-9]*\).*/\1/p' "$T/log")
    # The CPU device refuses the only launch of this way.
    [ "$*" != devices ] || { [ $status = 98 ] && status=0; }
    if [ $status = 0 ] && [ -n "$said" ] && [ "$said" = "$told" ]; then
        passed=$((passed + 1))
        return
    fi
    echo "FAIL $mode $*: status $status, asked for \"$said\", reported \"$told\""
    sed 's/^/    | /' "$T/out" "$T/log"
    failed=$((failed + 1))
}
for way in $("$program" list); do
    try tally "$way"
done
try tally
try tally,canary
try tally,count
echo "$passed passed, $failed failed"
exit $((failed > 0))
