#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# libcudart.so.12: its name, its symbols' version, and the functions that CUDA 12 has with other parameters,
# from a program that is linked with it; with nvcc, a whole program too.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
library=$BUILD/lib/libcudart.so.12
[ -e "$library" ] || { echo 'there is no libcudart.so.12'; exit 77; }
readelf -d "$library" | grep -q 'SONAME.*\[libcudart.so.12\]'
nm -D --defined-only "$library" >"$work/symbols"
if awk '$2 != "A" && $3 !~ /@@libcudart[.]so[.]12$/' "$work/symbols" | grep .; then
    echo 'symbols of another version'
    exit 1
fi
for name in cudaGetDeviceProperties_v2 cudaMemPrefetchAsync_v2 cudaThreadSynchronize cudaMalloc \
    __cudaRegisterFatBinary; do
    grep -q " $name@@" "$work/symbols" || { echo "$name is not there"; exit 1; }
done
if grep 'cudart1[23]_' "$work/symbols"; then
    echo 'names of our own are exported'
    exit 1
fi

cat >"$work/old.c" <<'END_OF_C'
#include <stdio.h>
#include <string.h>
#include "runtime/cudart12.h"
#define DECLARE(name) __typeof__(cudart12_##name) name
DECLARE(cudaGetDeviceProperties_v2);
DECLARE(cudaThreadSynchronize);
#define OLD(name, symbol) __typeof__(cudart12_##symbol) name __asm__(#symbol)
OLD(old_pointer, cudaPointerGetAttributes);
OLD(old_texture, cudaCreateTextureObject);
OLD(old_resource, cudaGetTextureObjectResourceDesc);
cudaError_t old_prefetch(const void *, size_t, int, cudaStream_t) __asm__("cudaMemPrefetchAsync");
cudaError_t old_advise(const void *, size_t, cudaMemoryAdvise, int) __asm__("cudaMemAdvise");
cudaError_t old_edges(cudaGraph_t, cudaGraphNode_t *, cudaGraphNode_t *, size_t *) __asm__("cudaGraphGetEdges");
cudaError_t old_depend(cudaGraph_t, const cudaGraphNode_t *, const cudaGraphNode_t *, size_t)
    __asm__("cudaGraphAddDependencies");
#define TRY(call)                                        \
    if ((call) != cudaSuccess) {                         \
        printf("%s: %d\n", #call, cudaGetLastError());   \
        return 1;                                        \
    }
// The structures of 13 are larger: what is behind those of 12 is neither written nor read.
static int ends(char *memory)
{
    struct { struct cudart12_pointer is; char behind[64]; } pointer;
    struct { struct cudart12_resource is; char behind[80]; } linear, found;
    cudaTextureDesc desc = {0};
    cudaTextureObject_t texture;
    char same[80];
    memset(same, 0x5a, sizeof same);
    memset(&pointer, 0x5a, sizeof pointer);
    memset(&found, 0x5a, sizeof found);
    memset(&linear, 0x5a, sizeof linear);
    linear.is = (struct cudart12_resource){.resType = CU_RESOURCE_TYPE_LINEAR};
    // The address, 32 bits of a signed integer, and the size.
    linear.is.res[0] = (unsigned long long)memory, linear.is.res[1] = 32, linear.is.res[4] = 4096;
    TRY(old_pointer(&pointer.is, memory));
    TRY(old_texture(&texture, &linear.is, &desc, NULL));
    TRY(old_resource(&found.is, texture));
    return pointer.is.devicePointer != memory || memcmp(pointer.behind, same, sizeof pointer.behind) ||
           memcmp(&found.is, &linear.is, sizeof found.is) || memcmp(found.behind, same, sizeof found.behind);
}

int main(void)
{
    struct cudart12_prop p;
    cudaGraph_t graph;
    cudaGraphNode_t nodes[2], from[2], to[2];
    char *memory;
    size_t count = 2;
    int version, rate;
    memset(&p, 0x5a, sizeof p);
    TRY(cudaGetDeviceProperties_v2(&p, 0));
    TRY(cudaDeviceGetAttribute(&rate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0));
    TRY(cudaMallocManaged((void **)&memory, 1 << 20, 1));
    TRY(old_advise(memory, 1 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    TRY(old_prefetch(memory, 1 << 20, 0, NULL));
    TRY(old_prefetch(memory, 1 << 20, -1, NULL));
    TRY(ends(memory));
    TRY(cudaGraphCreate(&graph, 0));
    TRY(cudaGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
    TRY(cudaGraphAddEmptyNode(&nodes[1], graph, NULL, 0));
    TRY(old_depend(graph, &nodes[0], &nodes[1], 1));
    TRY(old_edges(graph, from, to, &count));
    TRY(cudaThreadSynchronize());
    TRY(cudaRuntimeGetVersion(&version));
    int wrong = p.warpSize != 32 || p.clockRate != rate || p.major < 7 || p.reserved[62] || count != 1 ||
                from[0] != nodes[0] || to[0] != nodes[1] || p.maxThreadsPerBlock != 1024 || version / 1000 != 12;
    puts(wrong ? "wrong" : "ok");
    return wrong;
}
END_OF_C
cc -std=gnu11 -Isrc -Iinclude -o "$work/old" "$work/old.c" -L"$BUILD/lib" -l:libcudart.so.12
"$MOAT" --device=cpu --mode=off "$work/old" | grep -qx ok
# A DT_RPATH comes before LD_LIBRARY_PATH: the library it leads to would answer no call.
mkdir "$work/rpath"
cc -shared -fPIC -Wl,-soname,libcudart.so.12 -o "$work/rpath/libcudart.so.12" -x c - <<'END_OF_C'
int not_a_runtime;
END_OF_C
cc -std=gnu11 -Isrc -Iinclude -o "$work/old-rpath" "$work/old.c" -L"$BUILD/lib" -l:libcudart.so.12 \
    -Wl,--disable-new-dtags,-rpath,"$work/rpath"
"$MOAT" --device=cpu --mode=off "$work/old-rpath" | grep -qx ok
passed=2
if command -v nvcc >/dev/null; then
    ln -s "$PWD/$library" "$work/libcudart.so" 2>/dev/null || ln -s "$library" "$work/libcudart.so"
    nvcc -std=c++14 -gencode arch=compute_75,code=compute_75 -cudart shared -L"$work" \
        -o "$work/triad" test/programs/triad.cu
    readelf -d "$work/triad" | grep -q 'NEEDED.*libcudart.so.12'
    "$MOAT" --device=cpu --mode=off "$work/triad" | grep -q 'triad: ok'
    passed=3
fi
echo "$passed passed, 0 failed"
