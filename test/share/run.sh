#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# moat share run: a program joins the server with its shares set and its kernels fenced, and what it counts is
# in the metrics: while it runs under its own name, and in the sums after it was killed. The CPU device has no
# MPS, so that the server is the pretended one of test/share/mps, or none.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
program=
finish() {
    [ -z "$program" ] || kill -9 "$program" 2>/dev/null
    rm -rf "$T"
}
trap finish EXIT
export PATH=$PWD/test/share/mps:$PATH XDG_RUNTIME_DIR=$T XDG_CACHE_HOME=$T/cache
unset MOAT_OPTIONS
passed=0 failed=0
check() {  # check STATUS WHAT
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $2"
        head -n 30 "$T/out" | sed 's/^/    | /'
    fi
}
value() {  # value NAME: of the last metrics
    sed -n "s/^$1 //p" "$T/metrics"
}
metrics() {
    timeout 60 "$MOAT" share metrics >"$T/metrics" 2>"$T/out"
}

# --- joining ---
timeout 60 "$MOAT" share start >"$T/out" 2>&1
check $? start
# shellcheck disable=SC2016
timeout 60 "$MOAT" share run --share-memory=3G --share-percent=25 -- bash -c \
    'echo "$CUDA_MPS_PIPE_DIRECTORY $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"' \
    >"$T/out" 2>&1
grep -qE "^$T/moat-share/pipe 25 0=3072M(,|$)" "$T/out"
check $? 'the shares of a program'
timeout 60 "$MOAT" share stop >"$T/out" 2>&1
timeout 60 "$MOAT" share run -- true >"$T/out" 2>&1
[ $? = 98 ] && grep -q 'moat share start' "$T/out"
check $? 'no server'
timeout 60 "$MOAT" share run >"$T/out" 2>&1
[ $? = 2 ] && grep -q 'no program given' "$T/out"
check $? 'no program'
timeout 60 "$MOAT" share run --mode=check -- true >"$T/out" 2>&1
[ $? = 2 ] && grep -q 'with --mode=fence' "$T/out"
check $? 'another mode'

# --- counting ---
if command -v nvcc >/dev/null &&
    tenant=$(test/guard/compiled 90 fence_tenant -O2 2>"$T/out") && cp "$tenant" "$T/tenant"; then
    # A contained mistake, in a process that ends.
    FENCE_DRIVER=$BUILD/lib/moat/libmoat-cpu.so timeout 60 "$MOAT" share run --device=cpu \
        --error-exitcode=0 -- "$T/tenant" bad write >"$T/out" 2>&1
    check $? 'a mistake is contained'
    metrics
    [ "$(value moat_fence_processes)" = 0 ] && [ "$(value moat_fence_all_contained_accesses_total)" -gt 0 ] &&
        [ "$(value moat_fence_all_fenced_launches_total)" -gt 0 ]
    check $? "what a process counted outlives it: $(value moat_fence_all_contained_accesses_total)"
    before=$(value moat_fence_all_fenced_launches_total)
    metrics
    [ "$(value moat_fence_all_fenced_launches_total)" = "$before" ]
    check $? 'it is counted once'
    ! compgen -G "$T/moat-share/clients/[0-9]*" >/dev/null
    check $? 'its file is gone'

    # A process that runs, and is killed.
    timeout 300 "$MOAT" share run --device=cpu -- bash -c "echo \$\$ >$T/pid; exec $T/tenant neighbour 200" \
        >"$T/out" 2>&1 &
    for _ in $(seq 600); do
        program=$(cat "$T/pid" 2>/dev/null)
        metrics
        launches=$(value "moat_fence_fenced_launches_total{pid=\"$program\",program=\"tenant\"}")
        [ "${launches:-0}" = 0 ] || break
        sleep 0.1
    done
    [ "${launches:-0}" -gt 0 ]
    check $? 'launches of a process that runs'
    [ "$(value "moat_fence_held_bytes{pid=\"$program\",program=\"tenant\"}")" -gt 0 ]
    check $? 'memory of a process that runs'
    timeout 60 "$MOAT" share start >"$T/out" 2>&1
    echo "$program" >"$T/moat-share/pipe/servers/4711"
    timeout 60 "$MOAT" share clients >"$T/out" 2>&1
    grep -qE "^4711 +$program .* yes +0 +tenant" "$T/out"
    check $? 'a client that is fenced'
    kill -9 "$program"
    wait 2>/dev/null
    metrics
    [ "$(value moat_fence_processes)" = 0 ] &&
        [ "$(value moat_fence_all_fenced_launches_total)" -gt "$before" ]
    check $? 'launches of a process that was killed'
fi

# --- what stands in the folder is not trusted ---
if [ -d "$T/moat-share/clients" ]; then
    head -c 100 /dev/urandom >"$T/moat-share/clients/4194303"
    mkfifo "$T/moat-share/clients/4194302"
    ln -s /etc/passwd "$T/moat-share/clients/4194301"
    metrics
    check $? 'files that are none'
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
