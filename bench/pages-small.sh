#!/bin/bash
# SPDX-License-Identifier: MIT
# What random reads over many buffers of 4 KiB cost without moat, under --mode=pages, and with each buffer at
# addresses of its own (--pages-small=apart), in turns: bench/pages_small.c. Only on a GPU: the CPU device has
# no TLB of a GPU. SECTION=FILE: the table goes there instead of into doc/results.md.
set -eu
here=$(dirname "$0")
nvidia-smi -L >/dev/null 2>&1 || { echo 'pages-small.sh: no GPU on this machine'; exit 77; }
RUNS=${PAGES_SMALL_RUNS:-5} COUNTS='16 64 96 128 192 256 384 512 1024 4096'
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT

run() {  # run LABEL OPTION...
    local label=$1
    shift
    # shellcheck disable=SC2086
    "$MOAT" --device=gpu "$@" "$BUILD/bench/pages_small" $COUNTS 2>"$T/log" </dev/null |
        sed "s/^/$label /" >>"$T/rows" || cat "$T/log" >&2
}

for ((i = 0; i < RUNS; i++)); do
    run alone --mode=off
    run pages --mode=pages
    run apart --mode=pages --pages-small=apart
done
{
    echo '## Small buffers in pages mode'
    echo
    "$here/machine"
    echo "Random reads, each of which waits for the one before, over buffers of 4 KiB; nanoseconds" \
        "of a read, average, median and worst of $RUNS processes that take turns with those of the" \
        "other columns."
    echo
    echo '| buffers | without moat | `--mode=pages` | `--pages-small=apart` | apart, times |'
    echo '| ---: | ---: | ---: | ---: | ---: |'
    awk '
        { key = $2 " " $1; v[key, ++n[key]] = $3; if (!($2 in seen)) { seen[$2] = 1; order[++counts] = $2 } }
        function figures(key,   i, j, t, sum) {
            for (i = 1; i <= n[key]; i++)
                for (j = i + 1; j <= n[key]; j++)
                    if (v[key, j] < v[key, i]) { t = v[key, i]; v[key, i] = v[key, j]; v[key, j] = t }
            sum = 0
            for (i = 1; i <= n[key]; i++) sum += v[key, i]
            median[key] = v[key, int((n[key] + 1) / 2)]
            return sprintf("%.0f, %.0f, %.0f", sum / n[key], median[key], v[key, n[key]])
        }
        END {
            for (c = 1; c <= counts; c++) {
                k = order[c]
                a = figures(k " alone"); p = figures(k " pages"); s = figures(k " apart")
                printf "| %s | %s | %s | %s | %.2f |\n", k, a, p, s, median[k " apart"] / median[k " alone"]
            }
        }' "$T/rows"
} >"$T/section"
cat "$T/section"
"$here/finish" pages-small-gpu "$T/section"
