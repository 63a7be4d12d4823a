#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# The PTX modules inside the toolkit's cuBLAS, cuSPARSE and cuRAND through parse and print: a sample of the
# smaller ones here, every one with --all.
set -u
command -v ptxas >/dev/null || { echo 'no ptxas on this machine'; exit 77; }
lib=$(dirname "$(readlink -f "$(command -v ptxas)")")/../lib64
found=()
for name in libcublas.so libcusparse.so libcurand.so; do
    [ -e "$lib/$name" ] && found+=("$lib/$name")
done
[ ${#found[@]} -gt 0 ] || { echo 'no cuBLAS, cuSPARSE or cuRAND on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export T

one() {  # one LIBRARY MODULE
    local name="${1##*/}-$2"
    "$MOAT" ptx print --raw --module="$2" "$1" >"$T/$name.ptx" || return 1
    test/ptx/roundtrip-one "$name" "$T/$name.ptx" || return 1
    rm -f "$T/$name".*
}
export -f one

modules() {  # modules LIBRARY: numbers of its PTX modules, the sample's or all
    if [ "${all:-0}" = 1 ]; then
        "$MOAT" ptx list "$1" 2>/dev/null | awk '$2 == "ptx" { print $1 }'
    else
        "$MOAT" ptx list "$1" 2>/dev/null | awk '$2 == "ptx" && $7 > 2000 && $7 < 200000 { if (n++ % 12 == 0) print $1 }'
    fi
}
[ "${1:-}" = --all ] && all=1
for l in "${found[@]}"; do
    for m in $(modules "$l"); do
        printf '%s\0%s\0' "$l" "$m"
    done
done >"$T/list"
xargs -0 -a "$T/list" -n 2 -P "${JOBS:-1}" bash -c 'one "$@"' one >"$T/out"
grep -v '^ok' "$T/out"
passed=$(grep -c '^ok' "$T/out") failed=$(grep -c '^FAIL' "$T/out")
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
