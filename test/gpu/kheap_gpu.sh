#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# malloc inside kernels under --mode=canary on a real GPU: test/guard/kheap_pairs.sh with a million live
# buffers. The table goes to the file SECTION names, if any: bench/section kheap-errors-gpu <FILE puts it into
# doc/results.md. Without nvcc, these must have been compiled before: $BUILD/programs/kheap_objects,
# device_heap and kheap.cubin.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
if command -v nvcc >/dev/null; then
    mkdir -p "$BUILD/programs"
    [ -e "$BUILD/programs/kheap_objects" ] ||
        nvcc -std=c++17 -arch=sm_90 -o "$BUILD/programs/kheap_objects" test/guard/kheap_objects.cu || exit 1
    [ -e "$BUILD/programs/device_heap" ] ||
        nvcc -std=c++17 -arch=sm_90 -o "$BUILD/programs/device_heap" test/programs/device_heap.cu || exit 1
    [ -e "$BUILD/programs/kheap.cubin" ] || {
        "$BUILD/tool/kheap_foreign" text >"$T/k.ptx" &&
            ptxas -arch=sm_90 -o "$BUILD/programs/kheap.cubin" "$T/k.ptx" || exit 1
    }
fi
export GUARD_DEVICE=gpu KHEAP_MANY=${KHEAP_MANY:-1000000}
SECTION=${SECTION:+$T/table.md} test/guard/kheap_pairs.sh
status=$?
if [ -n "${SECTION:-}" ]; then
    {
        echo '## malloc inside kernels, on a GPU'
        echo
        bench/machine
        echo
        cat "$T/table.md"
    } >"$SECTION"
fi
exit $status
