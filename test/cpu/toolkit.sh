#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# What nvcc and CMake build, on the CPU device, by routes that test/cpu/suite.sh does not take: code in
# several objects that are linked on the device (-rdc), CMake projects, the demo's kernel as a CUDA program,
# and a program with NVIDIA's static runtime, which moat must warn about.
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0 skipped=0

check() {  # check WHAT STATUS PATTERN COMMAND...: its exit status and a line of its output
    local what=$1 status=$2 pattern=$3 actual
    shift 3
    timeout 120 "$@" >"$T/log" 2>&1 </dev/null
    actual=$?
    if [ $actual = "$status" ] && grep -qE "$pattern" "$T/log"; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what: status $actual, expected $status and \"$pattern\""
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}
run=("$MOAT" --device=cpu --mode=off)
ptx='-gencode arch=compute_75,code=compute_75'

# Two objects whose device code is linked.
cat >"$T/main.cu" <<'END'
#include <cstdio>
extern __device__ int scale(int x);
extern __device__ int offset;
__global__ void kernel(int *out) { out[threadIdx.x] = scale(threadIdx.x) + offset; }
int main()
{
    int *out, host[8];
    cudaMalloc(&out, sizeof host);
    kernel<<<1, 8>>>(out);
    cudaError_t e = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    printf("%s %d\n", cudaGetErrorName(e), e ? 0 : host[7]);
    return e || host[7] != 121;
}
END
cat >"$T/other.cu" <<'END'
__device__ int offset = 100;
__device__ int scale(int x) { return 3 * x; }
END
(cd "$T" && nvcc -std=c++14 -rdc=true -arch=sm_75 -c main.cu other.cu) || exit 1
nvcc -arch=sm_75 -rdc=true -cudart shared -L"$BUILD/lib/moat" -o "$T/rdc-shared" "$T"/main.o "$T"/other.o ||
    exit 1
(eval "$("$MOAT" link-flags)" && nvcc -arch=sm_75 -rdc=true -o "$T/rdc-static" "$T"/main.o "$T"/other.o) ||
    exit 1
check 'device code in two objects, shared runtime' 0 '^cudaSuccess 121$' "${run[@]}" "$T/rdc-shared"
check 'device code in two objects, static runtime' 0 '^cudaSuccess 121$' "${run[@]}" "$T/rdc-static"

# The demo as a CUDA program.
cat >"$T/smooth.cu" <<END
#include <cstdio>
#include "$PWD/demo/smooth.cu"
int main()
{
    float *x;
    cudaMallocManaged(&x, N * sizeof *x);
    for (int i = 0; i < N; i++)
        x[i] = i;
    smooth<<<1, N>>>(x);
    cudaError_t e = cudaDeviceSynchronize();
    printf("%s %s\n", cudaGetErrorName(e), cudaGetErrorName(cudaGetLastError()));
    return e != cudaErrorIllegalAddress;
}
END
# shellcheck disable=SC2086
nvcc -Wno-deprecated-gpu-targets $ptx -cudart shared -L"$BUILD/lib/moat" -o "$T/smooth" "$T/smooth.cu" \
    2>"$T/log" || { cat "$T/log"; exit 1; }
check 'the demo as a CUDA program' 0 '^cudaErrorIllegalAddress' "${run[@]}" "$T/smooth"

# NVIDIA's static runtime.
# shellcheck disable=SC2086
nvcc -std=c++14 $ptx -o "$T/foreign" test/programs/triad.cu || exit 1
check "a program with NVIDIA's static runtime gets a warning" 2 \
    "warning: .*/foreign\" has NVIDIA's static CUDA runtime" \
    "${run[@]}" "$T/foreign" 100 1
check 'nothing of it is watched' 2 'nothing was watched' "$MOAT" --device=cpu "$T/foreign" 100 1
check 'and --strict does not start it' 98 "error: .*/foreign\" has NVIDIA's static" "$MOAT" --device=cpu \
    --strict "$T/foreign" 100 1

# CMake: unchanged with our static runtime; with the shared one by its own setting.
if command -v cmake >/dev/null; then
    mkdir "$T/project"
    cp test/programs/triad.cu test/programs/program.h "$T/project/"
    cat >"$T/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.18)
project(triad LANGUAGES CXX CUDA)
add_executable(triad triad.cu)
END
    (
        eval "$("$MOAT" link-flags)"
        cmake -S "$T/project" -B "$T/static" -DCMAKE_CUDA_ARCHITECTURES=75-virtual &&
            cmake --build "$T/static"
    ) >"$T/cmake.log" 2>&1 || { tail "$T/cmake.log"; exit 1; }
    check 'CMake, static runtime' 0 '^triad: ok$' "${run[@]}" "$T/static/triad" 1000 1
    # Where TEST_ALL is 0 in the same folder, so that CMake looks for the compiler once.
    folder=$T/shared
    [ "${TEST_ALL:-1}" != 0 ] || folder=$T/static
    {
        cmake -S "$T/project" -B "$folder" -DCMAKE_CUDA_ARCHITECTURES=75-virtual \
            -DCMAKE_CUDA_RUNTIME_LIBRARY=Shared &&
            cmake --build "$folder"
    } >"$T/cmake.log" 2>&1 || { tail "$T/cmake.log"; exit 1; }
    check 'CMake links the shared runtime' 0 'NEEDED.*libcudart\.so' objdump -p "$folder/triad"
    check 'CMake, shared runtime' 0 '^triad: ok$' "${run[@]}" "$folder/triad" 1000 1
else
    skipped=1
    echo 'skip CMake: there is none on this machine'
fi
[ $skipped = 0 ] && echo "$passed passed, $failed failed" ||
    echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
