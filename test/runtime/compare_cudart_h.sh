#!/bin/sh
# SPDX-License-Identifier: MIT
# builds: one
#
# Compares src/runtime with the headers and the library of an installed CUDA toolkit.
# Exit status: 0 all alike, 1 some difference, 77 nothing to compare with.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
src=$(cd "$here/../../src" && pwd)
nvcc=$(command -v nvcc || true)
[ -z "$nvcc" ] || nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")

toolkit=
for dir in "${CUDA_HOME:-}" "$nvcc" /usr/local/cuda; do
    if [ -n "$dir" ] && [ -f "$dir/include/cuda_runtime_api.h" ]; then
        toolkit=$dir
        break
    fi
done
if [ -z "$toolkit" ]; then
    echo "skipped: no cuda_runtime_api.h found (CUDA_HOME, nvcc, /usr/local/cuda)"
    exit 77
fi
for tool in python3 g++; do
    if ! command -v $tool >/dev/null; then
        echo "skipped: no $tool"
        exit 77
    fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CC=${CC:-cc} PYTHONDONTWRITEBYTECODE=1 python3 "$here/compare_cudart_h.py" "$src" "$toolkit" "$work"
