#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=fence on a real GPU. First the suite, unchanged by every way of the fence; then an MPS server of this
# script's own: for each wrong kernel of test/guard/fence_tenant.cu a guilty client under --mode=fence, beside
# two neighbours without moat that compute and compare. Last, one wild write without a fence, which must end
# the neighbours: the test can fail.
#
# fence_gpu.sh [suite|mps]...: both parts, or these. Without nvcc, $BUILD/programs/fence must have the
# programs: fence_gpu.sh --compile makes them there, and needs no GPU. FENCE_SECONDS bounds the suite (60).
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-$PWD}
export MOAT=${MOAT:-$BUILD/bin/moat}
programs=$BUILD/programs/fence

compile() {  # compile SOURCE: PTX only, so that there is something to fence
    local name=${1##*/}
    name=${name%.cu}
    [ -e "$programs/$name" ] ||
        nvcc -std=c++17 -O3 -gencode arch=compute_90,code=compute_90 -o "$programs/$name" "$1" \
            >"$programs/$name.log" 2>&1 || echo "nvcc fails on $name"
}
export -f compile
export programs
if command -v nvcc >/dev/null; then
    mkdir -p "$programs"
    printf '%s\n' test/guard/fence_tenant.cu test/programs/*.cu |
        xargs -P "$(nproc)" -I{} bash -c 'compile {}'
fi
[ "${1:-}" != --compile ] || exit 0
[ -x "$programs/fence_tenant" ] || { echo 'no nvcc on this machine, and no programs'; exit 77; }
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }

T=$(mktemp -d) || exit 1
export XDG_CACHE_HOME=$T/cache
server=
finish() {
    [ -z "$server" ] || echo quit | nvidia-cuda-mps-control >/dev/null 2>&1
    rm -rf "$T"
}
trap finish EXIT
passed=0 failed=0
note() {  # note STATUS TEXT [LOG]
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $2"
    [ -z "${3:-}" ] || grep -v '^  ' "$3" | tail -n 12 | cut -c 1-160 | sed 's/^/    | /'
}

# --- the suite ---------------------------------------------------------------------------------------------

suite() {
    local name small way begin=$SECONDS status before
    for way in mask check modulo; do
        before=$passed
        while IFS=$'\t' read -r name _ small _; do
            [ -x "$programs/$name" ] && [ $((SECONDS - begin)) -lt "${FENCE_SECONDS:-60}" ] || continue
            # shellcheck disable=SC2086
            timeout 60 "$programs/$name" $small >"$T/off" 2>&1 </dev/null
            off=$?
            # shellcheck disable=SC2086
            timeout 60 "$MOAT" --device=gpu --mode=fence --fence=$way --log-file="$T/log" \
                "$programs/$name" $small >"$T/out" 2>&1 </dev/null
            status=$?
            [ $status = $off ] && ! grep -q 'ERROR: moat' "$T/log" &&
                { [ $off != 0 ] || grep -q 'kernel launches fenced' "$T/log"; }
            note $? "suite, $way: $name: status $status, $off without: $(tail -n 1 "$T/out")" "$T/log"
        done < <(tail -n +2 test/programs/programs.tsv)
        echo "suite, --fence=$way: $((passed - before)) programs unchanged [$((SECONDS - begin)) s]"
    done
}

# --- MPS ---------------------------------------------------------------------------------------------------

start_server() {
    export CUDA_MPS_PIPE_DIRECTORY=$T/pipe CUDA_MPS_LOG_DIRECTORY=$T/mps-log
    mkdir -p "$T/pipe" "$T/mps-log"
    nvidia-cuda-mps-control -d >/dev/null 2>&1 && server=1
}

neighbours() {  # neighbours SECONDS: starts two
    "$programs/fence_tenant" neighbour "$1" >"$T/n1" 2>&1 &
    first=$!
    "$programs/fence_tenant" neighbour "$1" >"$T/n2" 2>&1 &
    second=$!
}

mps() {
    local name error way status got
    start_server
    note $? 'no MPS server could be started: nvidia-cuda-mps-control -d'
    timeout 60 "$programs/fence_tenant" neighbour 1 >"$T/n1" 2>&1
    note $? "a client alone: $(cat "$T/n1")"
    [ $failed = 0 ] || return
    for way in ${FENCE_WAYS:-mask check modulo}; do
        neighbours "${MPS_SECONDS:-25}"
        # The guilty clients come one after the other, as long as the neighbours run.
        while read -r name error _ options; do
            kill -0 $first 2>/dev/null || { echo "mps, $way: $name and what follows came too late"; break; }
            FENCE_DRIVER='' timeout 30 "$MOAT" --device=gpu --mode=fence --fence=$way --error-exitcode=0 \
                ${options:+"$options"} --log-file="$T/log" \
                "$programs/fence_tenant" bad "$name" >"$T/out" 2>&1 </dev/null
            status=$?
            got=$(sed -n 's/.*error \([0-9]*\),.*/\1/p' "$T/out")
            [ $status = 0 ] && [ "$got" = "$error" ] && grep -q 'ERROR: moat' "$T/log"
            note $? "mps, $way: $name: status $status, $error wanted: $(tail -n 1 "$T/out")" "$T/log"
        done < <("$programs/fence_tenant" list)
        wait $first
        note $? "mps, $way: the first neighbour: $(cat "$T/n1")"
        wait $second
        note $? "mps, $way: the second neighbour: $(cat "$T/n2")"
        echo "mps, --fence=$way: $(cat "$T/n1"); $(cat "$T/n2")"
    done
    neighbours 6
    sleep 2
    timeout 30 "$programs/fence_tenant" bad write >"$T/out" 2>&1 </dev/null
    wait $first
    [ $? != 0 ]
    note $? 'without a fence the neighbour goes on: this test shows nothing'
    wait $second
    echo "mps, without a fence: $(cat "$T/n1"); $(cat "$T/n2")"
}

[ $# -gt 0 ] || set -- suite mps
for part; do
    "$part"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
