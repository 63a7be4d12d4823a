#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=fence costs kernels on a GPU, by the time that CUPTI gives for each launch (kernel_runs): the
# programs of the suite as they are, from PTX that the driver has compiled, fenced by the mask with proofs and
# without, and by comparison, in turns, FENCE_GPU_RUNS times. FENCE_GPU_WARM=no: the caches are filled
# already, by a call with FENCE_GPU_RUNS=0. GPU_SECONDS ends the measurement, GPU_ROWS keeps its rows.
set -eu
here=$(dirname "$0")
nvidia-smi -L >/dev/null 2>&1 || { echo 'fence-gpu.sh: no GPU on this machine' >&2; exit 0; }
RUNS=${FENCE_GPU_RUNS:-2}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/kernel_runs
. "$here/kernel_runs"
kernel_runs_begin || exit 0
[ "${FENCE_GPU_WARM:-yes}" = no ] || kernel_runs_warm fence fence-noproofs fence-check
[ "$RUNS" != 0 ] || exit 0
rows=$(kernel_runs_rows)
kernel_runs_turns 1 native ptx fence fence-noproofs fence-check
kernel_runs_turns "$RUNS" native ptx fence fence-noproofs fence-check fence-modulo
[ -s "$rows" ] || { echo 'fence-gpu.sh: nothing was measured' >&2; exit 1; }
{
    echo '## Kernels under --mode=fence on a GPU'
    echo
    "$here/machine"
    python3 "$here/kernel_runs.py" fence "$rows" "$list"
} >"$T/section"
cat "$T/section"
"$here/finish" fence-gpu "$T/section"
