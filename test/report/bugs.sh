#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The commands of doc/using.md, "Five bugs", as they stand there: each prints the summary that stands below it
# and no other error, and ends with 97; one without a summary ends with 0. GUARD_DEVICE=gpu: on a GPU, with
# --mode=check, as the guide says there. SECTION: a file that gets the commands and what they printed, as rows
# of a table.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
device=${GUARD_DEVICE:-cpu}
[ "$device" = cpu ] || nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=${CHECK_CACHE:-$T/cache} MOAT_OPTIONS=device=$device
[ "$device" = cpu ] || MOAT_OPTIONS+=:mode=check
PATH=$(dirname "$(realpath "$MOAT")"):$PATH
mkdir "$T/here" && cp -r demo "$T/here/"
passed=0 failed=0

try() {  # try COMMAND SUMMARY
    local status got want=97
    [ -n "$2" ] && [[ $1 == moat* ]] || want=0
    (cd "$T/here" && timeout 60 bash -c "$1") >"$T/log" 2>&1 </dev/null
    status=$?
    # A program that was compiled in another folder (bench/kept/nvcc) names that one.
    got=$(sed -n '/^SUMMARY/{s| /[^ ]*/demo/| demo/|;p}' "$T/log")
    [[ $1 != moat* ]] || rows+="| \`$1\` | $status | ${got:-no report} |"$'\n'
    if [ $status = $want ] && [ "$got" = "$2" ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $1: status $status"
    sed 's/^/    | /' "$T/log"
}

sed -n '/^## Five bugs/,/^## What/p' doc/using.md | sed -n '/^```console/,/^```$/p' | sed '1d' >"$T/guide"
command='' summary='' rows=''
while IFS= read -r line; do
    case $line in
    '$ '* | '```')
        [ -z "$command" ] || try "$command" "$summary"
        command=${line#'$ '} summary=''
        ;;
    *) summary=$line ;;
    esac
done <"$T/guide"
[ "$passed" -ge 7 ] || { echo 'the guide has too few commands'; failed=$((failed + 1)); }
[ -z "${SECTION:-}" ] || printf '%s' "$rows" >"$SECTION"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
