#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# Every program of the suite, as nvcc compiles it, through parse and print. Twelve ways to compile: four
# architectures, plain, with line information, for debugging. Two of them per program here, so that each way is
# met by several; all with --all, and then those of libraries too, which are megabytes.
set -u
command -v nvcc >/dev/null && command -v ptxas >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export T

one() {  # one NAME ARCH WAY
    local name="$1-$2$3"
    # shellcheck disable=SC2086
    nvcc -ptx -arch="$2" $3 -o "$T/$name.ptx" "test/programs/$1.cu" >"$T/$name.log" 2>&1 ||
        { echo "FAIL $name: nvcc"; cat "$T/$name.log"; return 1; }
    test/ptx/roundtrip-one "$name" "$T/$name.ptx" || return 1
    rm -f "$T/$name".*
}
export -f one

archs=(sm_75 sm_90 sm_100 sm_120) ways=('' -lineinfo -G)
n=0
while IFS=$'\t' read -r name least _ _ features; do
    [ "$name" = name ] && continue
    [ "${1:-}" = --all ] || [[ $features != *library* ]] || continue
    for i in {0..11}; do
        arch=${archs[i % 4]}
        [ "${arch#sm_}" -ge "${least#sm_}" ] || continue
        [ "${1:-}" = --all ] || [ $(((i - n * 5) % 6)) = 0 ] || continue
        printf '%s\0%s\0%s\0' "$name" "$arch" "${ways[i / 4]}"
    done
    n=$((n + 1))
done <test/programs/programs.tsv >"$T/list"
xargs -0 -a "$T/list" -n 3 -P "${JOBS:-1}" bash -c 'one "$@"' one >"$T/out"
grep -v '^ok' "$T/out"
passed=$(grep -c '^ok' "$T/out") failed=$(grep -c '^FAIL' "$T/out")
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
