#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# malloc inside kernels under --mode=canary: each program of test/guard/kheap_errors.c must be reported as what it is, with
# bytes, buffer and kernel; its twin runs in silence, many times over. Where there is nvcc, or they were built before, the
# same for objects of C++, recursion and cooperative grids (kheap_objects.cu), and the suite's device_heap.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device. SECTION=FILE: a table of the results goes there, with the time from the
# write to the report. KHEAP_OPTIONS: options to run with besides; KHEAP_ROUNDS: how often a twin runs in its process.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
"$MOAT" --kheap-arrays=32 --version >/dev/null 2>&1 || { echo 'this moat leaves malloc inside kernels alone'; exit 77; }
export GUARD_DEVICE=${GUARD_DEVICE:-cpu} KHEAP_ROUNDS=${KHEAP_ROUNDS:-100} KHEAP_OPTIONS=${KHEAP_OPTIONS:-}

watch() {  # watch LOG COMMAND...: status in $status; the program's own output goes to LOG.out, moat's to LOG with times before it
    local log=$1
    shift
    # shellcheck disable=SC2086
    timeout 120 "$MOAT" --device="$GUARD_DEVICE" --mode=canary $KHEAP_OPTIONS "$@" 2>&1 >"$log.out" </dev/null |
        while IFS= read -r line; do echo "$EPOCHREALTIME $line"; done >"$log"
    status=${PIPESTATUS[0]}
    found=$(sed -n 's/.*ERROR: moat: \([a-z-]*\).*/\1/p' "$log" | tr '\n' ' ')
    found=${found% }
}

wrong() {  # wrong LOG WHAT: a line for the table, then what was said
    echo "FAIL $2"
    tail -n 40 "$1" "$1.out" | sed 's/^/    | /'
}

lacks() {  # lacks LOG NAME TRAIT: prints what a report must show and does not
    local log=$1 name=$2 trait=$3
    if [ "$trait" = free ]; then
        grep -Eq 'Freed by thread \([0-9]+,0,0\) in block' "$log" || echo 'who freed is not said'
    else
        grep -q ' 1 byte that nobody may write' "$log" || echo 'the byte is not shown'
        grep -Eq 'bytes? (after|before) [0-9]+-byte region' "$log" || echo 'no buffer is named'
    fi
    [[ $name == bad_free || $name == double_much_later ]] || grep -q 'allocated by malloc in a kernel' "$log" ||
        echo 'who allocated is not said'
    grep -Eq '\<(write|flip|twice|both|give|objects|tree|grid)\>' "$log" || echo 'the kernel is not named'
    grep -q 'heaps for malloc inside kernels' "$log" || echo 'the summary does not speak of the heap'
}

delay() {  # delay LOG: milliseconds from the write to the report
    awk -v wrote="$(sed -n 's/^wrote //p' "$1.out" | head -n 1)" \
        '/ERROR: moat/ && wrote { if ($1 >= wrote) printf "%.1f ms", ($1 - wrote) * 1000; exit }' "$1"
}

# A line for a case: ok, with what was reported and after how long; skip, with the call that is not there; or FAIL.
one() {  # one PROGRAM NAME TYPE TRAIT
    local program=$1 name=$2 type=$3 trait=${4:-} log=$T/$2 rounds=$KHEAP_ROUNDS status found missing
    [ "$trait" != once ] || rounds=1
    watch "$log" "$program" good "$name" "$rounds"
    if [ "$status" = 77 ]; then
        echo "skip $(sed -n 's/^[a-z_]*\.[ch]:[0-9]*: [^.]*\.\([^(]*\).*/no \1/p' "$log.out" | head -n 1)"
        return
    elif [ "$status" != 0 ] || [ -n "$found" ]; then
        wrong "$log" "good: status $status, reported: ${found:-nothing}"
        return
    fi
    watch "$log" "$program" bad "$name"
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

# Programs in CUDA: those that came along, or else built here.
compiled() {  # compiled NAME SOURCE: its path, or nothing
    if [ "$GUARD_DEVICE" = gpu ] && [ -x "$BUILD/programs/$1" ]; then
        echo "$BUILD/programs/$1"
    elif command -v nvcc >/dev/null && [ "$GUARD_DEVICE" = cpu ]; then
        nvcc -std=c++17 -gencode arch=compute_75,code=compute_75 -cudart shared -L"$BUILD/lib/moat" -o "$T/$1" "$2" \
            >"$T/$1.log" 2>&1 && echo "$T/$1" || cat "$T/$1.log" >&2
    fi
}
objects=$(compiled kheap_objects test/guard/kheap_objects.cu)
device_heap=$(compiled device_heap test/programs/device_heap.cu)

for program in "$BUILD/tool/kheap_errors" $objects; do
    "$MOAT" --device="$GUARD_DEVICE" --mode=off "$program" list 2>/dev/null </dev/null | sed "s|^|$program |"
done >"$T/cases"
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

verdict() {  # verdict OK WHAT: of what watch ran
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $2: $(wrong "$T/log" "status $status, reported: ${found:-nothing}")"
    fi
}

if [ -n "$device_heap" ]; then
    watch "$T/log" "$device_heap"
    [ "$status" = 0 ] && [ -z "$found" ] && grep -q 'heaps for malloc inside kernels' "$T/log"
    verdict $? 'device_heap of the suite'
else
    skipped=$((skipped + 1))
fi

# The monitor alone stops a program whose host does nothing.
watch "$T/log" --halt-on-error "$BUILD/tool/kheap_errors" bad host_idle
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ] && ! grep -q 'went on' "$T/log.out"
verdict $? --halt-on-error

# As many arrays as there may be; and none of it, where nobody wants it: then nothing is rewritten and nothing found.
watch "$T/log" --kheap-arrays=128 "$BUILD/tool/kheap_errors" bad sequential_kernels
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ]
verdict $? --kheap-arrays=128
watch "$T/log" --no-kheap "$BUILD/tool/kheap_errors" bad sequential_kernels
[ "$status" = 0 ] && [ -z "$found" ] && ! grep -q 'modules rewritten' "$T/log"
verdict $? --no-kheap

# A program without malloc in its kernels is not touched.
watch "$T/log" "$BUILD/tool/canary_errors" good single 3
[ "$status" = 0 ] && ! grep -Eq 'modules rewritten|for malloc inside kernels' "$T/log"
verdict $? 'a program without malloc'

# A module that cannot be redirected beside one that is: the heaps do not mix, and that is said. The CPU device has no machine
# code.
others=old
[ "$GUARD_DEVICE" = cpu ] || [ ! -e "$BUILD/programs/kheap.cubin" ] || others+=" $BUILD/programs/kheap.cubin"
for other in $others; do
    for order in last first; do
        watch "$T/log" "$BUILD/tool/kheap_foreign" "$other" $order
        [ "$status" = 0 ] && [ -z "$found" ] && grep -q 'from now on the driver gives memory' "$T/log" &&
            grep -Eq 'could not be redirected +1$' "$T/log" && grep -q ok "$T/log.out"
        verdict $? "a module that is not redirected and comes $order"
    done
done

# Together with --mode=count.
watch "$T/log" --mode=canary,count "$BUILD/tool/kheap_errors" bad single_kernel
[ "$status" = 97 ] && [ "$found" = heap-buffer-overflow ] && grep -q 'kernels rewritten' "$T/log"
verdict $? --mode=canary,count

result="$passed passed, $failed failed"
[ $skipped = 0 ] || result+=", $skipped skipped"
if [ -n "${SECTION:-}" ]; then
    printf 'Each program has an error planted; its correct twin ran too, %s times in one process, and was not reported: %s.' "$KHEAP_ROUNDS" "$result"
    printf ' The time runs from the write, as the host sees it, to the line on the terminal; several programs ran at once.\n\n'
    printf '| program | reported | after |\n| --- | --- | --- |\n%s' "$rows"
fi >"${SECTION:-/dev/null}"
echo "$result"
[ $failed = 0 ] && [ $passed -gt 0 ]
