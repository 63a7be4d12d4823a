#!/bin/bash
# SPDX-License-Identifier: MIT
# Several devices: test/cpu/device_peers.c, with the library's code in the program itself and by `moat`; and
# test/cpu/device_peers.cu through the CUDA runtime where nvcc is installed.
set -u
# shellcheck source=test/cpu/try
. test/cpu/try

said() { grep -Eqx 'device_peers: ok|all right' "$1"; }

try 'the library in it' env MOAT_OPTIONS=cpu-devices=3:cpu-memory=64M "$BUILD/tool/device_peers"
if ! grep -q fsanitize "$BUILD/flags" 2>/dev/null; then
    cc -std=gnu11 -D_GNU_SOURCE -Isrc -o "$T/peers" test/cpu/device_peers.c -L"$BUILD/lib/moat" \
        -lcuda -pthread || exit 1
    try 'by moat' "$MOAT" --device=cpu --mode=off --cpu-devices=3 --cpu-memory=64M "$T/peers"
    if command -v nvcc >/dev/null; then
        nvcc -std=c++14 -gencode arch=compute_90,code=compute_90 -cudart shared -L"$BUILD/lib/moat" \
            test/cpu/device_peers.cu -o "$T/runtime" || exit 1
        for mode in off api; do
            try "by the runtime, --mode=$mode" "$MOAT" --device=cpu --mode=$mode --cpu-devices=3 "$T/runtime"
        done
    fi
fi
try_end
