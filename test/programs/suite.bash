# SPDX-License-Identifier: MIT
# For tests that run each program of the suite once without moat's checks and once with a mode, on the CPU
# device. A script that sources this defines judge, calls suite with its own arguments, and returns what that
# returns: suite [NAME...] runs all programs, or these, several at a time, and prints a line for each.
#
# judge NAME STATUS ARG...: runs $T/NAME with the arguments, compares, and prints what stands after `ok   NAME`
# or `FAIL NAME`, with further lines below. STATUS is what the program ended with under --mode=off; it printed
# to $T/NAME.off. Returns 0 if all is well. OFF_OPTIONS: more options for that first run.
#
# shellcheck shell=bash
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
OFF_OPTIONS=()

suite_one() {  # suite_one NAME
    local name sm args file off said
    IFS=$'\t' read -r name sm args _ < <(grep "^$1	" test/programs/programs.tsv)
    file=$(test/programs/object "$name" "$sm") || { echo "FAIL $name: nvcc"; return; }
    nvcc -cudart shared -L"$BUILD/lib/moat" "$file" -o "$T/$name" ||
        { echo "FAIL $name: does not link"; return; }
    read -ra args <<<"$args"
    timeout 200 "$MOAT" --device=cpu --mode=off "${OFF_OPTIONS[@]}" "$T/$name" "${args[@]}" \
        >"$T/$name.off" 2>&1 </dev/null
    off=$?
    if said=$(judge "$name" $off "${args[@]}"); then
        echo "ok   $name$said"
        : >"$T/$name.passed"
    else
        echo "FAIL $name$said"
    fi
}

quote() {  # quote: standard input, as lines of a report
    sed 's/^/    | /'
}

suite() {
    local names passed
    if [ "${1:-}" = --one ]; then
        suite_one "$2"
        return 0
    fi
    T=$(mktemp -d) || return 1
    export T XDG_CACHE_HOME=$T/cache
    trap 'rm -rf "$T"' EXIT
    names=("$@")
    [ $# -gt 0 ] || mapfile -t names < <(tail -n +2 test/programs/programs.tsv | cut -f 1)
    printf '%s\n' "${names[@]}" | xargs -P "${TEST_JOBS:-2}" -I{} "$0" --one {}
    passed=$(find "$T" -maxdepth 1 -name '*.passed' | wc -l)
    echo "$passed passed, $((${#names[@]} - passed)) failed"
    [ "$passed" = ${#names[@]} ]
}
