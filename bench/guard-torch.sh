#!/bin/bash
# SPDX-License-Identifier: MIT
# PyTorch training steps on a GPU, alone and watched, in turns. GUARD_TORCH_MODES: further modes.
# SECTION=FILE: the table goes there instead of into doc/results.md.
set -eu
here=$(dirname "$0")
nvidia-smi -L >/dev/null 2>&1 || { echo 'guard-torch.sh: no GPU on this machine' >&2; exit 0; }
python3 -c 'import torch' 2>/dev/null || { echo 'guard-torch.sh: no PyTorch on this machine' >&2; exit 0; }
RUNS=${GUARD_TORCH_RUNS:-5} STEPS=${GUARD_TORCH_STEPS:-150}
read -ra modes <<<"api ${GUARD_TORCH_MODES:-}"
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
for ((i = 0; i < RUNS; i++)); do
    python3 "$here/torch_step.py" "$STEPS" | sed 's/^/alone /' >>"$T/rows"
    for mode in "${modes[@]}"; do
        "$MOAT" --device=gpu --mode="$mode" python3 "$here/torch_step.py" "$STEPS" 2>"$T/log" | sed "s/^/$mode /" >>"$T/rows" ||
            { tail -n 5 "$T/log" >&2; exit 1; }
    done
done
{
    echo '## PyTorch under the guard'
    echo
    "$here/machine"
    echo "PyTorch $(python3 -c 'import torch; print(torch.__version__)'), $RUNS runs of $STEPS steps each, alone and watched in turns."
    for mode in "${modes[@]}"; do
        echo
        echo "\`--mode=$mode\`:"
        echo
        echo '| step | alone ms | added, average | median | worst | 95% confidence |'
        echo '| --- | --- | --- | --- | --- | --- |'
        awk -v mode="$mode" '
            $1 == "alone" { plain[$2, ++n[$2]] = $3; sum[$2] += $3; if (!($2 in seen)) { seen[$2] = 1; order[++names] = $2 } }
            $1 == mode { with[$2, ++m[$2]] = $3 }
            END {
                for (k = 1; k <= names; k++) {
                    name = order[k]; count = m[name]; total = square = 0; worst = -1e99
                    for (i = 1; i <= count; i++) {
                        d[i] = (with[name, i] / plain[name, i] - 1) * 100
                        total += d[i]; square += d[i] * d[i]; if (d[i] > worst) worst = d[i]
                    }
                    for (i = 2; i <= count; i++) { x = d[i]; for (j = i - 1; j > 0 && d[j] > x; j--) d[j + 1] = d[j]; d[j + 1] = x }
                    mean = total / count
                    half = count > 1 ? (count >= 10 ? 2.26 : count >= 5 ? 2.78 : 4.30) * sqrt((square - total * mean) / (count - 1) / count) : 0
                    printf "| %s | %.3f | %+.2f%% | %+.2f%% | %+.2f%% | %+.2f%% to %+.2f%% |\n", name, sum[name] / n[name] * 1000, mean,
                        d[int((count + 1) / 2)], worst, mean - half, mean + half
                }
            }' "$T/rows"
    done
} >"$T/section"
cat "$T/section"
if [ -n "${SECTION:-}" ]; then
    cp "$T/section" "$SECTION"
else
    "$here/section" guard-torch <"$T/section"
fi
