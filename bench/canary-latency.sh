#!/bin/bash
# SPDX-License-Identifier: MIT
# From the write behind a buffer to its report, on a busy device: bench/canary_latency.c under --mode=canary,
# by number of buffers, with both ways to scan. On a GPU if there is one, otherwise on the CPU device.
# SECTION=FILE: writes the table there instead of into doc/results.md, and the drawing beside it instead of
# into doc/: canary-latency.svg, for the CPU device canary-latency-cpu.svg. CANARY_LATENCY_ROUNDS: writes for
# each number of buffers; CANARY_LATENCY_LIVE: numbers of buffers; CANARY_LATENCY_SCANS: copy and managed;
# CANARY_SECONDS: see canary_programs.
set -eu
here=$(dirname "$0")
"$MOAT" --mode=canary --version >/dev/null 2>&1 ||
    { echo 'canary-latency.sh: this moat has no --mode=canary' >&2; exit 0; }
ROUNDS=${CANARY_LATENCY_ROUNDS:-500}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/canary_programs
. "$here/canary_programs"
device=cpu blocks=1
! nvidia-smi -L >/dev/null 2>&1 || device=gpu blocks=0
svg=$(dirname "${SECTION:-$here/../doc/.}")/canary-latency$([ $device = gpu ] || echo -cpu).svg

read -ra scans <<<"${CANARY_LATENCY_SCANS:-$(canary_programs_scans | paste -sd " ")}"
# The most important numbers come first.
read -ra lives <<<"${CANARY_LATENCY_LIVE:-1000 100000 10000 600 3000 30000}"
for scan in "${scans[@]}"; do
    for live in "${lives[@]}"; do
        canary_programs_left 100 || break 2
        rm -f "$T/log"
        # shellcheck disable=SC2046
        canary_programs_step "$MOAT" --device=$device $(canary_programs_options "$scan") --print-limit=0 \
            --error-exitcode=0 --log-file="$T/log" \
            "$BUILD/bench/canary_latency" "$live" "$ROUNDS" "$T/log" $blocks >"$T/out" \
            2>"$T/errors" </dev/null ||
            echo "canary-latency.sh: $scan, $live buffers: $(tail -n 1 "$T/errors")" >&2
        awk -v scan="$scan" -v live="$live" '$1 == "round" && NF == 3 { print scan "\t" live "\t" $3 }' \
            "$T/out" >>"$T/rows"
    done
done
[ -s "$T/rows" ] || { echo 'canary-latency.sh: nothing measured' >&2; exit 1; }

# Milliseconds for each number of buffers, sorted; lost reports are counted.
sort -t $'\t' -k1,1 -k2,2n -k3,3g "$T/rows" | awk -F '\t' -v svg="$T/points" '
    function put(   i, sum, square, mean, half) {
        if (!n)
            return
        for (i = 1; i <= n; i++) { sum += v[i]; square += v[i] * v[i] }
        mean = sum / n
        half = n > 1 ? 1.96 * sqrt((square > sum * mean ? square - sum * mean : 0) / (n - 1) / n) : 0
        printf "| %s | %d | %.2f | %.2f | %.2f | %.2f | %.2f to %.2f | %d of %d |\n",
            scan, live, v[int((n + 1) / 2)],
            v[int(n * 0.99 + 0.999)], mean, v[n], mean - half, mean + half, n, n + lost
        printf "%s, half of them\t%d\t%.4f\n%s, 99 of 100\t%d\t%.4f\n",
            scan, live, v[int((n + 1) / 2)], scan, live, v[int(n * 0.99 + 0.999)] >svg
    }
    $1 != scan || $2 != live { put(); n = lost = 0; scan = $1; live = $2 }
    $3 == "lost" { lost++; next }
    { v[++n] = $3 }
    END { put() }' >"$T/table"
{
    echo '## From the write to the report'
    echo
    "$here/machine"
    echo "On $([ $device = gpu ] && echo 'the GPU, which one kernel keeps full' || echo 'the CPU device'):" \
        "a byte is written behind one of the" \
        "buffers, up to $ROUNDS times, each time behind another; milliseconds from then" \
        "until the report stands in the log file. " \
        "Drawn in \`$(basename "$svg")\`."
    echo
    echo '| scan | buffers | p50 ms | p99 ms | average | worst | 95% confidence of the average | reported |'
    echo '| --- | --- | --- | --- | --- | --- | --- | --- |'
    cat "$T/table"
} >"$T/section"
cat "$T/section"
python3 "$here/canary_plot.py" 'From the write to the report' 'live buffers' \
    'milliseconds' <"$T/points" >"$svg"
"$here/finish" "canary-latency-$device" "$T/section"
