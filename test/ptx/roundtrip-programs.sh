#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# Every program of the suite, as nvcc compiles it, through parse and print: in one of the twelve ways that
# test/programs/groups knows, which test/pass/passes.sh uses too, so that nvcc runs once for both, and as
# test/cpu/suite.sh runs it. With --all in all ways, and then the programs with libraries too, which are
# megabytes.
set -u
command -v nvcc >/dev/null && command -v ptxas >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export T

one() {  # one ARCH WAY NAMES
    local name="$3-$1-${2#-}" file
    if [ "$2" = object ]; then
        file=$T/$name.ptx
        "$MOAT" ptx print --raw --module=1 "$(test/programs/object "$3" "$1")" >"$file" 2>"$T/$name.log"
    else
        file=$(test/programs/object "$3" "$1" ptx "${2#plain}" 2>"$T/$name.log")
    fi || { echo "FAIL $name: nvcc"; cat "$T/$name.log"; return 1; }
    test/ptx/roundtrip-one "$name" "$file" || return 1
    rm -f "$T/$name".*
    [ -z "${PROGRAMS_CACHE:-}" ] || rm -f "$file" "$file.lock"
}
export -f one
[ "${1:-}" != --all ] || export PROGRAMS_CACHE=$T  # too much to keep

if [ "${1:-}" = --all ]; then
    while IFS=$'\t' read -r name least _; do
        [ "$name" != name ] || continue
        for arch in sm_75 sm_90 sm_100 sm_120; do
            [ "${arch#sm_}" -ge "$least" ] || continue
            printf '%s %s %s\n' $arch plain "$name" $arch -lineinfo "$name" $arch -G "$name"
        done
    done <test/programs/programs.tsv
else
    test/programs/groups ways
    awk -F '\t' '$5 ~ /library/ { print $1 }' test/programs/programs.tsv >"$T/libraries"
    test/programs/groups objects | grep -vwFf "$T/libraries" | sed 's/ / object /'
fi >"$T/list"
xargs -a "$T/list" -L 1 -P "${JOBS:-1}" bash -c 'one "$@"' one >>"$T/out"
grep -v '^ok' "$T/out"
passed=$(grep -c '^ok' "$T/out") failed=$(grep -c '^FAIL' "$T/out")
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
