#!/bin/sh
# SPDX-License-Identifier: MIT
# builds: one
#
# Compares src/driver with the headers and the stub library of an installed CUDA toolkit.
# Exit status: 0 all alike, 1 some difference, 77 nothing to compare with.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
src=$(cd "$here/../../src" && pwd)
nvcc=$(command -v nvcc || true)
[ -z "$nvcc" ] || nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")

toolkit=
for dir in "${CUDA_HOME:-}" "$nvcc" /usr/local/cuda; do
    if [ -n "$dir" ] && [ -f "$dir/include/cuda.h" ]; then
        toolkit=$dir
        break
    fi
done
if [ -z "$toolkit" ]; then
    echo "skipped: no cuda.h found (CUDA_HOME, nvcc, /usr/local/cuda)"
    exit 77
fi
if ! command -v python3 >/dev/null; then
    echo "skipped: no python3"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CC=${CC:-cc} PYTHONDONTWRITEBYTECODE=1 python3 "$here/compare_cuda_h.py" "$src" "$toolkit" "$work"
