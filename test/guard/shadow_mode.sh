#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# --mode=shadow: each program of test/guard/shadow_errors.cu, and of check_errors.cu those that redzones can
# see, must be reported as what it is; what redzones cannot see is not reported; the twins run silently and
# checked. Random kernels of the classes that redzones can see are found completely (check_classes.c).
# CASES_PART=K/N: every N-th program only, from the K-th on. CASES_PART=rest: only what follows the programs.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
# shellcheck source=test/guard/found.bash
. test/guard/found.bash
export XDG_CACHE_HOME=${CHECK_CACHE:-$T/cache}
part=${CASES_PART:-1/1}
[ "$part" != rest ] || part=0/1000  # no program
passed=0 failed=0
for name in shadow_errors check_errors check_kheap check_memory; do
    options=()
    [[ $name != @(shadow_errors|check_memory) ]] || options=(-Iinclude -lcuda)
    program=$(test/guard/compiled 75 $name "${options[@]}" 2>"$T/log") || { cat "$T/log"; exit 1; }
    cp "$program" "$T/$name"
    "$MOAT" --device=cpu --mode=off "$T/$name" list 2>/dev/null </dev/null |
        awk -v k="${part%/*}" -v n="${part#*/}" '(NR - k) % n == 0' >"$T/$name.list"
done

run() {  # run OPTION...: status in $status, types of what was reported, each once, in $found
    local from=$SECONDS
    timeout "${CHECK_LIMIT:-60}" "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=shadow --print-limit=0 "$@" \
        >"$T/log" 2>&1 </dev/null
    status=$?
    [ $((SECONDS - from)) -lt 15 ] || echo "slow: $((SECONDS - from)) seconds: ${*/#$T\//}"
    find_types "$T/log"
}

verdict() {  # verdict STATUS WHAT
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $2: status $status, reported: ${found:-nothing}"
    tail -n 40 "$T/log" | sed 's/^/    | /'
}

# The context is not in error afterwards: each program ends by itself, shadow_errors with the right results.
pair() {  # pair PROGRAM NAME TYPES OPTION...
    local program=$1 name=$2 types=$3
    shift 3
    run "$@" "$T/$program" good "$name"
    [ "$status" = 0 ] && [ -z "$found" ] && grep -q 'kernel launches checked' "$T/log" &&
        ! grep -q 'kernel launches not checked' "$T/log"
    verdict $? "good $name $*"
    run "$@" "$T/$program" bad "$name"
    if [ "$types" = missed ]; then
        [ "$status" = 0 ] && [ -z "$found" ]
    else
        [ "$status" = 97 ] && [[ $found =~ ^($types)$ ]] && ! grep -q 'illegal memory' "$T/log" &&
            { [ "$program" != shadow_errors ] || grep -q '^ended$' "$T/log"; }
    fi
    verdict $? "bad $name $*"
}

while IFS=$'\t' read -r name types; do
    pair shadow_errors "$name" "$types"
    # The CPU device has no addresses for a second shadow of that size.
    [ "$name/${GUARD_DEVICE:-cpu}" = late/cpu ] ||
        [[ ${TEST_ALL:-0} = 0 && ' ints merged freed pool_pieces ' != *" $name "* ]] ||
        pair shadow_errors "$name" "$types" --proofs=off --shadow-scale=128
    [[ ${TEST_ALL:-0} = 0 && ' longs stencil kinds ' != *" $name "* ]] ||
        pair shadow_errors "$name" "$types" --check-variants=together
done <"$T/shadow_errors.list"

# Into the middle of another buffer, memory of graphs, which the driver places, variables by pointers in
# memory or in arguments of functions, and before pinned memory.
missed=' neighbour passed_far returned_far graph_memory loaded_variable loaded_constant passed_variable '
missed+=' by_variable into_the_next into_the_one_before '
# Behind memory that moat does not place, the device may find nothing mapped. What a pool does not announce
# may not be used, so that `withdrawn` has no twin. The bad neighbour in the heap of kernels finds its
# results wrong.
skipped=' check_memory/pinned check_memory/registered check_memory/mapped check_memory/imported '
skipped+=' check_memory/withdrawn check_kheap/neighbour '
number=0
for program in check_errors check_kheap check_memory; do
    while IFS=$'\t' read -r name types; do
        # Where TEST_ALL is 0, every second one: check mode has tests with all of them.
        number=$((number + 1))
        [ "${TEST_ALL:-0}" != 0 ] || [ $((number % 2)) = 1 ] || continue
        [[ $missed != *" $name "* ]] || types=missed
        [[ $skipped == *" $program/$name "* ]] || pair $program "$name" "$types" --proofs=off
    done <"$T/$program.list"
done
if [[ ${CASES_PART:-rest} != rest ]]; then
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
    exit
fi

run "$T/shadow_errors" bad stencil
grep -q 'in kernel points.* .*shadow_errors.cu:[0-9]' "$T/log" &&
    grep -q '^READ of size 4 by thread (' "$T/log" &&
    grep -q '^launched by cuLaunchKernel at:' "$T/log" && grep -q '^allocated by' "$T/log" &&
    grep -q 'is located 0 bytes after 12016-byte region' "$T/log" &&
    grep -Eq '^note: shadow, a byte for 256 bytes, from 0x.*: (00 )+\[10\]( ff)+$' "$T/log" &&
    grep -q 'compared with the shadow' "$T/log"
verdict $? 'a report'
# Pages of the shadow are used again: as many buffers of 600 MiB describe twice as many.
run --proofs=off "$T/shadow_errors" bad many_freed
number() { sed -n "s/^ *$1 *//p" "$T/log" | tr -d ,; }
pages=$((($(number 'bytes of shadow in a context') - $(number 'of these zeros and poison.*  ')) >> 21))
[ "$found" = 'heap-use-after-free heap-buffer-overflow' ] && [ "$pages" -gt 16 ] && [ "$pages" -lt 26 ]
verdict $? "pages of many freed buffers: $pages"
# A proved launch runs the program's own code, and what checks others is compiled when it is needed.
modules() {  # modules good|bad WANTED OPTION...: modules that were loaded unchanged, and variants made later
    run "${@:3}" "$T/shadow_errors" "$1" far_behind
    [ "$(sed -n 's/^ *\(modules loaded unchanged\|checked variants compiled\).*  //p' "$T/log" |
        tr '\n' ' ')" = "$2" ]
    verdict $? "modules, $*"
}
modules good '1 '
modules bad '1 1 '
modules bad '' --check-variants=together
run "$T/shadow_errors" bad pool_freed
grep -q 'is located 100 bytes inside 4000-byte region .* named activations' "$T/log" &&
    grep -q '^freed by moat_block_gone' "$T/log"
verdict $? 'a report of a piece that was taken back'
run --cpu-memory=128M --shadow-quarantine=1G "$T/shadow_errors" good needs_memory
[ "$status" = 0 ] && [ -z "$found" ] && grep -q '^ended$' "$T/log"
verdict $? 'memory that is kept is given back when it is needed'
# Where a device has much memory, some hundred mappings cover all addresses.
run --cpu-memory=140G "$T/shadow_errors" bad late
mappings=$(sed -n 's/^ *mappings that the shadow of a context is made of *//p' "$T/log" | tr -d ,)
[ "$status $found" = '97 heap-buffer-overflow' ] && [ "${mappings:-9999}" -lt 1000 ]
verdict $? "few mappings: ${mappings:-unknown}"
run --shadow-quarantine=0 "$T/shadow_errors" good freed_managed
[ "$status" = 0 ] && [ -z "$found" ]
verdict $? '--shadow-quarantine=0'
run --on-error=trap "$T/shadow_errors" bad pointer_in_memory
[ "$status" = 97 ] && [[ $found == heap-buffer-overflow* ]] && grep -q 'cudaDeviceSynchronize' "$T/log"
verdict $? '--on-error=trap'
run --shadow-load=no "$T/shadow_errors" bad pointer_in_memory
[ -z "$found" ] && grep -q 'NOTHING IS CHECKED' "$T/log"
verdict $? '--shadow-load=no'
for case in pointer_in_memory pool_rest late; do
    run --shadow-roots=no --proofs=off "$T/shadow_errors" bad $case
    [[ $status == 97 && $found == heap-buffer-overflow* ]]
    verdict $? "--shadow-roots=no: $case"
    run --shadow-roots=no --proofs=off "$T/shadow_errors" good $case
    [ "$status" = 0 ] && [ -z "$found" ]
    verdict $? "--shadow-roots=no: good $case"
done
run --shadow-redzone=100 "$T/shadow_errors" bad far_behind
[ "$found" = heap-buffer-overflow ]
verdict $? '--shadow-redzone=100'
run --shadow-redzone-least=64k "$T/shadow_errors" bad far_behind_small
[ "$found" = heap-buffer-overflow ]
verdict $? '--shadow-redzone-least'
run --shadow-redzone=0 "$T/shadow_errors" bad far_behind_small
[ -z "$found" ]
verdict $? '--shadow-redzone=0 is too little'
"$MOAT" --device=cpu --mode=shadow,check true >"$T/log" 2>&1
status=$? found=
grep -q 'both decide' "$T/log"
verdict $? 'with --mode=check'

# Another layout has no redzones, and that is said.
run --mode=shadow,canary "$T/shadow_errors" good stencil
[ "$status" = 0 ] && [ -z "$found" ] && grep -q 'buffers are NOT CHECKED' "$T/log"
verdict $? 'with canaries'

cases=30
[ "${TEST_ALL:-0}" = 0 ] || cases=1000
classes='adjacent freed late idioms'
[ "${GUARD_DEVICE:-cpu}" = cpu ] || classes=''  # test/gpu/shadow_gpu.sh has more of them
for class in $classes; do
    for proofs in on off; do
        timeout 300 "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=shadow --proofs=$proofs --no-cache \
            --format=json --log-file="$T/json" --print-limit=0 \
            "$BUILD/tool/check_classes" "${CHECK_SEED:-17}" $cases $class >"$T/plan" 2>"$T/log" </dev/null
        python3 test/guard/check_compare.py "$T/plan" "$T/json" >>"$T/log" 2>&1
        status=$? found=
        verdict $status "class $class, proofs $proofs"
    done
done
# Jumps over a redzone into another buffer are missed, are no other error, and are counted.
for proofs in ${classes:+on off}; do
    timeout 300 "$MOAT" --device=cpu --mode=shadow --proofs=$proofs --no-cache --format=json \
        --log-file="$T/json" --print-limit=0 "$BUILD/tool/check_classes" "${CHECK_SEED:-17}" $cases far \
        >"$T/plan" 2>"$T/log" </dev/null
    python3 test/guard/check_compare.py "$T/plan" "$T/json" missed >>"$T/log" 2>&1 &&
        grep -Eq ', [1-9][0-9]* of [0-9]+ missed$' "$T/log"
    status=$? found=
    verdict $status "class far, proofs $proofs"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
