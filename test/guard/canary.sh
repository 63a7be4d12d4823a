#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# --mode=canary: each program of test/guard/canary_errors.c and canary_moments.c must be reported as what it
# is, with bytes, buffer and kernel; its twin runs silently, many times over. What a program can query about
# its memory must be the same as without the mode.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device. SECTION=FILE: writes a table of the results there,
# with the time from the write to the report. PAIRS_OPTIONS and PAIRS_ROUNDS: see test/guard/pairs.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
"$MOAT" --mode=canary --version >/dev/null 2>&1 || { echo 'this moat has no --mode=canary'; exit 77; }
# shellcheck source=test/guard/pairs
. test/guard/pairs

# What a report of a changed canary must show.
lacks() {  # lacks LOG NAME TRAIT: prints what is missing
    local log=$1 name=$2 trait=$3
    if [ "$trait" = leak ]; then
        grep -q '1001-byte region' "$log" || echo 'the size is not the one that was asked for'
        return
    elif [ "$trait" = call ]; then
        ! grep -q 'outside any live buffer' "$log" || echo 'the canary reports what the call did'
        return
    fi
    grep -q 'outside any live buffer' "$log" || echo 'no bytes are shown'
    grep -Eq 'bytes? (after|before|inside) [0-9]+-byte region' "$log" || echo 'no buffer is named'
    grep -q 'allocated by cuMem' "$log" || echo 'who allocated is not said'
    [[ $name != one_byte* ]] || grep -q ' 1 byte outside any live buffer' "$log" ||
        echo 'more than one byte is said to be changed'
    [ "$name" != blamed_alone ] || ! grep -q '\<fill\>' "$log" ||
        echo 'a kernel is named that cannot have done it'
    [ "$trait" = host ] || grep -Eq '\<(flip|restore)\>' "$log" || echo 'the kernel is not named'
}

[ "${1:-}" != --one ] || pairs_one "${@:2}"
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export T
for program in canary_errors canary_moments; do
    "$BUILD/tool/$program" list | sed "s|^|$BUILD/tool/$program |"
done >"$T/cases"
# GMODx's way, for comparison: plain memory is managed, and reports so; the bytes next to a buffer are read
# periodically.
plain=yes
if [[ $PAIRS_OPTIONS == *=managed* ]]; then
    plain=no
    sed -i '/ restored /d; / written_after_free /d' "$T/cases"
fi
pairs_all

verdict() {  # verdict WHAT: of what pairs_watch ran
    if [ "$status" = 77 ]; then
        skipped=$((skipped + 1))
    else
        [ "$status" = 0 ] && [ -z "$found" ]
        pairs_verdict $? "$1"
    fi
}

try() {  # try COMMAND...: it must end well and nothing may be reported
    pairs_watch "$T/log" "$@"
    verdict "${*##*/}"
}

[ $plain = no ] || try "$BUILD/tool/canary_good" info
for what in whole fresh copies pressure registered graph contexts captured shared_device graph_pressure \
    ipc; do
    # shellcheck disable=SC2086
    try "$BUILD/tool/canary_good" $what
done
try "$BUILD/tool/pages_good" many 1000 3000
try "$BUILD/tool/pages_good" churn 3145728 500
try "$BUILD/tool/pages_good" threads
try "$BUILD/tool/pages_good" order

# What a program can query, without and with canaries.
for program in canary_good pages_good; do
    [ $plain = yes ] || break
    "$MOAT" --device="$GUARD_DEVICE" --mode=off "$BUILD/tool/$program" answers >"$T/plain" 2>"$T/log" \
        </dev/null || echo 'FAIL answers without moat'
    pairs_watch "$T/log" "$BUILD/tool/$program" answers
    diff "$T/plain" "$T/log.out" >"$T/differences" || status=1
    [ "$status" = 0 ] || head -n 20 "$T/differences" >"$T/log.out"
    verdict "$program answers, without canaries and with"
done

# The monitor alone stops a program whose host does nothing, even with five scans a second.
for option in --canary-interval=1 --canary-interval=200; do
    pairs_watch "$T/log" $option --halt-on-error "$BUILD/tool/canary_moments" bad host_idle
    [ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ] && ! grep -q 'went on' "$T/log.out"
    pairs_verdict $? "--halt-on-error $option"
done

# With one scan a minute, the program's own waits find the error, also of graphs.
pairs_watch "$T/log" --canary-interval=60000 "$BUILD/tool/canary_moments" bad replayed
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ] && grep -q 'when the program waited' "$T/log"
pairs_verdict $? "a graph, --canary-interval=60000"

pairs_end
