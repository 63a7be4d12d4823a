#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# PyTorch, torch.compile, Triton, CuPy and JAX under the modes api, canary and check on a GPU: results must be
# those that the programs of test/gpu/frameworks_cases.py have alone, nothing may be reported, and a wrong
# kernel must be found. Says which share of the launches and of the kernels' time check covers.
# MOAT: the command; PYTHON: which Python; JOBS: programs at a time; SECTION=FILE: writes tables there:
# bench/section frameworks-check-gpu <FILE puts them into doc/results.md. FRAMEWORKS_MODE=shadow: under that
# mode instead of these, for section frameworks-shadow-gpu. KEEP=FILE: an archive of all logs.
# GPU_SECONDS ends it; GPU_ROWS keeps what was run. DEVICE=cpu: on the CPU device, to test this script.
# Arguments: parts of the names of the programs to run.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ "${DEVICE:-gpu}" = cpu ] || nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo 'no python3 on this machine'; exit 77; }
moat=${MOAT:-$PWD/bin/moat}
[ -x "$moat" ] || { echo "no moat at $moat"; exit 77; }
"$python" -c 'import numpy' 2>/dev/null || { echo "$python has no numpy"; exit 77; }
if [ -n "${GPU_ROWS:-}" ]; then
    T=$GPU_ROWS/frameworks-${FRAMEWORKS_MODE:-check}-$(bench/rows-key)
    mkdir -p "$T" || exit 1
else
    T=$(mktemp -d) || exit 1
fi
finish() {
    if [ -n "${SECTION:-}" ] && [ -s "$T/section.md" ]; then
        {
            printf '## Frameworks under %s\n\n' "${FRAMEWORKS_MODE:-check}"
            bench/machine
            echo
            cat "$T/section.md"
        } >"$SECTION"
    fi
    [ -z "${KEEP:-}" ] || tar -C "$T" -czf "$KEEP" --exclude=cache --exclude='*.npz' .
    [ -n "${GPU_ROWS:-}" ] || rm -rf "$T"
}
trap finish EXIT
unset NVTX_INJECTION64_PATH PYTORCH_NO_CUDA_MEMORY_CACHING XLA_PYTHON_CLIENT_ALLOCATOR PYTHONPATH \
    CUPY_COMPILE_WITH_PTX CUPY_CACHE_IN_MEMORY TRITON_INTERPRET
# Caches of this run only, filled by the programs alone.
cache=${GPU_CACHE:-$T/cache}
export XDG_CACHE_HOME=$cache TRITON_CACHE_DIR=$cache/triton CUPY_CACHE_DIR=$cache/cupy \
    TORCHINDUCTOR_CACHE_DIR=$cache/inductor PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Several at a time on one GPU, and no choice by measured time.
export XLA_PYTHON_CLIENT_PREALLOCATE=false TF_CPP_MIN_LOG_LEVEL=2 CUBLAS_WORKSPACE_CONFIG=:4096:8
# Each process would start a compiler for each core.
export TORCHINDUCTOR_COMPILE_THREADS=${TORCHINDUCTOR_COMPILE_THREADS:-4}
export XLA_FLAGS="${XLA_FLAGS:-} --xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true"
"$python" test/gpu/frameworks_check.py "$moat" "$python" "$T" "$@" &
child=$!
trap 'kill -TERM $child; wait $child; exit 1' TERM INT
wait $child
