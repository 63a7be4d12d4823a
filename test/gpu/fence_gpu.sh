#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=fence on a real GPU. First the suite, unchanged by every way of the fence, several programs at a time
# (units.bash); then an MPS server of this script's own: for each wrong kernel of test/guard/fence_tenant.cu a
# guilty client under --mode=fence, FENCE_JOBS at a time, beside two neighbours without moat that compute and
# compare; which of them has ended a neighbour is found out (neighbours.bash). Last, one wild write without a
# fence, which must end the neighbours: the test can fail.
#
# fence_gpu.sh [suite|mps]...: both parts, or these. SECTION=FILE: the results go there. GPU_SECONDS ends the
# script; results of programs and of wrong kernels are kept below GPU_ROWS, and those there count. DEVICE=cpu:
# the suite on the CPU device, to test this script.
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-$PWD}
export MOAT=${MOAT:-$BUILD/bin/moat}
export DEVICE=${DEVICE:-gpu}
[ "$DEVICE" = cpu ] || nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
export XDG_CACHE_HOME=${GPU_CACHE:-$T/cache} FENCE_T=$T
finish() {
    [ -z "${neighbour_pids[*]-}" ] || neighbours_end
    [ -z "${server-}" ] || server_end
    rm -rf "$T"
}
trap finish EXIT
here=bench
# shellcheck source=bench/canary_programs
. bench/canary_programs
programs=$canary_programs_at

# --- one program -------------------------------------------------------------------------------------------

one_program() {  # one_program NAME: by every way of the fence, as without
    local name=$1 small way status off passed=0 failed=0 log
    small=$(awk -F '\t' -v name="$name" '$1 == name { print $3 }' test/programs/programs.tsv)
    log=$T/$name
    local alone=()
    [ "$DEVICE" = gpu ] || alone=("$MOAT" --device=cpu --mode=off)
    # shellcheck disable=SC2086
    timeout 60 "${alone[@]}" "$programs/$name" $small >"$log.off" 2>&1 </dev/null
    off=$?
    for way in mask check modulo; do
        # shellcheck disable=SC2086
        timeout 120 "$MOAT" --device="$DEVICE" --mode=fence --fence=$way --log-file="$log.log" \
            "$programs/$name" $small >"$log.out" 2>&1 </dev/null
        status=$?
        if [ $status = $off ] && ! grep -q 'ERROR: moat' "$log.log" &&
            { [ $off != 0 ] || grep -q 'kernel launches fenced' "$log.log"; }; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "suite, $way: $name: status $status, $off without: $(tail -n 1 "$log.out")"
            grep -v '^  ' "$log.log" | tail -n 12 | cut -c 1-160
        fi
    done
    echo "$passed passed, $failed failed"
    [ $failed = 0 ]
}
if [ "${1:-}" = program ]; then
    one_program "$2"
    exit
fi

# shellcheck source=test/gpu/units.bash
. test/gpu/units.bash
# shellcheck source=test/gpu/neighbours.bash
. test/gpu/neighbours.bash
units_begin fence
cases=$units/cases
: >>"$cases"
many=$units/many
: >>"$many"
tenant=$units/fence_tenant
compile() {  # compile NAME: that of test/guard/NAME.cu
    local with=()
    [ "$DEVICE" = gpu ] || with=(-cudart shared -L"$BUILD/lib/moat")
    [ -x "$units/$1" ] || nvcc -std=c++17 -O3 -gencode arch=compute_90,code=compute_90 \
        ${with[@]+"${with[@]}"} -o "$units/$1" "test/guard/$1.cu" >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }
}
compile fence_tenant
if [ "$DEVICE" = cpu ]; then
    tenant=$T/tenant
    printf '#!/bin/bash\nexec %q --device=cpu --mode=off --log-file=/dev/null %q "$@"\n' "$MOAT" \
        "$units/fence_tenant" >"$tenant"
    chmod +x "$tenant"
fi
mps_passed=0 mps_failed=0
note() {  # note STATUS TEXT
    if [ "$1" = 0 ]; then
        mps_passed=$((mps_passed + 1))
    else
        mps_failed=$((mps_failed + 1))
        echo "FAIL $2" | tee -a "$T/notes"
    fi
}

# --- the suite ---------------------------------------------------------------------------------------------

suite() {
    local name
    canary_programs_build || true
    for name in $(canary_programs_names | grep -vx 'cub\|thrust') cub thrust; do
        [ -x "$programs/$name" ] && unit "suite.$name" 300 "$0" program "$name"
    done
}

# --- MPS ---------------------------------------------------------------------------------------------------

# one_case WAY NAME ERROR [OPTION]: a line for the file of cases: WAY NAME pass, or fail and why
one_case() {
    local file=$FENCE_T/$1.$2 status got
    FENCE_DRIVER='' timeout 30 "$MOAT" --device=gpu --mode=fence --fence="$1" --error-exitcode=0 \
        ${4:+"$4"} --log-file="$file.log" "$tenant" bad "$2" >"$file.out" 2>&1 </dev/null
    status=$?
    got=$(sed -n 's/.*error \([0-9]*\),.*/\1/p' "$file.out")
    if [ $status = 0 ] && [ "$got" = "$3" ] && grep -q 'ERROR: moat' "$file.log"; then
        echo "$1 $2 pass"
    else
        echo "$1 $2 fail: status $status, $3 wanted: $(tail -n 1 "$file.out")" \
            "$(grep -m 1 'ERROR: moat\|could not\|refused' "$file.log")"
    fi
}
export -f one_case
# one_many WAY NAME COUNT: a line for the file of many mistakes: WAY NAME pass COUNT, or fail and why. NAME is
# random.SEED or written.SEED.
one_many() {
    local file=$FENCE_T/many.$1.$2 status errors contained program=$units/fence_mistakes verb=bad
    [[ $2 == random.* ]] || program=$units/fence_tenant verb=mistakes
    FENCE_DRIVER='' timeout 60 "$MOAT" --device="$DEVICE" --mode="${FENCE_MODE:-fence}" --fence="$1" \
        --on-error=skip --error-exitcode=0 --log-file="$file.log" "$program" $verb "$3" "${2#*.}" \
        >"$file.out" 2>&1 </dev/null
    status=$?
    errors=$(grep -c 'ERROR: moat' "$file.log" 2>/dev/null)
    contained=$(grep -Ec 'note: (contained|refused)' "$file.log" 2>/dev/null)
    if [ $status = 0 ] && [ "${errors:-0}" -gt 0 ] && [ "$errors" = "$contained" ]; then
        echo "$1 $2 pass $3"
    else
        echo "$1 $2 fail: status $status: $(tail -n 1 "$file.out") ${errors:-0} errors," \
            "${contained:-0} contained or refused"
    fi
}
export -f one_many
export tenant units

# A GPU has constants in memory of the program, where stores may end well.
missing() {  # the cases that no row has: WAY NAME ERROR OPTION
    local way
    for way in ${FENCE_WAYS:-mask check modulo}; do
        "$MOAT" --device=cpu --mode=off "$tenant" list 2>/dev/null </dev/null |
            awk -v way="$way" 'FILENAME != "-" { done[$1, $2]; next }
                !((way, $1) in done) && $1 != "constant_write" { print way, $1, $2, $4 }' "$cases" -
    done
}

mps() {
    local way
    [ -z "$server" ] || server_end
    server_start
    note $? 'no MPS server could be started: nvidia-cuda-mps-control -d'
    timeout 60 "$tenant" neighbour 1 >"$T/n1" 2>&1
    note $? "a client alone: $(cat "$T/n1")"
    [ $mps_failed = 0 ] || return
    # The tenant's kernels are compiled first.
    for way in ${FENCE_WAYS:-mask check modulo}; do
        FENCE_DRIVER='' timeout 90 "$MOAT" --device=gpu --mode=fence --fence="$way" "$tenant" good write \
            >"$T/warm.$way" 2>&1 </dev/null &
    done
    wait
    missing >"$T/missing"
    if [ -s "$T/missing" ] && [ "$(units_rest)" -gt 20 ]; then
        neighbours_start
        note $? "mps: the neighbours do not compute: $(cat "$T/n1"); $(cat "$T/n2")"
        [ $mps_failed = 0 ] || return
        beside "${FENCE_JOBS:-6}" "$T/missing" "$cases" one_case
        note $? "mps: new neighbours do not compute: $(cat "$T/n1"); $(cat "$T/n2")"
        neighbours_end
        note $? "mps: the last neighbours: $neighbours_said"
        echo "mps, $(wc -l <"$cases") wrong kernels, $servers servers; the last neighbours: $neighbours_said"
    fi
    without_fence
}

without_fence() {
    [ "$(units_rest)" -gt 12 ] && [ "$DEVICE" = gpu ] && [ "$unfenced" = 'not run' ] || return
    neighbours_start
    note $? "mps: the neighbours of a kernel without a fence do not compute: $(cat "$T/n1"); $(cat "$T/n2")"
    timeout 30 "$tenant" bad write >"$T/out" 2>&1 </dev/null
    ! neighbours_go_on
    note $? 'without a fence the neighbours go on: this test shows nothing'
    neighbours_end
    unfenced=$neighbours_said
    echo "mps, without a fence: $unfenced"
}

missing_many() {  # the processes that no row has: WAY NAME COUNT
    local way seed
    for way in ${FENCE_WAYS:-mask check modulo}; do
        for seed in 1 2 3 4 5 6; do
            echo "$way random.$seed ${FENCE_RANDOM:-60}"
            [ $seed -gt 2 ] || echo "$way written.$seed ${FENCE_WRITTEN:-150}"
        done
    done | awk 'FILENAME != "-" { done[$1, $2]; next } !(($1, $2) in done)' "$many" -
}

many() {
    local way
    compile fence_mistakes
    [ -n "$server" ] || server_start
    note $? 'no MPS server could be started: nvidia-cuda-mps-control -d'
    for way in ${FENCE_WAYS:-mask check modulo}; do
        one_many "$way" random.0 1 >/dev/null &
        one_many "$way" written.0 1 >/dev/null &
    done
    wait
    missing_many >"$T/missing"
    if [ -s "$T/missing" ] && [ "$(units_rest)" -gt 20 ]; then
        neighbours_start
        note $? "many: the neighbours do not compute: $(cat "$T/n1"); $(cat "$T/n2")"
        [ $mps_failed = 0 ] || return
        beside "${FENCE_JOBS:-6}" "$T/missing" "$many" one_many
        note $? "many: new neighbours do not compute: $(cat "$T/n1"); $(cat "$T/n2")"
        neighbours_end
        note $? "many: the last neighbours: $neighbours_said"
        echo "many mistakes, $(wc -l <"$many") processes; the last neighbours: $neighbours_said"
    fi
    without_fence
}

mistakes() {  # mistakes WAY random|written: those of rows that passed
    awk -v way="$1" -v kind="$2." '$1 == way && index($2, kind) == 1 && $3 == "pass" { n += $4 }
        END { print n + 0 }' "$many"
}

[ $# -gt 0 ] || set -- suite mps many
unfenced='not run'
for part; do
    case $part in
    suite) suite; units_end ;;
    mps) mps ;;
    many) many ;;
    *) echo "fence_gpu.sh: there is no part $part" >&2; exit 2 ;;
    esac
done
passed=${passed:-0} failed=${failed:-0} left=${left:-0}
cat "$cases" "$many" >"$T/rows"
grep ' fail: ' "$T/rows" | sed 's/^/FAIL mps, /'
wrong=$(grep -c ' fail: ' "$T/rows")
failed=$((failed + mps_failed + wrong)) passed=$((passed + mps_passed + $(grep -c ' pass' "$T/rows")))
if [ -n "${SECTION:-}" ]; then
    {
        case $* in
        suite) echo '## The suite under --mode=fence on a GPU' ;;
        mps) echo '## Wrong kernels beside neighbours under MPS' ;;
        many) echo '## A thousand mistakes beside neighbours under MPS' ;;
        *) echo '## The fence on a GPU' ;;
        esac
        echo
        bench/machine
        echo
        [[ " $* " != *' suite '* ]] ||
            echo "The suite by mask, check and modulo, results and status as without: $(units_sum suite)."
        if [[ " $* " == *' mps '* ]]; then
            echo "Wrong kernels under MPS, each in a fenced client beside two neighbours without moat that" \
                "compute and compare, ${FENCE_JOBS:-6} at a time:"
            echo
            echo '| way | wrong kernels | contained, with the right error and a report | not run |'
            echo '| --- | ---: | ---: | ---: |'
            missing >"$T/missing"
            for way in ${FENCE_WAYS:-mask check modulo}; do
                echo "| $way | $(grep -c "^$way " "$cases") | $(grep -c "^$way .* pass\$" "$cases") |" \
                    "$(grep -c "^$way " "$T/missing") |"
            done
            echo
        fi
        if [[ " $* " == *' many '* ]]; then
            echo "Many mistakes in each of few fenced processes, whose contexts stay usable, beside such" \
                "neighbours, ${FENCE_JOBS:-6} processes at a time:"
            echo
            echo '| way | random mistakes | those of hand-written kernels | processes | failed | not run |'
            echo '| --- | ---: | ---: | ---: | ---: | ---: |'
            missing_many >"$T/missing"
            for way in ${FENCE_WAYS:-mask check modulo}; do
                echo "| $way | $(mistakes "$way" random) | $(mistakes "$way" written) |" \
                    "$(grep -c "^$way " "$many") | $(grep -c "^$way .* fail: " "$many") |" \
                    "$(grep -c "^$way " "$T/missing") |"
            done
            echo
        fi
        if [[ " $* " == *' m'* ]]; then
            if grep -q ' fail: its neighbours ended' "$T/rows" || [ -s "$T/notes" ]; then
                sed 's/^FAIL /- /' "$T/notes" 2>/dev/null
                sed -n 's/^\(.*\) fail: \(its neighbours ended: .*\) (itself: .*/- \1: \2/p' "$T/rows"
            else
                echo 'No neighbour failed, and all their results were the same, bit for bit.'
            fi
            echo "One wild write without a fence, and its neighbours: $unfenced."
        fi
    } >"$SECTION"
fi
[ "$left" = 0 ] || echo "programs that have not been run to their end: $left"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
