#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# Every pass over many modules: the verifier and, if installed, ptxas accept the result. The suite as nvcc
# compiles it, plain, with lines and for debugging in turn; clang's output; and the texts with every form.
# Where TEST_ALL is 0, ptxas gets every other one.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export T
passes=${PASSES:-count}
ptxas=$(command -v ptxas)
export passes ptxas

fail() {  # fail NAME WHAT LOG
    echo "FAIL $1: $2"
    head -n 10 "$3" | sed 's/^/    | /'
}

# wants_ptxas NAME: whether ptxas is to be asked about it.
wants_ptxas() {
    [ -n "$ptxas" ] && { [ "${TEST_ALL:-1}" != 0 ] || [ $(($(cksum <<<"$1" | cut -d ' ' -f 1) % 2)) = 0 ]; }
}

assemble() {  # assemble TEXT LOG: for the .target that it names; code for a later link leaves symbols open
    local arch
    arch=$(sed -n 's/^\.target[[:space:]]*\(sm_[0-9]*[af]\{0,1\}\).*/\1/p' "$1" | head -n 1)
    [[ $arch == sm_[0-9][0-9] && ${arch#sm_} -lt 75 ]] && arch=sm_75
    "$ptxas" -arch="$arch" -o /dev/null "$1" >"$2" 2>&1 ||
        "$ptxas" -c -arch="$arch" -o /dev/null "$1" >"$2" 2>&1
}

one() {  # one NAME FILE
    local to=$T/$1.out log=$T/$1.log
    if ! "$MOAT" ptx instrument --pass="$passes" "$2" >"$to" 2>"$log"; then
        grep -q 'addresses of 32 bits' "$log" && { echo "skip $1: 32-bit addresses"; return; }
        fail "$1" instrument "$log"
    elif ! "$MOAT" ptx verify "$to" >"$log" 2>&1; then
        fail "$1" verify "$log"
    elif wants_ptxas "$1" && ! assemble "$to" "$log"; then
        # What ptxas refuses unchanged is not our error.
        assemble "$2" "$log.plain" && fail "$1" ptxas "$log" || echo "skip $1: ptxas refuses the original"
    else
        echo "ok $1"
    fi
    rm -f "$to" "$log"
}

programs() {  # programs ARCH WAY NAMES
    local file name=${3%%,*}
    file=$(test/programs/object "$3" "$1" ptx "${2#plain}" 2>"$T/$name.nvcc") ||
        { fail "$name" nvcc "$T/$name.nvcc"; return; }
    one "$3-$1-${2#-}" "$file"
}

library() {  # library SM NAME: of what test/cpu/suite.sh runs, since nvcc takes long over it
    local file
    file=$(test/programs/object "$2" "$1" 2>"$T/$2.nvcc") || { fail "$2" nvcc "$T/$2.nvcc"; return; }
    "$MOAT" ptx print --raw --module=1 "$file" >"$T/$2.ptx" 2>"$T/$2.nvcc" ||
        { fail "$2" print "$T/$2.nvcc"; return; }
    one "$2" "$T/$2.ptx"
}
export -f one fail wants_ptxas assemble programs library

libraries=()
if command -v nvcc >/dev/null; then
    test/programs/groups ways | sed 's/.*/programs &/' | tr '\n' '\0' >"$T/list"
    mapfile -t libraries < <(test/programs/groups objects | grep -wE "$(awk -F '\t' \
        '$5 ~ /library/ { print s $1; s = "|" }' ORS= test/programs/programs.tsv)" | sed 's/^/library /')
fi
for arch in sm_75 sm_90; do
    if command -v clang >/dev/null && test/clang/ptx test/clang/kernels.cu $arch -O1 \
        >"$T/clang-$arch.ptx" 2>/dev/null; then
        printf 'one clang-%s %s\0' $arch "$T/clang-$arch.ptx" >>"$T/list"
    fi
done
for file in test/ptx/forms/*.ptx; do
    printf 'one %s %s\0' "$(basename "$file" .ptx)" "$file" >>"$T/list"
done
[ ${#libraries[@]} = 0 ] || printf '%s\0' "${libraries[@]}" >>"$T/list"
# shellcheck disable=SC2016
xargs -0 -a "$T/list" -n 1 -P "${JOBS:-1}" bash -c 'eval "$1"' one >"$T/out"
grep -v '^ok' "$T/out"
passed=$(grep -c '^ok' "$T/out") failed=$(grep -c '^FAIL' "$T/out")
[ -n "$ptxas" ] || echo 'covered: without ptxas'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
