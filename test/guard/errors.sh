#!/bin/bash
# SPDX-License-Identifier: MIT
# Every class of error that needs no instrumentation: test/guard/errors.c has a program for each and its
# correct twin. The first must be reported as what it is, with the wrong line; the second must run silently.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device. SECTION=FILE: a table of the results goes there.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu}
# shellcheck source=test/guard/found.bash
. test/guard/found.bash

run() {  # run TWIN NAME OPTION...: its exit status in $status, types of what was reported in $found
    local twin=$1 name=$2
    shift 2
    timeout 60 "$MOAT" --device="$device" "$@" "$BUILD/tool/errors" "$twin" "$name" >"$log" 2>&1 </dev/null
    status=$?
    find_types "$log" all
}

wrong() {  # wrong WHAT: a line for the table, then what the program said
    echo "FAIL $1"
    tail -n 25 "$log" | sed 's/^/    | /'
}

# A line for a case: ok, with what was reported; skip, with the call that is not there; or FAIL.
one() {  # one NAME TYPE TRAITS
    local name=$1 type=$2 traits=${3:-} options=() log=$T/$1 status found
    [ "$traits" != leak ] || options=(--leak-check)
    run good "$name" "${options[@]}"
    if [ "$status" = 77 ]; then
        echo "skip $(sed -n 's/^errors.c:[0-9]*: [^.]*\.\([^(]*\).*/no \1/p' "$log" | head -n 1)"
        return
    elif [ "$status" != 0 ] || [ -n "$found" ]; then
        wrong "good: status $status, reported: ${found:-nothing}"
        return
    fi
    # A GPU reports a kernel's fault without its address.
    [ "$device $traits" != 'gpu vague' ] || type="$type|wild-access"
    # The default is api on a GPU, check on the CPU device.
    for mode in auto api; do
        [ "$device $mode" != 'gpu api' ] || continue
        run bad "$name" "${options[@]}" --mode=$mode
        if [ "$status" != 97 ] || ! [[ $found =~ ^($type)$ ]]; then
            wrong "bad: mode $mode: status $status, reported: ${found:-nothing}, expected $type"
            return
        elif [ "$traits" = '' ] && ! grep -q '#0 .*errors\.c:[0-9]' "$log"; then
            wrong "bad: mode $mode: the report does not say where"
            return
        fi
    done
    echo "ok $found"
}

if [ "${1:-}" = --one ]; then
    shift
    one "$@" >"$T/$1.result"
    exit 0
fi
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export T
"$BUILD/tool/errors" list >"$T/cases"
xargs -P "$(nproc)" -L 1 "$0" --one <"$T/cases"

passed=0 failed=0 skipped=0 rows=
while read -r name type _; do
    read -r word said <"$T/$name.result" || word=FAIL
    case $word in
    ok) passed=$((passed + 2)) ;;
    skip) skipped=$((skipped + 1)) ;;
    *)
        failed=$((failed + 1)) said="**$said**"
        echo "FAIL $name: $(cat "$T/$name.result" 2>&1)"
        ;;
    esac
    rows+="| $name | $type | $said |"$'\n'
done <"$T/cases"
result="$passed passed, $failed failed"
[ $skipped = 0 ] || result+=", $skipped skipped"
if [ -n "${SECTION:-}" ]; then
    printf 'Each program has an error planted; its correct twin ran too and was not reported: %s.\n\n' \
        "$result"
    printf '| program | error | reported |\n| --- | --- | --- |\n%s' "$rows"
fi >"${SECTION:-/dev/null}"
echo "$result"
[ $failed = 0 ] && [ $passed -gt 0 ]
