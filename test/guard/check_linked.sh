#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=check: errors in kernels of each of several PTX texts that the driver links, and in a function that
# is called from another text.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0
cat >"$T/first.cu" <<'CU'
extern "C" __global__ void first(int *a, int n)
{
    if (threadIdx.x < n)
        a[threadIdx.x] = 1;
}
CU
cat >"$T/second.cu" <<'CU'
extern "C" __global__ void second(int *a, int n)
{
    __shared__ int b[128];
    b[threadIdx.x] = n;
    __syncthreads();
    if (threadIdx.x == n - 1)
        a[threadIdx.x] += b[127 - threadIdx.x];
}
CU
cat >"$T/caller.cu" <<'CU'
extern __device__ void set(int *a, int i);
extern "C" __global__ void first(int *a, int n)
{
    if (threadIdx.x < n)
        set(a, threadIdx.x);
}
CU
{
    printf '__device__ __noinline__ void set(int *a, int i)\n{\n    a[i] = 1;\n}\n'
    cat "$T/second.cu"
} >"$T/callee.cu"
for name in first second caller callee; do
    nvcc -std=c++14 -rdc=true -ptx -lineinfo -arch=compute_75 -o "$T/$name.ptx" "$T/$name.cu" || exit 1
done
cc -g -Isrc -o "$T/check_linked" test/guard/check_linked.c -L"$BUILD/lib/moat" -lcuda || exit 1

texts='first second'
run() {  # run good|bad
    # shellcheck disable=SC2086
    set -- $texts "$1"
    timeout "${CHECK_LIMIT:-60}" "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=check "$T/check_linked" \
        "$T/$1.ptx" "$T/$2.ptx" "$3" >"$T/log" 2>&1 </dev/null
    status=$?
}

verdict() {  # verdict STATUS WHAT
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $2: status $status"
    tail -n 60 "$T/log" | sed 's/^/    | /'
}

run good
[ "$status" = 0 ] && ! grep -q ERROR "$T/log" && grep -Eq 'kernel launches checked +2$' "$T/log"
verdict $? good
run bad
[ "$status" = 97 ] && grep -q 'in kernel first .*first.cu:4$' "$T/log"
verdict $? 'the first text'
grep -q 'in kernel second .*second.cu:7$' "$T/log"
verdict $? 'the second text'
run bad
[ "$status" = 97 ] && grep -q 'in kernel second .*second.cu:7$' "$T/log"
verdict $? 'from the cache'
for texts in 'caller callee' 'callee caller'; do
    run good
    [ "$status" = 0 ] && ! grep -q ERROR "$T/log"
    verdict $? "good, $texts"
    run bad
    [ "$status" = 97 ] && grep -q 'in kernel first .*callee.cu:3$' "$T/log" &&
        grep -q '^launched by cuLaunchKernel at' "$T/log"
    verdict $? "the function that is called, $texts"
done
# A function of another text that is called through a pointer frees what the loop looks up in each round.
cat >"$T/calls.cu" <<'CU'
#include <cstdio>
typedef void (*function)(int *);
extern __device__ function table[2];
__global__ void make(int **cell)
{
    cell[0] = (int *)malloc(40);
    for (int k = 0; k < 10; k++)
        cell[0][k] = 7;
}
__global__ void use(int *out, int **cell, int when)
{
    int sum = 0;
#pragma unroll 1
    for (int round = 0; round < 4; round++) {
        sum += cell[0][9];
        table[round == when](cell[0]);
    }
    out[0] = sum;
}
int main(int argc, char **)
{
    int *out, **cell;
    cudaMalloc(&out, 4);
    cudaMalloc(&cell, 8);
    make<<<1, 1>>>(cell);
    use<<<1, 1>>>(out, cell, argc == 2 ? 1 : 9);
    return cudaDeviceSynchronize() != 0;
}
CU
cat >"$T/table.cu" <<'CU'
typedef void (*function)(int *);
static __device__ __noinline__ void drop(int *p)
{
    free(p);
}
static __device__ __noinline__ void keep(int *p)
{
    asm volatile("" ::"l"(p));
}
__device__ function table[2] = {keep, drop};
CU
nvcc -std=c++14 -rdc=true -cudart shared -lineinfo -gencode arch=compute_75,code=compute_75 -o "$T/calls" \
    "$T/calls.cu" "$T/table.cu" || exit 1
through() {  # through [bad]
    timeout "${CHECK_LIMIT:-60}" "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=check "$T/calls" "$@" \
        >"$T/log" 2>&1 </dev/null
    status=$?
}
through
[ "$status" = 0 ] && ! grep -q ERROR "$T/log"
verdict $? 'good, calls of another text through a pointer'
through bad
[ "$status" = 97 ] && grep -q 'heap-use-after-free' "$T/log" && grep -q 'calls.cu:15$' "$T/log"
verdict $? 'what a function of another text has freed'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
