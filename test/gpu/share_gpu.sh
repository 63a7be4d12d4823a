#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# doc/sharing.md on a real GPU, with a server of this script's own: fenced and other clients in the list and
# in the metrics, limits of memory and multiprocessors, the end of a client, whom moat names when another
# client faults, and the restart of a server that refuses clients after one was killed while its kernel never
# ended. SECTION=FILE: the results go there. SIGTERM ends the script at once, with its clients and its server:
# an endless kernel would go on beside what is measured next.
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-$PWD}
export MOAT=${MOAT:-$BUILD/bin/moat}
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
command -v nvidia-cuda-mps-control >/dev/null || { echo 'no nvidia-cuda-mps-control'; exit 77; }

T=$(mktemp -d) || exit 1
# The folder of a share has a short path.
export XDG_RUNTIME_DIR=$T XDG_CACHE_HOME=${GPU_CACHE:-$T/cache}
unset MOAT_OPTIONS
running=()
section() {  # what is known by now
    [ -n "${SECTION:-}" ] && [ $((passed + failed)) -gt 0 ] || return 0
    {
        echo '## `moat share` on a GPU'
        echo
        bench/machine
        echo
        echo 'The recipe of sharing.md, with a server of its own: fenced and other clients in the list,' \
            'limits, the end of a client, whom moat names when another client faults, the restart after a' \
            'client was killed whose kernel never ended:' \
            "$passed passed, $failed failed$over."
        echo
        if [ -s "$T/metrics" ]; then
            printf 'While a fenced client made a mistake, the metrics were:\n\n```\n'
            cat "$T/metrics"
            echo '```'
        fi
        [ ! -s "$T/failures" ] || sed 's/^FAIL /- failed: /' "$T/failures"
    } >"$SECTION"
}
finish() {
    section
    [ ${#running[@]} = 0 ] || kill -9 "${running[@]}" 2>/dev/null
    timeout 30 "$MOAT" share stop --share-force >/dev/null 2>&1
    rm -rf "$T"
}
passed=0 failed=0 over=', and was ended before its end'
trap finish EXIT
trap 'exit 1' TERM
check() {  # check STATUS WHAT
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $2" | tee -a "$T/failures"
        head -n 20 "$T/out" | sed 's/^/    | /'
    fi
}
# Runs a command in the background and waits for it: a signal to this script ends the wait at once.
behind() {
    "$@" >"$T/out" 2>&1 </dev/null &
    wait $!
}
share() { behind timeout 40 "$MOAT" share "$@"; }
client() {  # client FILE COMMAND...: of the server, without moat; in $client
    CUDA_MPS_PIPE_DIRECTORY=$T/moat-share/pipe CUDA_MPS_LOG_DIRECTORY=$T/moat-share/log FENCE_DRIVER='' \
        "${@:2}" >"$1" 2>&1 </dev/null &
    client=$!
    running+=("$client")
}
rounds() {  # rounds FILE: of a neighbour
    local n=
    read -r n <"$1"
    echo "${n:-0}"
}
goes_on() {  # goes_on FILE: the neighbour ends a round that begins now, or later
    local goal=$(($(rounds "$1") + 2)) limit=$((SECONDS + 10))
    while [ "$(rounds "$1")" -lt "$goal" ]; do
        [ $SECONDS -lt $limit ] || return 1
        sleep 0.05
    done
}

cat >"$T/spin.cu" <<'END'
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
__global__ void spin(volatile int *p, volatile int *begun)
{
    *begun = 1;
    while (!*p) { }
}
int main(int argc, char **argv)
{
    void *p;
    size_t bytes = argc > 1 ? atoll(argv[1]) << 20 : 1 << 20;
    cudaError_t e = cudaMalloc(&p, bytes);
    int processors = 0, mps = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    cudaDeviceGetAttribute(&mps, cudaDevAttrMpsEnabled, 0);
    printf("error %d, %d multiprocessors, MPS %d\n", e, processors, mps);
    fflush(stdout);
    if (e || argc > 1)
        return e;
    volatile int *begun;
    cudaMallocHost((void **)&begun, sizeof *begun);
    *begun = 0;
    cudaMemset(p, 0, bytes);
    spin<<<1, 1>>>((int *)p, begun);
    while (!*begun) { }
    printf("spins\n");
    fflush(stdout);
    return cudaDeviceSynchronize();
}
END
nvcc -std=c++17 -gencode arch=compute_90,code=compute_90 -o "$T/spin" "$T/spin.cu" >"$T/out" 2>&1
check $? 'nvcc'
nvcc -std=c++17 -O3 -gencode arch=compute_90,code=compute_90 -o "$T/tenant" test/guard/fence_tenant.cu \
    >"$T/out" 2>&1
check $? 'nvcc'

share start
check $? start
share limits
check $? limits
cat "$T/out"

wait_for() {  # wait_for TEXT COMMAND...: until the command's output has it
    local limit=$((SECONDS + 15))
    while [ $SECONDS -lt $limit ]; do
        behind "${@:2}"
        ! grep -qE "$1" "$T/out" || return 0
        sleep 0.2
    done
    return 1
}
listed() { wait_for "$1" timeout 20 "$MOAT" share clients; }

# --- who is there ---
echo 0 | tee "$T/beat.fenced" >"$T/beat.plain"
"$MOAT" share run -- "$T/tenant" neighbour 60 "$T/beat.fenced" >"$T/fenced" 2>&1 </dev/null &
running+=($!)
client "$T/plain" "$T/tenant" neighbour 60 "$T/beat.plain"
plain=$client
listed ' yes +[0-9]+ +tenant'
check $? 'a fenced client is listed'
listed "$plain .* no +- +tenant"
check $? 'another client is listed'
cat "$T/out"
# Inside of containers nvidia-smi may list no process.
if nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null | grep -qx "$plain"; then
    grep -qE "$plain +[0-9.]+ [KMG]iB" "$T/out"
    check $? 'with its memory'
fi
goes_on "$T/beat.plain" && goes_on "$T/beat.fenced"
check $? 'both compute'
export FENCE_DRIVER=''
share run --error-exitcode=0 -- "$T/tenant" bad write
check $? 'a mistake beside them'
share metrics
grep -E '^moat_(share|fence_all)' "$T/out" | tee "$T/metrics"
[ "$(sed -n 's/^moat_fence_all_contained_accesses_total //p' "$T/out")" -gt 0 ]
check $? 'it is counted'
goes_on "$T/beat.plain" && goes_on "$T/beat.fenced"
check $? "the neighbours go on: $(cat "$T/plain" "$T/fenced")"

# --- limits ---
share run --share-memory=1G -- "$T/spin" 4000
grep -q 'error 2,' "$T/out"
check $? 'more memory than the limit is refused'
share run --share-memory=8G -- "$T/spin" 4000
grep -q 'error 0,' "$T/out"
check $? 'less memory is given'
grep -q 'MPS 1$' "$T/out"
check $? 'the device says that MPS is there'
all=$(sed -n 's/^error 0, \([0-9]*\) multi.*/\1/p' "$T/out")
share run --share-percent=25 -- "$T/spin" 1
some=$(sed -n 's/^error 0, \([0-9]*\) multi.*/\1/p' "$T/out")
[ "${some:-0}" -gt 0 ] && [ "$some" -lt "${all:-0}" ]
check $? "a quarter of the multiprocessors: ${some:-none} of ${all:-none}"

# --- the end of a client ---
share end "$plain"
check $? 'end'
wait "$plain"
grep -qi 'error 810\|terminated' "$T/plain"
check $? "the client's error: $(tail -n 1 "$T/plain")"
kill -9 "${running[@]}" 2>/dev/null
wait 2>/dev/null
running=()

# --- another client's fault ---
echo 0 >"$T/beat.watched"
client "$T/watched" "$MOAT" --device=gpu --mode=api --error-exitcode=0 \
    "$T/tenant" neighbour 60 "$T/beat.watched"
watched=$client
goes_on "$T/beat.watched"
check $? 'a client under --mode=api computes'
client "$T/guilty" "$T/tenant" bad write
wait "$client"
wait_for "may be another program's" cat "$T/watched"
check $? "a report says that another client may be guilty: $(grep -m 1 'ERROR: moat' "$T/watched")"
! grep -q 'ERROR: moat.* in kernel work' "$T/watched"
check $? 'its own kernel is not blamed'
kill -9 "$watched" 2>/dev/null
wait 2>/dev/null
running=()

# --- a kernel that never ends ---
client "$T/spinning" "$T/spin"
spinning=$client
wait_for '^spins' cat "$T/spinning"
check $? "a kernel without an end begins: $(cat "$T/spinning")"
listed " +$spinning "
check $? 'its process is a client'
kill -9 "$spinning"
wait "$spinning" 2>/dev/null
running=()
share restart
check $? 'restart'
cat "$T/out"
share run -- "$T/spin" 1
grep -q 'error 0,' "$T/out"
check $? 'new clients are taken again'
share stop
check $? stop

over=
echo "$passed passed, $failed failed"
[ $failed = 0 ]
