#!/bin/bash
# SPDX-License-Identifier: MIT
# moat explain: what launches touch is judged against their buffers. Errors that the arguments make certain
# are reported with the line that launches and what the buffer lacks; correct launches, and what is not
# certain, are not. On the CPU device.
# builds: one
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'there is no nvcc'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0
nvcc -std=c++14 -g -lineinfo -cudart shared -gencode arch=compute_75,code=compute_75 -o "$T/cases" \
    test/guard/explain_cases.cu || exit 1

check() {  # check WHAT CONDITION...: of the last run
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what: $*"
        tail -n 40 "$T/log" | sed 's/^/    | /'
    fi
}
run() {  # run OPTION... CASE: status in $status, output in $T/log
    timeout 120 "$MOAT" explain --device=cpu --on-error=skip "${@:1:$#-1}" "$T/cases" "${*: -1}" \
        >"$T/log" 2>&1 </dev/null
    status=$?
}
same() { [ "$1" = "$2" ]; }
says() { grep -qE -- "$1" "$T/log"; }
is_silent() { ! grep -qE -- "$1" "$T/log"; }
# The row of a kernel in the table, under a heading.
cell() {  # cell KERNEL HEADING
    awk -v kernel="$1" -v heading="$2" '
        /^    launches / { split($0, parts, /  +/) }
        /^    launches / { for (i in parts) if (parts[i] == heading) at = i - 1; next }
        index($0, "  " kernel "(") && at && $1 ~ /^[0-9]/ { gsub(/,/, ""); print $at; exit }' "$T/log"
}
line_of() { grep -n -- "$1" test/guard/explain_cases.cu | head -n1 | cut -d: -f1; }

good() {  # good CASE KERNEL ACCESSES
    run "$1"
    check "$1" same $status 0
    check "$1" same "$(cell "$2" inside)" "$3"
    check "$1" same "$(cell "$2" outside)" 0
    check "$1" is_silent 'ERROR'
}
bad() {  # bad CASE TYPE WORDS PLACE
    run "$1"
    check "$1" same $status 97
    check "$1" says "ERROR: moat: $2"
    check "$1" says "note: $3"
    check "$1" says "SUMMARY: moat: $2 .*explain_cases.cu:$4 in "
}
good good scale 2
bad bad heap-buffer-overflow 'needs 4,004 bytes, the buffer has 4,000' "$(line_of 'a\[i\] \*= f')"
check 'the launching line' says "#[0-9]+ .*explain_cases.cu:$(line_of 'scale<<<4, 256>>>(a, 2, is')"
check 'the buffer' says 'after 4000-byte region'
check 'the worst first' same "$(cell scale outside)" 2
good good_inner scale 2
bad bad_inner heap-buffer-overflow 'needs 4,004 bytes, the buffer has 4,000' "$(line_of 'a\[i\] \*= f')"
good good_before before 1
bad bad_before heap-buffer-underflow 'starts 4 bytes before the buffer' "$(line_of 'a\[i - 1\]')"
bad bad_freed heap-use-after-free 'its buffer was freed before the launch' "$(line_of 'a\[i\] \*= f')"
bad bad_inlined heap-buffer-overflow 'needs 4,004 bytes, the buffer has 4,000' "$(line_of 'a\[i\] = 2')"
check 'inlined functions' says '#0 put\(float\*, int\) .*explain_cases.cu:'
good good_tile tile 4
bad bad_tile shared-buffer-overflow 'needs 260 bytes, the buffer has 256' "$(line_of 't\[threadIdx.x\] =')"
good good_dynamic dynamic 4
bad bad_dynamic shared-buffer-overflow 'needs 256 bytes, the buffer has 252' "$(line_of 'd\[threadIdx.x\] =')"
good good_view fill 1

# What is not certain is no error.
run gather
check 'not bounded' same $status 0
check 'not bounded' same "$(cell gather 'not bounded')" 1
check 'not bounded' says \
    "cu:$(line_of 'from\[index') +reads 4 bytes of p1: the index is loaded from memory \(1 launch\)"
check 'what would help' says 'help: compare the index'
run flagged
check 'under a condition' same $status 0
check 'under a condition' is_silent ERROR
check 'under a condition' says 'maybe outside .*needs 4,004 bytes'

run wide_view
check 'a limit of one of two dimensions' same $status 0
check 'a limit of one of two dimensions' says 'maybe outside .*p0\.8: needs 4,400 bytes'

run graph
check 'a captured launch' same $status 0
check 'a captured launch' same "$(cell scale launches)" 1
check 'a captured launch' same "$(cell scale inside)" 2
run threads
check 'threads' same $status 0
check 'threads' same "$(cell scale launches)" 400
check 'time is measured' says '^ +400 +2 '
check 'time is measured' [ "$(cell scale 'median ns')" -gt 0 ]

# Beside other modes, which move buffers or rewrite code.
for mode in explain,canary explain,pages explain,count explain,tally; do
    for case in good bad; do
        timeout 120 "$MOAT" --mode=$mode --device=cpu --on-error=skip "$T/cases" $case \
            >"$T/log" 2>&1 </dev/null
        status=$?
        [ $case = good ] && want=0 || want=97
        check "$mode $case" same $status $want
        check "$mode $case" same "$(cell scale accesses)" 2
        [ $case = good ] || check "$mode $case" says 'note: needs 4,004 bytes, the buffer has 4,000'
    done
done

# JSON, and back.
timeout 120 "$MOAT" explain --device=cpu --format=json --log-file="$T/json" "$T/cases" gather >"$T/log" 2>&1
check 'JSON' jq -es 'map(select(.event == "proofs"))[0].kernels[0] | .name == "_Z6gatherPfPKfPKii" and
    .launches == 1 and .accesses == 3 and .inside == 2 and .not_bounded == 1 and
    .places[0].verdict == "not bounded" and .places[0].root == "p1" and .places[0].access == "read" and
    .median_ns > 0' "$T/json" >"$T/jq"
"$MOAT" report "$T/json" >"$T/log" 2>&1
check 'a saved report' same "$(cell gather 'not bounded')" 1

# Every way to launch and to load a module.
for way in $("$BUILD/tool/launch_ways" list); do
    timeout 120 "$MOAT" explain --device=cpu "$BUILD/tool/launch_ways" "$way" >"$T/log" 2>&1 </dev/null
    status=$?
    [ "$way" != devices ] || { [ $status = 98 ] && status=0; }
    check "launched by $way" same $status 0
    # Kernels that are launched by graphs only, or that the device refuses, may have no row.
    awk '/^    launches /{ t = 1; next } t && / add$/ && $2 != 1 { bad = 1 } END { exit bad }' "$T/log"
    check "launched by $way" same $? 0
done
for way in data options fat wrapped module_file library_data library_file late two library_module again \
    enumerated threads; do
    timeout 120 "$MOAT" explain --device=cpu "$BUILD/tool/count_load" "$way" >"$T/log" 2>&1 </dev/null
    check "loaded by $way" same $? 0
    check "loaded by $way" says '^    launches .*median ns'
    check "loaded by $way" is_silent 'no PTX'
done
XDG_CACHE_HOME=/proc/none run good
check 'no cache is needed' same $status 0
check 'no cache is needed' is_silent 'cache'
"$MOAT" explain >"$T/log" 2>&1
check 'without a program' same $? 2
"$MOAT" explain --mode=canary "$T/cases" >"$T/log" 2>&1
check 'the mode is fixed' same $? 2
echo "$passed passed, $failed failed"
exit $((failed > 0))
