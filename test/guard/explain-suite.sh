#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# The suite under moat explain on the CPU device: results stay right, no error is called certain, since the
# programs have none, and every kernel that was launched is explained. explain-suite.sh [NAME...]: all
# programs, or these.
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
command -v jq >/dev/null || { echo 'no jq on this machine'; exit 77; }

one() {  # one NAME
    local name sm args file status off
    IFS=$'\t' read -r name sm args _ < <(grep "^$1	" test/programs/programs.tsv)
    file=$(test/programs/object "$name" "$sm") || { echo "FAIL $name: nvcc"; return; }
    nvcc -cudart shared -L"$BUILD/lib/moat" "$file" -o "$T/$name" ||
        { echo "FAIL $name: does not link"; return; }
    # shellcheck disable=SC2086
    timeout 100 "$MOAT" --device=cpu --mode=off "$T/$name" $args >"$T/$name.off" 2>&1 </dev/null
    off=$?
    # shellcheck disable=SC2086
    timeout 100 "$MOAT" explain --device=cpu --format=json --log-file="$T/$name.json" "$T/$name" $args \
        >"$T/$name.log" 2>&1 </dev/null
    status=$?
    if [ $status != $off ]; then
        echo "FAIL $name: status $status, $off without"
        tail -n 5 "$T/$name.log" "$T/$name.json" | sed 's/^/    | /'
    elif jq -es 'map(select(.event == "error" or (.event == "proofs" and
        ([.kernels[] | .outside > 0 or .unread] | any)))) | length > 0' "$T/$name.json" >/dev/null; then
        echo "FAIL $name: an error, or a kernel that was not read"
        jq -c 'select(.event == "error" or .event == "proofs")' "$T/$name.json" | cut -c 1-1000 |
            sed 's/^/    | /'
    else
        echo "ok   $name: $(jq -rs 'map(select(.event == "proofs") | .kernels[]) |
            "\(length) kernels, \(map(.accesses) | add) accesses: \(map(.inside) | add) inside, " +
            "\(map(.maybe_outside) | add) maybe outside, \(map(.not_bounded) | add) not bounded"' \
            "$T/$name.json")"
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
