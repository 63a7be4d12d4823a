#!/bin/bash
# SPDX-License-Identifier: MIT
# What the guard adds to calls of the driver API: bench/guard_calls.c without moat and with it, in turns.
# On a GPU where there is one, else on the CPU device. SECTION=FILE: the table goes there instead of into doc/results.md.
set -eu
here=$(dirname "$0")
RUNS=${GUARD_BENCH_RUNS:-15}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
calls=$BUILD/bench/guard_calls
device=cpu
! nvidia-smi -L >/dev/null 2>&1 || device=gpu

run() {  # run LABEL LIVE OPTION...: rows LABEL NAME NS
    local label=$1 live=$2
    shift 2
    "$MOAT" --device=$device "$@" "$calls" "$live" 2>"$T/log" | sed "s/^/$label /" >>"$T/rows" ||
        { cat "$T/log" >&2; exit 1; }
}

for ((i = 0; i < RUNS; i++)); do
    run off 0 --mode=off
    run bare 0 --mode=api --stack-depth=0
    run api 0 --mode=api
done
for ((i = 0; i < 3; i++)); do
    run off-100000 100000 --mode=off
    run bare-100000 100000 --mode=api --stack-depth=0
done

table() {  # table HEADING BASE LABEL: nanoseconds that LABEL adds to BASE
    echo
    echo "$1"
    echo
    echo '| call | without moat ns | average added ns | median | worst | 95% confidence |'
    echo '| --- | --- | --- | --- | --- | --- |'
    awk -v base="$2" -v label="$3" '
        $1 == base { plain[$2, ++n[$2]] = $3; sum[$2] += $3; if (!($2 in seen)) { seen[$2] = 1; order[++names] = $2 } }
        $1 == label { with[$2, ++m[$2]] = $3 }
        function abs(x) { return x < 0 ? -x : x }
        END {
            for (k = 1; k <= names; k++) {
                name = order[k]
                count = n[name] < m[name] ? n[name] : m[name]
                total = square = 0; worst = -1e99
                for (i = 1; i <= count; i++) {
                    d[i] = with[name, i] - plain[name, i]
                    total += d[i]; square += d[i] * d[i]
                    if (d[i] > worst) worst = d[i]
                }
                for (i = 2; i <= count; i++) { x = d[i]; for (j = i - 1; j > 0 && d[j] > x; j--) d[j + 1] = d[j]; d[j + 1] = x }
                mean = total / count
                deviation = count > 1 ? sqrt(abs(square - total * mean) / (count - 1)) : 0
                t = count >= 15 ? 2.14 : count >= 5 ? 2.78 : 4.30
                printf "| %s | %.0f | %.0f | %.0f | %.0f | %.0f to %.0f |\n", name, sum[name] / n[name], mean,
                    d[int((count + 1) / 2)], worst, mean - t * deviation / sqrt(count), mean + t * deviation / sqrt(count)
            }
        }' "$T/rows"
}
{
    echo '## What the guard adds to a call'
    echo
    "$here/machine"
    echo "On $([ $device = gpu ] && echo 'the GPU' || echo 'the CPU device'), \`--mode=api\`, $RUNS runs without and with in turns;" \
        'each run gives the median of 60 batches of 400 calls. An allocation and its free are two calls.'
    table 'Without call stacks (`--stack-depth=0`):' off bare
    table 'With stacks of up to 16 frames, the default:' off api
    table 'Without call stacks, 100,000 buffers alive:' off-100000 bare-100000
} >"$T/section"
cat "$T/section"
if [ -n "${SECTION:-}" ]; then
    cp "$T/section" "$SECTION"
else
    "$here/section" "guard-$device" <"$T/section"
fi
