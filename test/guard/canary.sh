#!/bin/bash
# SPDX-License-Identifier: MIT
# --mode=canary: each program of test/guard/canary_errors.c and canary_moments.c must be reported as what it is, with bytes,
# buffer and kernel; its twin runs in silence, many times over. What a program is told about its memory must be the same as
# without the mode.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device. SECTION=FILE: a table of the results goes there, with the time from the
# write to the report. CANARY_OPTIONS: options to run with besides; CANARY_ROUNDS: how often a twin runs in its process.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
"$MOAT" --mode=canary --version >/dev/null 2>&1 || { echo 'this moat has no --mode=canary'; exit 77; }
export GUARD_DEVICE=${GUARD_DEVICE:-cpu} CANARY_ROUNDS=${CANARY_ROUNDS:-1000} CANARY_OPTIONS=${CANARY_OPTIONS:-}

watch() {  # watch LOG COMMAND...: status in $status; the program's own output goes to LOG.out, moat's to LOG with times before it
    local log=$1
    shift
    # shellcheck disable=SC2086
    timeout 120 "$MOAT" --device="$GUARD_DEVICE" --mode=canary $CANARY_OPTIONS "$@" 2>&1 >"$log.out" </dev/null |
        while IFS= read -r line; do echo "$EPOCHREALTIME $line"; done >"$log"
    status=${PIPESTATUS[0]}
    found=$(sed -n 's/.*ERROR: moat: \([a-z-]*\).*/\1/p' "$log" | tr '\n' ' ')
    found=${found% }
}

wrong() {  # wrong LOG WHAT: a line for the table, then what was said
    echo "FAIL $2"
    tail -n 40 "$1" "$1.out" | sed 's/^/    | /'
}

# What a report of a changed canary must show.
lacks() {  # lacks LOG NAME TRAIT: prints what is missing
    local log=$1 name=$2 trait=$3
    if [ "$trait" = leak ]; then
        grep -q '1001-byte region' "$log" || echo 'the size is not the one that was asked for'
        return
    elif [ "$trait" = call ]; then
        ! grep -q 'that nobody may write' "$log" || echo 'the canary tells what the call did'
        return
    fi
    grep -q 'that nobody may write' "$log" || echo 'no bytes are shown'
    grep -Eq 'bytes? (after|before|inside) [0-9]+-byte region' "$log" || echo 'no buffer is named'
    grep -q 'allocated by cuMem' "$log" || echo 'who allocated is not said'
    [[ $name != one_byte* ]] || grep -q ' 1 byte that nobody may write' "$log" || echo 'more than one byte is said to be changed'
    [ "$trait" = host ] || grep -Eq '\<(flip|restore)\>' "$log" || echo 'the kernel is not named'
}

delay() {  # delay LOG: milliseconds from the write to the report
    awk -v wrote="$(sed -n 's/^wrote //p' "$1.out" | head -n 1)" \
        '/ERROR: moat/ && wrote { if ($1 >= wrote) printf "%.1f ms", ($1 - wrote) * 1000; exit }' "$1"
}

# A line for a case: ok, with what was reported and after how long; skip, with the call that is not there; or FAIL.
one() {  # one PROGRAM NAME TYPE TRAIT
    local program=$BUILD/tool/$1 name=$2 type=$3 trait=${4:-} log=$T/$2 rounds=$CANARY_ROUNDS options=() status found missing
    [ "$trait" != once ] || rounds=1
    [ "$trait" != leak ] || options=(--leak-check)
    watch "$log" "${options[@]}" "$program" good "$name" "$rounds"
    if [ "$status" = 77 ]; then
        echo "skip $(sed -n 's/^[a-z_]*\.[ch]:[0-9]*: [^.]*\.\([^(]*\).*/no \1/p' "$log.out" | head -n 1)"
        return
    elif [ "$status" != 0 ] || [ -n "$found" ]; then
        wrong "$log" "good: status $status, reported: ${found:-nothing}"
        return
    fi
    watch "$log" "${options[@]}" "$program" bad "$name"
    missing=$(lacks "$log" "$name" "$trait" | paste -sd ,)
    if [ "$status" != 97 ] || ! [[ $found =~ ^($type)$ ]]; then
        wrong "$log" "bad: status $status, reported: ${found:-nothing}, expected $type"
    elif [ -n "$missing" ]; then
        wrong "$log" "bad: $missing"
    else
        echo "ok $found; $(delay "$log")"
    fi
}

if [ "${1:-}" = --one ]; then
    shift
    one "$@" >"$T/$2.result"
    exit 0
fi
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export T
for program in canary_errors canary_moments; do
    "$BUILD/tool/$program" list | sed "s/^/$program /"
done >"$T/cases"
# GMODx's way, to compare with: plain memory is managed, and says so; the bytes next to a buffer are read now and then.
plain=yes
if [[ $CANARY_OPTIONS == *=managed* ]]; then
    plain=no
    sed -i '/ restored /d; / written_after_free /d' "$T/cases"
fi
xargs -P "$(nproc)" -L 1 "$0" --one <"$T/cases"

passed=0 failed=0 skipped=0 rows=
while read -r _ name _; do
    IFS=' ' read -r word said <"$T/$name.result" || word=FAIL
    after=${said##*;} said=${said%;*}
    [ "$after" != "$said" ] || after=
    case $word in
    ok) passed=$((passed + 2)) ;;
    skip) skipped=$((skipped + 1)) ;;
    *)
        failed=$((failed + 1)) said="**$said**"
        echo "FAIL $name: $(cat "$T/$name.result" 2>&1)"
        ;;
    esac
    # A bar would end the cell.
    rows+="| $name | ${said//|/\\|} |${after:+ }$after |"$'\n'
done <"$T/cases"

verdict() {  # verdict WHAT: of what watch ran
    case $status in
    0) [ -z "$found" ] && passed=$((passed + 1)) && return ;;
    77) skipped=$((skipped + 1)) && return ;;
    esac
    failed=$((failed + 1))
    echo "FAIL $1: $(wrong "$T/log" "status $status, reported: ${found:-nothing}")"
}

try() {  # try COMMAND...: it must end well and nothing may be reported
    watch "$T/log" "$@"
    verdict "${*##*/}"
}

[ $plain = no ] || try "$BUILD/tool/canary_good" info
for what in whole pressure registered graph ipc 'ipc bare'; do
    # shellcheck disable=SC2086
    try "$BUILD/tool/canary_good" $what
done
try "$BUILD/tool/pages_good" many 1000 3000
try "$BUILD/tool/pages_good" churn 3145728 500
try "$BUILD/tool/pages_good" threads
try "$BUILD/tool/pages_good" order

# What a program is told, without and with canaries.
for program in canary_good pages_good; do
    [ $plain = yes ] || break
    "$MOAT" --device="$GUARD_DEVICE" --mode=off "$BUILD/tool/$program" answers >"$T/plain" 2>"$T/log" </dev/null || echo 'FAIL answers without moat'
    watch "$T/log" "$BUILD/tool/$program" answers
    diff "$T/plain" "$T/log.out" >"$T/differences" || status=1
    [ "$status" = 0 ] || head -n 20 "$T/differences" >"$T/log.out"
    verdict "$program answers, without canaries and with"
done

# The monitor alone stops a program whose host does nothing, even one that looks five times a second.
for option in --canary-interval=1 --canary-interval=200; do
    watch "$T/log" $option --halt-on-error "$BUILD/tool/canary_moments" bad host_idle
    if [ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ] && ! grep -q 'went on' "$T/log.out"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        wrong "$T/log" "--halt-on-error $option: status $status, reported: ${found:-nothing}"
    fi
done

result="$passed passed, $failed failed"
[ $skipped = 0 ] || result+=", $skipped skipped"
if [ -n "${SECTION:-}" ]; then
    printf 'Each program has an error planted; its correct twin ran too, %s times in one process, and was not reported: %s.' "$CANARY_ROUNDS" "$result"
    printf ' The time runs from the write, as the host sees it, to the line on the terminal; several programs ran at once.\n\n'
    printf '| program | reported | after |\n| --- | --- | --- |\n%s' "$rows"
fi >"${SECTION:-/dev/null}"
echo "$result"
[ $failed = 0 ] && [ $passed -gt 0 ]
