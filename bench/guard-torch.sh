#!/bin/bash
# SPDX-License-Identifier: MIT
# PyTorch training steps on a GPU, alone and watched, in turns (bench/torch_compare.py), and what calls cost
# there (bench/guard-calls.sh). GUARD_TORCH_MODES: modes, api by default. All processes run on the cores
# GUARD_TORCH_CORES. GUARD_TORCH_SETS sets of processes, GUARD_TORCH_ROUNDS turns of each model;
# GUARD_TORCH_SECONDS: for all turns of a mode. SECTION=FILE: writes the tables there instead of into
# doc/results.md, and those of the calls to FILE.calls.
set -eu
here=$(dirname "$0")
nvidia-smi -L >/dev/null 2>&1 || { echo 'guard-torch.sh: no GPU on this machine' >&2; exit 0; }
python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' 2>/dev/null ||
    { echo 'guard-torch.sh: no PyTorch on this machine' >&2; exit 0; }
cores=${GUARD_TORCH_CORES:-0-$(($(nproc) > 4 ? 3 : $(nproc) - 1))}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
models=resnet-fp32-512,resnet-bf16-512,transformer-fp32-256,transformer-bf16-256,
models+=resnet-fp32-16,resnet-bf16-16,transformer-fp32-8,transformer-bf16-8
taskset -cp "$cores" $$ >/dev/null
calls=-
if [ -x "$BUILD/bench/guard_calls" ]; then
    calls=$T/calls
    GUARD_BENCH_CALLS=$calls SECTION=${SECTION:-$T/section}.calls "$here/guard-calls.sh" >/dev/null
fi
{
    echo '## PyTorch under the guard'
    echo
    "$here/machine"
    echo "PyTorch $(python3 -c 'import importlib.metadata; print(importlib.metadata.version("torch"))')," \
        "on cores $cores. Steps end with a synchronisation."
    for mode in ${GUARD_TORCH_MODES:-api}; do
        echo
        python3 "$here/torch_compare.py" "$MOAT" "$models" "${GUARD_TORCH_SETS:-3}" \
            "${GUARD_TORCH_ROUNDS:-150}" "${GUARD_TORCH_SECONDS:-0}" "$calls" "$mode:--mode=$mode"
    done
} >"$T/section"
cat "$T/section"
if [ -n "${SECTION:-}" ]; then
    cp "$T/section" "$SECTION"
else
    [ "$calls" = - ] || "$here/section" guard-gpu <"$T/section.calls"
    "$here/section" guard-torch <"$T/section"
fi
