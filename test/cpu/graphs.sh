#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Graphs through the CUDA runtime on the CPU device, with our shared runtime and with the static one, alone
# and watched by moat.
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
nvcc -std=c++14 -gencode arch=compute_90,code=compute_90 -c test/cpu/graphs.cu -o "$T/graphs.o" || exit 1
nvcc -cudart shared -L"$BUILD/lib/moat" "$T/graphs.o" -o "$T/shared" || exit 1
(eval "$("$MOAT" link-flags)" && nvcc "$T/graphs.o" -o "$T/static") || exit 1
failed=0
for runtime in shared static; do
    for mode in off api count; do
        if timeout 120 "$MOAT" --device=cpu --mode="$mode" "$T/$runtime" >"$T/log" 2>&1 </dev/null &&
            grep -qx 'all right' "$T/log"; then
            echo "ok   $runtime runtime, --mode=$mode"
        else
            echo "FAIL $runtime runtime, --mode=$mode"
            tail -n 20 "$T/log" | sed 's/^/    | /'
            failed=1
        fi
    done
done
exit $failed
