#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# PTX as Triton makes it on a GPU, through parse and print. KEEP names a folder that gets the texts.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
command -v ptxas >/dev/null || { echo 'no ptxas on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
python3 -c 'import triton, torch' 2>/dev/null || { echo 'no Triton on this machine'; exit 77; }
python3 test/ptx/jit/triton_kernels.py "$T" || exit 1
[ -z "${KEEP:-}" ] || cp "$T"/*.ptx "$KEEP"
passed=0 failed=0
for f in "$T"/*.ptx; do
    name=${f##*/}
    test/ptx/roundtrip-one "${name%.ptx}" "$f" && passed=$((passed + 1)) || failed=$((failed + 1))
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
