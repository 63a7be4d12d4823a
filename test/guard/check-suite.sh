#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# The suite under --mode=check on the CPU device: every program gives the result and the status that it gives
# without moat, nothing is reported, and kernels are checked, also if all proofs are checked.
# check-suite.sh [NAME...]: all programs, or these.
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }

one() {  # one NAME
    local name sm args file status off
    IFS=$'\t' read -r name sm args _ < <(grep "^$1	" test/programs/programs.tsv)
    file=$(test/programs/object "$name" "$sm") || { echo "FAIL $name: nvcc"; return; }
    nvcc -cudart shared -L"$BUILD/lib/moat" "$file" -o "$T/$name" ||
        { echo "FAIL $name: does not link"; return; }
    # shellcheck disable=SC2086
    timeout 200 "$MOAT" --device=cpu --mode=off "$T/$name" $args >"$T/$name.off" 2>&1 </dev/null
    off=$?
    # shellcheck disable=SC2086
    timeout 500 "$MOAT" --device=cpu --mode=check --proofs=check --log-file="$T/$name.log" "$T/$name" $args \
        >"$T/$name.out" 2>&1 </dev/null
    status=$?
    if [ $status != $off ] || grep -q 'ERROR: moat\|a bug of moat' "$T/$name.log"; then
        echo "FAIL $name: --proofs=check: status $status, $off without"
        grep -A 12 -m 2 'ERROR: moat\|a bug of moat' "$T/$name.log" | sed 's/^/    | /'
        return
    fi
    # shellcheck disable=SC2086
    timeout 500 "$MOAT" --device=cpu --mode=check --log-file="$T/$name.log" "$T/$name" $args \
        >"$T/$name.out" 2>&1 </dev/null
    status=$?
    if [ $status != $off ] || grep -q 'ERROR: moat' "$T/$name.log"; then
        echo "FAIL $name: status $status, $off without"
        tail -n 5 "$T/$name.out" | sed 's/^/    | /'
        grep -A 12 -m 2 'ERROR: moat' "$T/$name.log" | sed 's/^/    | /'
    elif [ $off = 0 ] && ! grep -q 'kernel launches checked' "$T/$name.log"; then
        echo "FAIL $name: no kernel was checked"
        tail -n 20 "$T/$name.log" | sed 's/^/    | /'
    else
        echo "ok   $name: $(sed -n 's/^ *kernel launches checked *//p' "$T/$name.log") launches," \
            "$(sed -n 's/^ *of these proved right.*checks *//p' "$T/$name.log") proved," \
            "$(sed -n 's/^ *of these proved in part.*checks *//p' "$T/$name.log") in part" \
            "$(sed -n 's/^ *kernel launches not checked/; not checked/p' "$T/$name.log")"
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
