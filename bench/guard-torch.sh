#!/bin/bash
# SPDX-License-Identifier: MIT
# PyTorch training steps on a GPU, alone and watched, in turns (bench/torch_compare.py), and what calls cost there
# (bench/guard_calls.c). GUARD_TORCH_MODES: modes, api if not set. All processes on the cores GUARD_TORCH_CORES.
# GUARD_TORCH_PAIRS of processes, GUARD_TORCH_STEPS in each; GUARD_TORCH_SECONDS: no pair is begun so long after the first.
# SECTION=FILE: the tables go there instead of into doc/results.md.
set -eu
here=$(dirname "$0")
nvidia-smi -L >/dev/null 2>&1 || { echo 'guard-torch.sh: no GPU on this machine' >&2; exit 0; }
python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' 2>/dev/null || { echo 'guard-torch.sh: no PyTorch on this machine' >&2; exit 0; }
PAIRS=${GUARD_TORCH_PAIRS:-20} STEPS=${GUARD_TORCH_STEPS:-200} CALL_RUNS=${GUARD_TORCH_CALL_RUNS:-10}
cores=${GUARD_TORCH_CORES:-0-$(($(nproc) > 4 ? 3 : $(nproc) - 1))}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
calls=-
if [ -x "$BUILD/bench/guard_calls" ]; then
    calls=$T/calls
    for ((i = 0; i < CALL_RUNS; i++)); do
        for mode in off api; do
            taskset -c "${cores%%[-,]*}" "$MOAT" --device=gpu --mode=$mode "$BUILD/bench/guard_calls" 0 2>"$T/log" | sed "s/^/$mode /" >>"$T/calls" ||
                { tail -n 5 "$T/log" >&2; exit 1; }
        done
    done
fi
{
    echo '## PyTorch under the guard'
    echo
    "$here/machine"
    echo "PyTorch $(python3 -c 'import importlib.metadata; print(importlib.metadata.version("torch"))'), on cores $cores. Steps end with a synchronisation."
    for mode in ${GUARD_TORCH_MODES:-api}; do
        echo
        taskset -c "$cores" python3 "$here/torch_compare.py" "$MOAT" "$calls" "$PAIRS" "$STEPS" "$mode" "${GUARD_TORCH_SECONDS:-0}"
    done
} >"$T/section"
cat "$T/section"
if [ -n "${SECTION:-}" ]; then
    cp "$T/section" "$SECTION"
else
    "$here/section" guard-torch <"$T/section"
fi
