#!/bin/bash
# SPDX-License-Identifier: MIT
# "0 errors" and status 0 mean that something was watched: otherwise the status is 98, or the program's own if
# it has failed itself, and a message says why.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
failed=0 passed=0

check() {  # check STATUS PATTERN COMMAND...
    local want=$1 pattern=$2 status
    shift 2
    "$MOAT" --device=cpu "$@" >"$T/log" 2>&1 </dev/null
    status=$?
    if [ $status = "$want" ] && grep -q -e "$pattern" "$T/log"; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $*: status $status, wanted $want and '$pattern'"
    sed 's/^/    | /' "$T/log"
}

program=$BUILD/tool/unwatched
check 98 'error: nothing was watched: no process' true
check 1 'warning: nothing was watched: no process' false
check 98 'error: nothing was watched: no process' --strict false
check 137 'warning: nothing was watched: no process' sh -c 'kill -9 $$'
check 98 'nothing was watched: the program has made no' "$program" init
check 5 'warning: nothing was watched: the program has made no' "$program" init 5
check 98 'no kernel has run: the driver has refused every module or launch; --api-errors says why' \
    --mode=api "$program" refused
check 98 'modules that the driver refused to load  *1$' --mode=api "$program" refused
for mode in check explain shadow fence; do
    check 98 'modules that the driver refused to load  *1$' --mode=$mode "$program" malformed
done
check 4 'warning: no kernel has run' --mode=api "$program" refused 4
check 98 'error: no kernel has run' --mode=api --strict "$program" refused 4
check 0 'kernel launches, not checked inside (--mode=check)  *1$' --mode=api "$program" launch
check 0 'watching .*, mode check,pages, ' "$program" launch
check 0 'watching .*, mode check,pages, ' --mode=auto "$program" launch
check 0 'kernel launches checked  *1$' "$program" launch
check 0 'launches that the driver refused  *1$' "$program" launch
# It is none that ran unchecked either.
"$MOAT" --device=cpu "$program" launch >"$T/log" 2>&1 </dev/null
! grep -q 'not checked\|ran unchecked' "$T/log" || { failed=$((failed + 1)); cat "$T/log"; }
check 0 'kernel launches  *1$' --mode=canary "$program" launch
check 6 'kernel launches' "$program" launch 6
echo "$passed passed, $failed failed"
[ $failed = 0 ]
