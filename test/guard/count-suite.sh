#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# The suite under --mode=count on the CPU device: results stay right, every kernel is counted, and the counts
# agree with those of the device. count-suite.sh [NAME...]: all programs, or these.
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
command -v python3 >/dev/null || { echo 'no python3 on this machine'; exit 77; }

one() {  # one NAME
    local name sm args file status off
    IFS=$'\t' read -r name sm args _ < <(grep "^$1	" test/programs/programs.tsv)
    file=$(test/programs/object "$name" "$sm") || { echo "FAIL $name: nvcc"; return; }
    nvcc -cudart shared -L"$BUILD/lib/moat" "$file" -o "$T/$name" ||
        { echo "FAIL $name: does not link"; return; }
    # shellcheck disable=SC2086
    timeout 100 "$MOAT" --device=cpu --mode=off --stats "$T/$name" $args >"$T/$name.off" 2>&1 </dev/null
    off=$?
    # shellcheck disable=SC2086
    timeout 100 "$MOAT" --device=cpu --mode=count --stats --format=json \
        --log-file="$T/$name.json" "$T/$name" $args \
        >"$T/$name.log" 2>&1 </dev/null
    status=$?
    if [ $status != $off ]; then
        echo "FAIL $name: status $status, $off without"
        tail -n 5 "$T/$name.log" "$T/$name.json" | sed 's/^/    | /'
    elif [ $off != 0 ]; then
        echo "ok   $name: status $off with and without"
        : >"$T/$name.passed"
    elif ! python3 test/guard/count_compare.py "$T/$name.json" "$T/$name.log" "$T/$name.off" \
        >"$T/$name.compared"; then
        echo "FAIL $name"
        sed 's/^/    | /' "$T/$name.compared"
    elif grep -q '"key":"left_' "$T/$name.json"; then
        echo "FAIL $name: $(grep -o '"key":"left_[^}]*' "$T/$name.json")"
    else
        echo "ok   $name: $(cat "$T/$name.compared")"
        : >"$T/$name.passed"
    fi
}

if [ "${1:-}" = --one ]; then
    one "$2"
    exit 0
fi
T=$(mktemp -d) || exit 1
export T XDG_CACHE_HOME=$T/cache
trap 'rm -rf "$T"' EXIT
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 test/programs/programs.tsv | cut -f 1)
printf '%s\n' "${names[@]}" | xargs -P "${TEST_JOBS:-2}" -I{} "$0" --one {}
passed=$(find "$T" -maxdepth 1 -name '*.passed' | wc -l)
echo "$passed passed, $((${#names[@]} - passed)) failed"
[ "$passed" = ${#names[@]} ]
