#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
#
# What nvcc makes links with our runtime, as a shared library and as an archive, whole and in parts (-rdc),
# and says to unusual calls what NVIDIA's runtime says: behaviour.expected.
set -u
here=$(cd "$(dirname "$0")" && pwd)
command -v nvcc >/dev/null || { echo 'skipped: no nvcc'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lib=$(realpath "$BUILD/lib")
ln -s "$lib/libcudart.so.13" "$work/libcudart.so.13"
# The device: a GPU's driver where there is one, else ours.
if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    skip=none
else
    ln -s "$lib/libmoat-cpu.so" "$work/libcuda.so.1"
    skip='arrays|array_copies'  # what the CPU device has not
fi
export LD_LIBRARY_PATH=$work NVCC_PREPEND_FLAGS=-std=c++14

nvcc -w -arch=sm_90 -c -o "$work/behaviour.o" "$here/behaviour.cu" || exit 1
NVCC_APPEND_FLAGS=-L$lib nvcc -w -arch=sm_90 -o "$work/static" "$work/behaviour.o" || exit 1
nvcc -w -arch=sm_90 -cudart shared -o "$work/shared" "$work/behaviour.o" || exit 1
readelf -d "$work/static" | grep libcudart && { echo 'the archive was not taken'; exit 1; }
strings "$work/static" | grep -q 'moat: %s does not have' || { echo 'the archive is not ours'; exit 1; }

parts=$(sed -n 's/^-- //p' "$here/behaviour.expected" | grep -vxE "$skip")
for program in static shared; do
    for part in $parts; do
        sed -n "/^-- $part\$/,/^-- /p" "$here/behaviour.expected" | grep -v '^-- ' >"$work/expected"
        timeout 60 "$work/$program" "$part" >"$work/found" 2>"$work/said"
        status=$?
        if [ $status != 0 ] || ! diff "$work/expected" "$work/found"; then
            echo "$program $part: status $status"
            cat "$work/said"
            exit 1
        fi
    done
done

cat >"$work/a.cu" <<'END'
#include <cstdio>
__device__ int twice(int);
extern __device__ int shared_variable;
__global__ void k(int *p) { *p = twice(20) + shared_variable; }
int main()
{
    int *p, host = 0;
    cudaMalloc(&p, 4);
    k<<<1, 1>>>(p);
    cudaError_t error = cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost);
    printf("%d %d\n", (int)error, host);
}
END
cat >"$work/b.cu" <<'END'
__device__ int shared_variable = 2;
__device__ int twice(int x) { return x + x; }
END
NVCC_APPEND_FLAGS=-L$lib nvcc -w -rdc=true -arch=sm_90 -o "$work/parts" "$work/a.cu" "$work/b.cu" || exit 1
[ "$("$work/parts")" = '0 42' ] || { echo "-rdc: $("$work/parts" 2>&1)"; exit 1; }
NVCC_APPEND_FLAGS=-L$lib nvcc -w -rdc=true -arch=sm_90 -default-stream per-thread -o "$work/parts" \
    "$work/a.cu" "$work/b.cu" || exit 1
[ "$("$work/parts")" = '0 42' ] || { echo "-rdc, per-thread: $("$work/parts" 2>&1)"; exit 1; }
