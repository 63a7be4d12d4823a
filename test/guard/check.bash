# SPDX-License-Identifier: MIT
# For tests of --mode=check: scripts that source this have a scratch folder $T, the counts $passed and $failed,
# and the functions below. It ends the script where it cannot run.
#
# compile ARCH NAME [OPTION...]: test/guard/NAME.cu becomes $T/NAME.
# list_cases PROGRAM: what PROGRAM lists, in $T/cases; with CASES_PART=K/N every N-th line, from line K on.
# enough_cases N: behind the cases, of which more than N must have passed, or it is a failure. With CASES_PART,
#   nothing is counted, and parts other than the first one end here.
# run OPTION...: runs moat; its status in $status, the types of what was reported, each once, in $found.
# verdict STATUS WHAT: counts, and prints the report after a failure; $more says what else it should show.
#
# CHECK_CACHE: a folder for moat's cache, which several of them may use at a time. CHECK_LIMIT: seconds for a
# program (60).
#
# shellcheck shell=bash
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
# shellcheck source=test/guard/found.bash
. test/guard/found.bash
export XDG_CACHE_HOME=${CHECK_CACHE:-$T/cache}
passed=0 failed=0 more=

compile() {
    local program
    program=$(test/guard/compiled "$@" 2>"$T/log") || { cat "$T/log"; exit 1; }
    cp "$program" "$T/$2"
}

list_cases() {
    local part=${CASES_PART:-1/1}
    "$MOAT" --device=cpu --mode=off "$1" list 2>/dev/null </dev/null |
        awk -v k="${part%/*}" -v n="${part#*/}" '(NR - k) % n == 0' >"$T/cases"
}

enough_cases() {
    if [ -n "${CASES_PART:-}" ]; then
        [[ $CASES_PART == 1/* ]] && return
        echo "$passed passed, $failed failed"
        [ "$failed" = 0 ]
        exit
    fi
    [ "$passed" -gt "$1" ] || { echo 'the list of cases is too short'; failed=$((failed + 1)); }
}

run() {
    timeout "${CHECK_LIMIT:-60}" "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=check "$@" \
        >"$T/log" 2>&1 </dev/null
    status=$?
    find_types "$T/log"
}

verdict() {
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $2: status $status, reported: ${found:-nothing}$more"
    tail -n 40 "$T/log" | sed 's/^/    | /'
}
