#!/bin/bash
# SPDX-License-Identifier: MIT
# --dump-rewritten: what modes rewrite is written as the driver gets it, complete and well formed; a failure
# is reported once, and the program runs as it would have.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu} program=$BUILD/tool/count_load
T=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$T"; rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0

check() {  # check WHAT CONDITION...: of the last run
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what: $*"
        tail -n 30 "$T/log" | sed 's/^/    | /'
    fi
}

run() {  # run DIR MODE PROGRAM ARG...: status in $status, output in $T/log
    local dir=$1 mode=$2
    shift 2
    timeout 60 "$MOAT" --device="$device" --mode="$mode" --dump-rewritten="$dir" "$@" \
        >"$T/log" 2>&1 </dev/null
    status=$?
}

same() { [ "$1" = "$2" ]; }
says() { grep -q "$1" "$T/log"; }
times() { grep -c "$1" "$T/log"; }
is_silent() { ! grep -q "$1" "$T/log"; }
files() { find "$1" -type f | wc -l; }
all_have() {  # all_have DIR PATTERN: each of its files, and there are some
    [ "$(files "$1")" -gt 0 ] && [ "$(grep -L -e "$2" "$1"/* | wc -l)" = 0 ]
}
all_verify() {
    local file
    for file in "$1"/*; do
        "$MOAT" ptx verify "$file" >"$T/verify" 2>&1 || { cat "$T/verify" >>"$T/log"; return 1; }
    done
}
stat() { sed -n "s/^ *$1  *\([0-9,]*\)\$/\1/p" "$T/log" | tr -d ,; }

# Every way to the driver.
for way in $("$program" list); do
    case $way in fault | hang | twins) continue ;; esac
    run "$T/$way" count "$program" "$way"
    check "$way" same $status 0
    check "$way" says '^LAUNCHES'
    check "$way" all_have "$T/$way" '__moat_count_'
    check "$way" all_have "$T/$way" '^// passes: count\.[0-9]*$'
    check "$way" all_have "$T/$way" '^// architecture: sm_[0-9]*$'
    check "$way" all_have "$T/$way" "^// program: $(realpath "$program")\$"
    check "$way" all_verify "$T/$way"
    check "$way" same '' \
        "$(find "$T/$way" -type f ! -regex '.*/[0-9]+-[0-9][0-9][0-9]+-[-._A-Za-z0-9]+\.ptx')"
done
check 'three inputs of a link' same "$(files "$T/linked_two")" 3
check 'inputs of a link' all_have "$T/linked_two" '^// from: PTX as an input of a link$'
check 'in memory' all_have "$T/data" '^// from: PTX in memory$'
check 'the folder is made, for its user' same "$(command stat -c %a "$T/data")" 700

# The cache has machine code only: it is filled, but not read.
run "$T/filled" count --cache-dir="$T/own" "$program" data
check 'first start' same "$(stat 'modules stored in the cache')" 1
run "$T/second" count --cache-dir="$T/own" "$program" data
check 'second start' same "$(stat 'modules loaded from the cache')$(files "$T/second")" 1
check 'the same text' same "$(grep -v '^//' "$T"/filled/* | md5sum)" "$(grep -v '^//' "$T"/second/* | md5sum)"
timeout 60 "$MOAT" --device="$device" --mode=count --cache-dir="$T/own" "$program" data >"$T/log" 2>&1
check 'without the option the cache serves' same "$(stat 'modules loaded from the cache')" 1

# malloc inside kernels.
run "$T/kheap" canary "$BUILD/tool/kheap_errors" good single_kernel 1
check kheap same $status 0
check kheap all_have "$T/kheap" '^// passes: kheap\.'
check kheap all_have "$T/kheap" '__moat_kheap'
check kheap all_verify "$T/kheap"
run "$T/both" canary,count "$BUILD/tool/kheap_errors" good single_kernel 1
check both all_have "$T/both" '__moat_count_'
check both grep -qr '^// passes: count\.[0-9]*,kheap\.' "$T/both"

# Several processes at once, and several runs, in one folder.
for i in 1 2 3 4; do
    timeout 60 "$MOAT" --device="$device" --mode=count --dump-rewritten="$T/many" "$program" again \
        >"$T/many.$i" 2>&1 &
done
wait
cat "$T"/many.? >"$T/log"
check 'many at once' same "$(files "$T/many")" 20
check 'many at once' all_verify "$T/many"
check 'many at once' is_silent 'WARNING'

# A relative folder.
full=$(realpath "$program")
(cd "$T" && timeout 60 "$MOAT" --device="$device" --mode=count --dump-rewritten=here "$full" data) \
    >"$T/log" 2>&1
check 'a relative name' same "$(files "$T/here")" 1

# Failures.
nothing() {  # nothing WHAT DIR REASON
    run "$2" count "$program" again
    check "$1" same $status 0
    check "$1" says '^LAUNCHES'
    check "$1" same "$(times 'dump-rewritten')" 1
    check "$1" says "dump-rewritten: .*: $3"
}
: >"$T/file"
ln -s "$T/data" "$T/link"
nothing 'a file' "$T/file" 'it is a link, or no folder'
nothing 'a link' "$T/link" 'it is a link, or no folder'
nothing 'a link with a slash' "$T/link/" 'it is a link, or no folder'
nothing 'a link with a slash and a dot' "$T/link/./" 'it is a link, or no folder'
nothing 'two levels' "$T/none/none" 'No such file'
check 'a link is not followed' same "$(files "$T/data")" 1
(
    ulimit -f 0
    timeout 60 "$MOAT" --device="$device" --mode=count --no-cache --dump-rewritten="$T/full" \
        "$program" data 2>&1
) | cat >"$T/log"
check 'a full disk' says '^LAUNCHES'
check 'a full disk' says 'dump-rewritten: .*: File too large'
check 'a full disk' same "$(files "$T/full")" 0

# Modes that do not rewrite modules.
run "$T/api" api "$program" data
check 'the default mode' says 'dump-rewritten has no effect: no active mode rewrites modules'
check 'the default mode' [ ! -e "$T/api" ]
run "$T/none" canary --no-kheap "$program" data
check '--no-kheap' says 'dump-rewritten has no effect: no active mode rewrites modules'

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
