#!/bin/bash
# SPDX-License-Identifier: MIT
# Training steps of four models in PyTorch on a GPU, alone and with canaries, in turns
# (bench/torch_compare.py); with PyTorch's memory pool, which hides its pieces from moat, and without it,
# where each tensor is a buffer. SECTION=FILE: writes the tables there instead of into doc/results.md.
# CANARY_TORCH_SETS of processes, CANARY_TORCH_ROUNDS turns of each model; CANARY_SECONDS: for all of it.
# CANARY_ROWS: a folder in which results are kept as they come; those there already count, if they are of the
# same build and GPU (rows-key).
set -eu
here=$(dirname "$0")
"$MOAT" --mode=canary --version >/dev/null 2>&1 ||
    { echo 'canary-torch.sh: this moat has no --mode=canary' >&2; exit 0; }
nvidia-smi -L >/dev/null 2>&1 || { echo 'canary-torch.sh: no GPU on this machine' >&2; exit 0; }
python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' 2>/dev/null ||
    { echo 'canary-torch.sh: no PyTorch on this machine' >&2; exit 0; }
SETS=${CANARY_TORCH_SETS:-2} ROUNDS=${CANARY_TORCH_ROUNDS:-150}
# Each part imports PyTorch and starts CUDA, which takes time too.
seconds=$((${CANARY_SECONDS:-0} * 3 / 10))
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
rows=${CANARY_ROWS:-$T} key=$("$here/rows-key")
mkdir -p "$rows"
failed=0 tried=0
# shellcheck source=bench/canary_programs
. "$here/canary_programs"

# With many examples in a batch the GPU bounds a step, as in practice; with few, the launches do.
models=resnet-fp32-512,transformer-fp32-512,mlp-fp32-2048,lstm-fp32-4096/
models+=resnet-fp32-64,transformer-fp32-32,mlp-fp32-512,lstm-fp32-64

measure() {  # measure WAY SETS ROUNDS [ANOTHER]: with PyTorch's pool and without
    local pool
    for pool in pool 'no pool'; do
        [ -z "$canary_programs_over" ] || return 0
        tried=$((tried + 1))
        unset PYTORCH_NO_CUDA_MEMORY_CACHING
        [ "$pool" = pool ] || export PYTORCH_NO_CUDA_MEMORY_CACHING=1
        echo
        echo "PyTorch's own pool of memory $([ "$pool" = pool ] && echo 'as it is' || echo 'off'):"
        canary_programs_step env TORCH_COMPARE_ROWS="$rows/canary-torch-$1-${pool/ /-}-$key.json" \
            python3 "$here/torch_compare.py" "$MOAT" $models "$2" "$3" $seconds - \
                "$1, $pool:$(canary_programs_options "$1")" ${4:+"$4"} ||
            { printf '\nNot all of it was measured.\n'; failed=$((failed + 1)); }
    done
}

{
    echo '## PyTorch with canaries'
    echo
    "$here/machine"
    echo "PyTorch $(python3 -c 'import importlib.metadata; print(importlib.metadata.version("torch"))')," \
        "fp32; steps end with a synchronisation." \
        '`copy` is `--mode=canary` as it is, `managed` with `--canary-scan=managed`,' \
        '`nothing` a second process without moat: how far it is from the first.' \
        '`copy` is compared with the mean of both.'
    # The way to compare with takes ten times as long without a pool: it comes last, a few times, if there is
    # time.
    measure copy "$SETS" "$ROUNDS" 'nothing:'
    [ -n "${CANARY_SECONDS:-}" ] && [ $SECONDS -ge $((CANARY_SECONDS * 4 / 5)) ] || measure managed 1 3
} >"$T/section"
[ $failed -lt $tried ] || exit 1
cat "$T/section"
"$here/finish" canary-torch-gpu "$T/section"
[ $failed = 0 ]
