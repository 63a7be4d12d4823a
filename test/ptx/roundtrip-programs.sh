#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# Every program of the suite, as nvcc compiles it, through parse and print. There are twelve ways to compile:
# four architectures, plain, with line information, for debugging. Here each program is compiled in one of
# them, so that each way is used by several, and as test/cpu/suite.sh runs it; with --all in all, and then the
# programs with libraries too, which are megabytes. test/pass/passes.sh chooses the same ways, so that nvcc
# runs once for both.
set -u
command -v nvcc >/dev/null && command -v ptxas >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export T

one() {  # one NAME ARCH WAY
    local name="$1-$2$3" file
    if [ "$3" = object ]; then
        file=$T/$name.ptx
        "$MOAT" ptx print --raw --module=1 "$(test/programs/object "$1" "$2")" >"$file" 2>"$T/$name.log"
    else
        file=$(test/programs/object "$1" "$2" ptx "$3" 2>"$T/$name.log")
    fi || { echo "FAIL $name: nvcc"; cat "$T/$name.log"; return 1; }
    test/ptx/roundtrip-one "$name" "$file" || return 1
    rm -f "$T/$name".*
    [ -z "${PROGRAMS_CACHE:-}" ] || rm -f "$file" "$file.lock"
}
export -f one
[ "${1:-}" != --all ] || export PROGRAMS_CACHE=$T  # too much to keep

archs=(sm_75 sm_90 sm_100 sm_120) ways=('' -lineinfo -G)
n=0
while IFS=$'\t' read -r name least _ _ features; do
    [ "$name" = name ] && continue
    [ "${1:-}" = --all ] || [[ $features != *library* ]] || continue
    for i in {0..11}; do
        arch=${archs[i % 4]}
        [ "${arch#sm_}" -ge "$least" ] || continue
        [ "${1:-}" = --all ] || [ $i = $((n * 5 % 12)) ] || continue
        printf '%s\0%s\0%s\0' "$name" "$arch" "${ways[i / 4]}"
    done
    [ "${1:-}" = --all ] || printf '%s\0%s\0object\0' "$name" "$least"
    n=$((n + 1))
done <test/programs/programs.tsv >"$T/list"
xargs -0 -a "$T/list" -n 3 -P "${JOBS:-1}" bash -c 'one "$@"' one >>"$T/out"
grep -v '^ok' "$T/out"
passed=$(grep -c '^ok' "$T/out") failed=$(grep -c '^FAIL' "$T/out")
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
