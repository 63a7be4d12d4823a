#!/bin/bash
# SPDX-License-Identifier: MIT
# Training steps of four models in PyTorch on a GPU, alone and with canaries, in turns; with PyTorch's pool of memory, which hides its
# pieces from moat, and without it, where each tensor is a buffer.
# SECTION=FILE: the table goes there instead of into doc/results.md. CANARY_TORCH_RUNS, CANARY_TORCH_STEPS.
set -eu
here=$(dirname "$0")
"$MOAT" --mode=canary --version >/dev/null 2>&1 || { echo 'canary-torch.sh: this moat has no --mode=canary' >&2; exit 0; }
nvidia-smi -L >/dev/null 2>&1 || { echo 'canary-torch.sh: no GPU on this machine' >&2; exit 0; }
python3 -c 'import torch' 2>/dev/null || { echo 'canary-torch.sh: no PyTorch on this machine' >&2; exit 0; }
RUNS=${CANARY_TORCH_RUNS:-5} STEPS=${CANARY_TORCH_STEPS:-150}
unset PYTORCH_NO_CUDA_MEMORY_CACHING
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/canary_programs
. "$here/canary_programs"

run() {  # run LABEL POOL STEPS COMMAND...
    local label=$1 pool=$2 steps=$3
    shift 3
    "$@" python3 "$here/canary_torch.py" "$steps" >"$T/out" 2>"$T/log" </dev/null ||
        { echo "canary-torch.sh: $label, $pool: $(tail -n 1 "$T/log")" >&2; return 0; }
    ! grep -q 'ERROR: moat' "$T/log" || echo "canary-torch.sh: $label, $pool: $(grep -m 1 'ERROR: moat' "$T/log")" >&2
    awk -v label="$label" -v pool="$pool" -v OFS='\t' '{ print label, $1 ", " pool, "work", $2 }' "$T/out" >>"$T/rows"
}

for ((i = 0; i < RUNS; i++)); do
    for scan in alone $(canary_programs_scans); do
        command=()
        # shellcheck disable=SC2207
        [ "$scan" = alone ] || command=("$MOAT" --device=gpu $(canary_programs_options "$scan"))
        run "$scan" pool "$STEPS" "${command[@]}"
        # Every tensor is allocated and freed by the driver: slow with and without moat.
        run "$scan" 'no pool' $((STEPS / 5 + 1)) env PYTORCH_NO_CUDA_MEMORY_CACHING=1 "${command[@]}"
    done
done
{
    echo '## PyTorch with canaries'
    echo
    "$here/machine"
    echo "PyTorch $(python3 -c 'import torch; print(torch.__version__)'), fp32, a training step; $RUNS runs of $STEPS steps, a fifth of that" \
        'without the pool, alone and with canaries in turns; `copy` is `--mode=canary` as it is, `managed` with `--canary-scan=managed`.'
    echo
    # shellcheck disable=SC2046
    python3 "$here/canary_table.py" "$T/rows" work ms alone $(canary_programs_scans)
} >"$T/section"
cat "$T/section"
if [ -n "${SECTION:-}" ]; then
    cp "$T/section" "$SECTION"
else
    "$here/section" canary-torch-gpu <"$T/section"
fi
