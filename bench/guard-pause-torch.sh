#!/bin/bash
# SPDX-License-Identifier: MIT
# What moat adds to launch-bound training steps in PyTorch and Triton, measured inside one process, which
# pauses moat in turns (bench/guard_pause_torch.py): section guard-pause-torch-gpu of doc/results.md.
# GUARD_PAUSE_SECONDS: of each step, 6. GUARD_PAUSE_RUNS: processes of each mode, 2. MODES: modes. DEVICE: gpu
# or cpu. PYTHON: which Python. GPU_SECONDS: no process is begun after so many. GPU_ROWS keeps what was
# measured. SECTION=FILE: the table goes there.
set -eu
here=$(dirname "$0")
device=${DEVICE:-$(nvidia-smi -L >/dev/null 2>&1 && echo gpu || echo cpu)}
python=${PYTHON:-python3}
runs=${GUARD_PAUSE_RUNS:-2} seconds=${GUARD_PAUSE_SECONDS:-6}
"$python" -c 'from importlib.util import find_spec as f; exit(not (f("torch") and f("triton")))' ||
    { echo 'no PyTorch or no Triton on this machine'; exit 77; }
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cache=${GPU_CACHE:-$T}
export TRITON_CACHE_DIR=$cache/triton TORCHINDUCTOR_CACHE_DIR=$cache/inductor XDG_CACHE_HOME=$cache/cache \
    PYTHONDONTWRITEBYTECODE=1
rows=$T/rows
[ -z "${GPU_ROWS:-}" ] || rows=$GPU_ROWS/guard-pause-torch-$("$here/rows-key")
mkdir -p "${rows%/*}"
touch "$rows"
for ((run = 1; run <= runs; run++)); do
    for mode in ${MODES:-check api canary}; do
        ! grep -q "| $mode | $run |" "$rows" || continue
        [ $((SECONDS + 4 * ${seconds%.*})) -lt "${GPU_SECONDS:-100000}" ] || break 2
        options=()
        [ "$mode" = api ] || options=(--no-kheap)
        status=0 limit=$((${GPU_SECONDS:-100000} - SECONDS))
        timeout $((limit < 100 ? limit : 100)) "$MOAT" --device="$device" --mode="$mode" --no-torch-alloc \
            "${options[@]}" "$python" "$here/guard_pause_torch.py" "$seconds" eager compiled triton \
            >"$T/out" 2>"$T/log" </dev/null || status=$?
        while read -r step median low high pairs paused; do
            echo "| $step | $mode | $run | $paused | $median | $low to $high | $pairs |"
        done <"$T/out" >>"$rows"
        [ $status = 0 ] || { echo "$mode: status $status"; tail -n 15 "$T/log"; } >&2
    done
done
{
    echo "## Launch-bound steps of PyTorch and Triton, with moat and with moat paused, on the ${device^^}"
    echo
    "$here/machine"
    "$python" -c 'import torch, triton
print("PyTorch", torch.__version__ + ", Triton", triton.__version__ + ",",
        "a transformer of 4 layers with 4 x 32 words; PyTorch keeps its pool (--no-torch-alloc). Turns of 3",
        "steps, of which every other one is paused; percent that moat adds.")'
    echo
    echo '| step | mode | process | paused step, ms | median | 95 % interval | pairs of turns |'
    echo '| --- | --- | ---: | ---: | ---: | ---: | ---: |'
    sort -s -t '|' -k 2,3 "$rows"
} >"$T/section"
cat "$T/section"
[ -s "$rows" ]
"$here/finish" "guard-pause-torch-$device" "$T/section"
