#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# A process that gets no more memory (heap_exhausted.c): an error is still reported, to the command and as
# text, and a correct program keeps its status.
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
tool=$BUILD/tool/heap_exhausted
passed=0 failed=0
check() {  # check WHAT STATUS-WANTED REPORTS-WANTED COMMAND...
    local what=$1 wanted=$2 reports=$3 status
    shift 3
    timeout 60 "$@" >"$T/out" 2>"$T/log" </dev/null
    status=$?
    if [ $status = "$wanted" ] && grep -q '^done' "$T/out" &&
        [ "$(grep -c 'ERROR: moat: heap-buffer-overflow' "$T/log")" = "$reports" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$what: status $status"
        sed 's/^/    | /' "$T/log"
    fi
}
library=$(realpath "$BUILD/lib/libmoat-heap.so")
check 'good, command' 0 0 "$MOAT" --heap "$tool" good
check 'bad, command' 97 1 "$MOAT" --heap "$tool" bad
check 'good, alone' 0 0 env LD_PRELOAD="$library" "$tool" good
check 'bad, alone' 0 1 env LD_PRELOAD="$library" "$tool" bad
echo "$passed passed, $failed failed"
[ $failed = 0 ]
