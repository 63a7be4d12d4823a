#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# --mode=pages: each program of test/guard/pages_errors.c must be reported as what it is, and its twin run
# silently; what a program can query about its memory must be the same as without the mode; memory limits must
# hold.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device. SECTION=FILE: a table of the results goes there.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
# shellcheck source=test/guard/found.bash
. test/guard/found.bash
passed=0 failed=0

wrong() {  # wrong NAME WHAT
    failed=$((failed + 1))
    said="**$2**"
    echo "FAIL $1: $2"
    tail -n 25 "$T/log" | sed 's/^/    | /'
}

run() {  # run TWIN NAME OPTION...: status in $status, types of what was reported in $found
    local twin=$1 name=$2
    shift 2
    timeout 60 "$MOAT" --device="$device" --mode=pages "$@" "$BUILD/tool/pages_errors" "$twin" "$name" \
        >"$T/log" 2>&1 </dev/null
    status=$?
    find_types "$T/log" all
}

check_good() {  # check_good NAME OPTION...
    run good "$@"
    if [ $status != 0 ] || [ -n "$found" ]; then
        wrong "good $1" "status $status, reported: ${found:-nothing}"
        return 1
    fi
    passed=$((passed + 1))
}

check_bad() {  # check_bad NAME TYPE TRAITS OPTION...
    local name=$1 type=$2 traits=$3
    shift 3
    run bad "$name" "$@"
    [ "$device $traits" != 'gpu vague' ] || type="$type|wild-access"
    if [ $status != 97 ] || ! [[ $found =~ ^($type)$ ]]; then
        wrong "bad $name" "status $status, reported: ${found:-nothing}, expected $type"
    elif [[ $name == slack_* ]] && ! grep -q 'outside any live buffer' "$T/log"; then
        wrong "bad $name" 'the report does not show the bytes'
    elif [ "$name" = slack_behind ] && grep -q '^freed by' "$T/log"; then
        wrong "bad $name" 'the free in which it was found is reported as an earlier one'
    elif [ "$name" = slack_before ] && ! grep -q 'is located [34] bytes before' "$T/log"; then
        # 3: the first byte may equal the canary's
        wrong "bad $name" 'the address is not that of the write'
    else
        passed=$((passed + 1))
        said=$found
    fi
}

rows=
while read -r name type traits; do
    options=()
    [ "$traits" != leak ] || options=(--leak-check)
    said=
    check_good "$name" "${options[@]}" && check_bad "$name" "$type" "$traits" "${options[@]}"
    rows+="| $name | $type | $said |"$'\n'
done < <("$BUILD/tool/pages_errors" list)

try() {  # try NAME OPTION... -- ARGUMENT...: test/guard/pages_good.c, which says what is wrong
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    timeout 120 "$MOAT" --device="$device" --mode=pages "${options[@]}" "$BUILD/tool/pages_good" "$@" \
        >"$T/log" 2>&1 </dev/null
    status=$?
    [ $status = 0 ] && passed=$((passed + 1)) || wrong "$name" "status $status"
}

summary() {  # summary PATTERN: the summary of the last run has a line that matches
    grep -qE "$1" "$T/log" && passed=$((passed + 1)) || wrong "summary" "no line matches $1"
}

# What a program can query, in plain memory and in pages.
"$MOAT" --device="$device" --mode=off "$BUILD/tool/pages_good" answers >"$T/plain" 2>"$T/log" </dev/null ||
    wrong answers 'fails without pages'
"$MOAT" --device="$device" --mode=pages "$BUILD/tool/pages_good" answers >"$T/pages" 2>"$T/log" </dev/null ||
    wrong answers 'fails in pages'
if diff "$T/plain" "$T/pages" >"$T/log"; then passed=$((passed + 1)); else wrong answers 'differ'; fi

try 'many small buffers' -- many 1000 3000
# A GPU's TLB has room for few of them.
if [ "${GUARD_DEVICE:-cpu}" = gpu ]; then
    summary 'small buffers at addresses of their own +64$'
else
    summary 'small buffers at addresses of their own +3,000$'
fi
# More than the device has; where TEST_ALL is 0, of a small device.
if [ "${TEST_ALL:-0}/$device" = 0/cpu ]; then
    try 'many large buffers, one after the other' --cpu-memory=64M -- churn 3145728 200
    try 'threads' -- threads 50
else
    try 'many large buffers, one after the other' -- churn 3145728 2000
    try 'threads' -- threads
fi
try 'stream-ordered memory is used again in the order of its stream' -- order
try 'small buffers in pages of their own' --pages-own=1 -- many 1000 50
summary 'buffers in pages of their own +50$'
try 'a budget' --pages-budget=4M --pages-own=1 -- many 1000 50
summary 'pages mode gave plain memory +48$'

result="$passed passed, $failed failed"
if [ -n "${SECTION:-}" ]; then
    printf 'Each program has an error planted; its correct twin ran too and was not reported: %s.\n\n' \
        "$result"
    printf '| program | error | reported |\n| --- | --- | --- |\n%s' "$rows"
fi >"${SECTION:-/dev/null}"
echo "$result"
[ $failed = 0 ] && [ $passed -gt 0 ]
