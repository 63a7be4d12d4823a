#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# doc/sharing.md on a real GPU, with a server of this script's own: fenced and other clients in the list and
# in the metrics, limits of memory and multiprocessors, the end of a client, and the restart of a server that
# refuses clients after one was killed while its kernel never ended. SECTION=FILE: the results go there.
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
            'limits, the end of a client, the restart after a client was killed whose kernel never ended:' \
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
    timeout 60 "$MOAT" share stop --share-force >/dev/null 2>&1
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
share() {
    timeout 180 "$MOAT" share "$@" >"$T/out" 2>&1
}

cat >"$T/spin.cu" <<'END'
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
__global__ void spin(volatile int *p) { while (!*p) { } }
int main(int argc, char **argv)
{
    void *p;
    size_t bytes = argc > 1 ? atoll(argv[1]) << 20 : 1 << 20;
    cudaError_t e = cudaMalloc(&p, bytes);
    int percent = 0;
    cudaDeviceGetAttribute(&percent, cudaDevAttrMultiProcessorCount, 0);
    printf("error %d, %d multiprocessors\n", e, percent);
    fflush(stdout);
    if (e || argc > 1)
        return e;
    cudaMemset(p, 0, bytes);
    spin<<<1, 1>>>((int *)p);
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

wait_for() {  # wait_for TEXT: until `moat share clients` has it
    for _ in $(seq 100); do
        share clients
        ! grep -qE "$1" "$T/out" || return 0
        sleep 0.3
    done
    return 1
}

# --- who is there ---
"$MOAT" share run -- "$T/tenant" neighbour 60 >"$T/fenced" 2>&1 &
running+=($!)
CUDA_MPS_PIPE_DIRECTORY=$T/moat-share/pipe CUDA_MPS_LOG_DIRECTORY=$T/moat-share/log \
    "$T/tenant" neighbour 60 >"$T/plain" 2>&1 &
plain=$!
running+=("$plain")
wait_for ' yes +[0-9]+ +tenant'
check $? 'a fenced client is listed'
wait_for "$plain .* no +- +tenant"
check $? 'another client is listed'
cat "$T/out"
grep -qE "$plain +[0-9.]+ MiB" "$T/out"
check $? 'with its memory'
FENCE_DRIVER='' timeout 60 "$MOAT" share run --error-exitcode=0 -- "$T/tenant" bad write >"$T/out" 2>&1
check $? 'a mistake beside them'
share metrics
grep -E '^moat_(share|fence_all)' "$T/out" | tee "$T/metrics"
[ "$(sed -n 's/^moat_fence_all_contained_accesses_total //p' "$T/out")" -gt 0 ]
check $? 'it is counted'
kill -0 $plain
check $? 'the neighbour goes on'

# --- limits ---
share run --share-memory=1G -- "$T/spin" 4000
grep -q 'error 2,' "$T/out"
check $? 'more memory than the limit is refused'
share run --share-memory=8G -- "$T/spin" 4000
grep -q 'error 0,' "$T/out"
check $? 'less memory is given'
share run --share-percent=25 -- "$T/spin" 1
cat "$T/out"

# --- the end of a client ---
share end $plain
check $? 'end'
wait $plain
grep -q 'error 810\|terminated' "$T/plain"
check $? "the client's error: $(tail -n 1 "$T/plain")"
kill -9 "${running[@]}" 2>/dev/null
wait 2>/dev/null
running=()

# --- a kernel that never ends ---
CUDA_MPS_PIPE_DIRECTORY=$T/moat-share/pipe CUDA_MPS_LOG_DIRECTORY=$T/moat-share/log \
    "$T/spin" >"$T/spinning" 2>&1 &
spinning=$!
wait_for " +$spinning "
check $? 'it is a client'
sleep 2
kill -9 $spinning
wait 2>/dev/null
share restart
check $? 'restart'
cat "$T/out"
timeout 60 "$MOAT" share run -- "$T/spin" 1 >"$T/out" 2>&1
grep -q 'error 0,' "$T/out"
check $? 'new clients are taken again'
share stop
check $? stop

over=
echo "$passed passed, $failed failed"
[ $failed = 0 ]
