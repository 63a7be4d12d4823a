#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# The suite's programs with every kernel rewritten by the counting pass, on the CPU device: their results are
# still right. counted_suite.sh [NAME...]: all of them, or these.
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }

# The commands that nvcc would run, with ours between PTX and what is made from it.
compile() {  # compile NAME SM FOLDER
    (
        cd "$3" || exit 1
        nvcc --dryrun --keep -O2 -gencode "arch=compute_$2,code=compute_$2" -cudart shared -L"$LIB" \
            "$ROOT/test/programs/$1.cu" \
            -o program 2>&1 | sed -n 's/^#\$ //p' |
            sed 's/^_SPACE_=.*//; s/^\([A-Za-z_]*\)=\(.*\)/\1="\2"/' |
            awk '
                /fatbinary/ && !done++ {
                    print "for f in *.ptx; do"
                    print "    \"$MOAT\" ptx instrument $f >counted && mv counted $f || exit 1"
                    print "done"
                }
                { print }' >commands
        grep -q instrument commands && sed -i "s,^rm ,rm -f ," commands && bash -e commands
    )
}

one() {  # one NAME: a line on it
    local name sm args features
    IFS=$'\t' read -r name sm args _ features < <(grep "^$1	" test/programs/programs.tsv)
    mkdir "$T/$name" || return
    if ! compile "$name" "$sm" "$T/$name" >"$T/$name/log" 2>&1; then
        echo "FAIL $name: does not compile"
    elif ! grep -q __moat_count_ "$T/$name"/*.ptx; then
        echo "FAIL $name: not rewritten"
    else
        # shellcheck disable=SC2086
        timeout 100 "$MOAT" --device=cpu --mode=off "$T/$name/program" $args >"$T/$name/log" 2>&1 </dev/null
        case $? in
        0) echo "ok   $name"; return ;;
        77) echo "skip $name"; return ;;
        esac
        echo "FAIL $name"
    fi
    tail -n 10 "$T/$name/log" | sed 's/^/    | /'
}

if [ "${1:-}" = --one ]; then
    one "$2"
    rm -rf "${T:?}/$2"
    exit 0
fi
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
ROOT=$PWD LIB=$(realpath "$BUILD/lib/moat")
export T ROOT LIB
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 test/programs/programs.tsv | cut -f 1)
printf '%s\n' "${names[@]}" | xargs -P "${TEST_JOBS:-2}" -I{} "$0" --one {} | tee "$T/out"
passed=$(grep -c '^ok' "$T/out") failed=$(grep -c '^FAIL' "$T/out")
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
