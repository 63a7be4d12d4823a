#!/bin/bash
# SPDX-License-Identifier: MIT
# --mode=count: kernels that reach the device by every way are rewritten, behave as before, and their counts
# are right; and what happens when the cache is damaged or unusable.
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

run() {  # run WAY OPTION...: status in $status, output in $T/log
    local way=$1
    shift
    timeout 60 "$MOAT" --device="$device" --mode=count "$@" "$program" "$way" >"$T/log" 2>&1 </dev/null
    status=$?
}

# The row of a kernel in the table: launches threads loads stores read written, without commas.
row() { sed -n "s/^ *\([-0-9, ]*\)  $1\( (.*)\)\?\$/\1/p" "$T/log" | tr -d , | tr -s ' '; }
stat() { sed -n "s/^ *$1  *\([0-9,]*\)\$/\1/p" "$T/log" | tr -d ,; }
same() { [ "$1" = "$2" ]; }
says() { grep -q "$1" "$T/log"; }
is_silent() { ! grep -q "$1" "$T/log"; }

# A launch has 3 blocks of 64 threads; each thread loads and stores 4 bytes, and 8 of each block store 4 more.
right() {
    local n
    n=$(sed -n 's/^LAUNCHES //p' "$T/log")
    [ -n "$n" ] && same "$(row counted)" "$n $((n * 192)) $((n * 192)) $((n * 216)) $((n * 768)) $((n * 864))"
}

for way in $("$program" list); do
    case $way in
    fault)
        run "$way"
        check "$way" same $status 97
        check "$way" says 'counters could not be read: CUDA_ERROR_ILLEGAL_ADDRESS'
        check "$way" same "$(row counted)" '1 0 0 0 0 0'
        ;;
    hang)
        [ "$device" = cpu ] || continue
        run "$way"
        check "$way" same $status 0
        check "$way" says 'kernels were still running'
        ;;
    twins)
        run "$way"
        check "$way" same $status 0
        check "$way" same "$(row 'counted (not counted)')" '3 - - - - -'
        sed -i '/(not counted)$/d' "$T/log"
        check "$way" right
        ;;
    *)
        run "$way"
        check "$way" same $status 0
        check "$way" right
        check "$way" is_silent 'could not be read'
        check "$way" same \
            "$(stat 'modules that could not be rewritten')$(stat 'modules that the driver .* after .*')" ''
        ;;
    esac
done
run linked_two
check 'a function that is called' same "$(row helper)" '- 192 192 0 768 0'
check 'a kernel that calls' same "$(row caller)" '1 192 0 0 0 0'
run lowered
check 'newer PTX' says 'modules rewritten from PTX for another GPU'

# The second time nothing is compiled.
rm -rf "$XDG_CACHE_HOME"
run data
check 'first start' same "$(stat 'modules stored in the cache')$(stat 'modules loaded from the cache')" 1
run data
check 'second start' same "$(stat 'modules loaded from the cache')" 1
check 'second start' right
run options
check 'other options of the compiler are another module' same "$(stat 'modules stored in the cache')" 1
check 'the cache is private' same "$(command stat -c %a "$XDG_CACHE_HOME/moat")" 700
run data --no-cache
check 'without the cache' same \
    "$(stat 'modules loaded from the cache')$(stat 'modules stored in the cache')" ''
check 'without the cache' right
run data --cache-dir="$T/other"
check 'another folder' same "$(find "$T/other" -name '*.mod' | wc -l)" 1

# Damage of every kind is a cache miss, and is repaired.
entry=$(ls "$T"/other/*.mod)
for damage in 'truncate -s 100' 'truncate -s 0' \
    'dd if=/dev/urandom bs=64 count=4 seek=3 conv=notrunc status=none of='; do
    # shellcheck disable=SC2086
    case $damage in *=) $damage"$entry" ;; *) $damage "$entry" ;; esac
    run data --cache-dir="$T/other"
    check "after $damage" right
    check "after $damage" same "$(stat 'modules stored in the cache')" 1
    run data --cache-dir="$T/other"
    check "repaired after $damage" same "$(stat 'modules loaded from the cache')" 1
done
chmod 755 "$T/other"
run data --cache-dir="$T/other"
check 'a folder that others can read' right
check 'a folder that others can read' says "WARNING.*no cache.*not the user's alone"
ln -s "$T/other" "$T/link"
run data --cache-dir="$T/link"
check 'a link' right
check 'a link' says 'WARNING.*no cache'
: >"$T/file"
run data --cache-dir="$T/file/cache"
check 'no folder can be there' right
check 'no folder can be there' says 'WARNING.*no cache'
run data --cache-dir=relative
check 'not a full path' says 'WARNING.*no cache.*full path'
(ulimit -f 0 &&
    XDG_CACHE_HOME=$T/full timeout 60 "$MOAT" --device="$device" --mode=count "$program" data) 2>&1 |
    cat >"$T/log"
check 'a full disk' right
check 'a full disk' says 'could not be stored'

# Several processes at once, with an empty cache.
for i in 1 2 3 4; do
    (XDG_CACHE_HOME=$T/many timeout 60 "$MOAT" --device="$device" --mode=count "$program" again \
        >"$T/many.$i" 2>&1) &
done
wait
stored=
for i in 1 2 3 4; do
    cp "$T/many.$i" "$T/log"
    check "one of four at once" right
    stored+=$(stat 'modules stored in the cache')
done
check 'one of four at once compiles' same "$stored" 1
check 'nothing unfinished is left' same "$(find "$T/many/moat" -type f ! -name '*.mod' | wc -l)" 0

# --kernel-name: only kernels that match are rewritten and listed, whatever the cache has.
run data --kernel-name='^count'
check 'a name that matches' right
run data --kernel-name='^Count'
check 'a name that does not match' same "$(row counted)" ''
check 'a name that does not match' same "$(stat 'kernels left unchanged by --kernel-name')" 1
check 'a name that does not match' same "$(stat 'kernels rewritten')" ''
check 'a name that does not match' same $status 0
run data
check 'no name' right
run data --kernel-name='('
check 'no regular expression' same $status 2
check 'no regular expression' says 'no regular expression: Unmatched'

# Other modes do not rewrite modules.
timeout 60 "$MOAT" --device="$device" --mode=api "$program" data >"$T/log" 2>&1
check 'mode api' is_silent 'what kernels read'
check 'mode api' is_silent 'modules rewritten'

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
