#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Programs under a library that asserts its invariants, among them the order of its locks (base/checked.h):
# clang's. `make check` runs only these scripts, and has clang build that library alone: BUILD/checked is made
# of it and links to the rest of the plain build. TEST_ALL=1 runs all, in clang's whole build.
set -u
checked=$BUILD/clang
grep -q MOAT_CHECKED "$checked/flags" 2>/dev/null || { echo "no checked build in $checked"; exit 77; }
if [ "${TEST_ALL:-0}" = 0 ]; then
    checked=$BUILD/checked
    rm -rf "$checked" && mkdir -p "$checked" || exit 1
    cp -al "$BUILD"/{bin,lib,tool} "$checked/" && cp "$BUILD/clang/flags" "$checked/" &&
        ln -f "$BUILD/clang/lib/libmoat.so" "$checked/lib/libmoat.so" || exit 1
fi
scripts='share canary_stress launch_ways tally refusals'
[ "${TEST_ALL:-1}" = 0 ] ||
    scripts+=' errors pages canary canary_memory kheap_pairs count_mode announced attach dump_rewritten'
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
status=0
for script in $scripts; do
    BUILD=$checked MOAT=$(realpath "$checked")/bin/moat "test/guard/$script.sh" >"$T/log" 2>&1 </dev/null
    result=$?
    if [ $result != 0 ] || grep -q 'does not hold' "$T/log"; then
        echo "FAIL $script.sh: status $result"
        tail -n 30 "$T/log" | sed 's/^/    | /'
        status=1
    fi
done
exit $status
