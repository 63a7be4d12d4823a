#!/bin/bash
# SPDX-License-Identifier: MIT
# Kernels of PyTorch, torch.compile, Triton, CuPy and JAX alone, under --mode=check and under --mode=fence:
# the share that these cover, and the time of what they cover (bench/frameworks_kernels.py). JOBS: programs at
# a time (8). GPU_SECONDS ends it, GPU_ROWS keeps what was measured. PYTHON: which Python. SECTION=FILE: the
# table goes there instead of into doc/results.md.
set -eu
here=$(dirname "$0")
[ "${DEVICE:-gpu}" = cpu ] || nvidia-smi -L >/dev/null 2>&1 ||
    { echo 'frameworks-kernels.sh: no GPU on this machine' >&2; exit 0; }
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
folder=${GPU_ROWS:-$T}/frameworks-kernels-$("$here/rows-key") cache=${GPU_CACHE:-$T/cache}
mkdir -p "$folder" "$cache"
unset NVTX_INJECTION64_PATH PYTORCH_NO_CUDA_MEMORY_CACHING XLA_PYTHON_CLIENT_ALLOCATOR PYTHONPATH \
    CUPY_COMPILE_WITH_PTX CUPY_CACHE_IN_MEMORY TRITON_INTERPRET
export XDG_CACHE_HOME=$cache TRITON_CACHE_DIR=$cache/triton CUPY_CACHE_DIR=$cache/cupy \
    TORCHINDUCTOR_CACHE_DIR=$cache/inductor PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    XLA_PYTHON_CLIENT_PREALLOCATE=false TF_CPP_MIN_LOG_LEVEL=2 CUBLAS_WORKSPACE_CONFIG=:4096:8
# Each process would start a compiler for each core.
export TORCHINDUCTOR_COMPILE_THREADS=${TORCHINDUCTOR_COMPILE_THREADS:-4}
export XLA_FLAGS="${XLA_FLAGS:-} --xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true"
{
    echo '## Kernels of frameworks under check and fence'
    echo
    "$here/machine"
} >"$T/section"
status=0
"${PYTHON:-python3}" "$here/frameworks_kernels.py" "$MOAT" "$folder" >"$T/table" &
child=$!
trap 'kill -TERM $child 2>/dev/null' TERM
wait $child || status=$?
wait $child 2>/dev/null || true
[ -s "$T/table" ] || exit $status
cat "$T/table" >>"$T/section"
cat "$T/section"
"$here/finish" frameworks-kernels "$T/section"
exit $status
