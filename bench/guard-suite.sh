#!/bin/bash
# SPDX-License-Identifier: MIT
# The suite's programs on a GPU: alone, watched, and with --mode=pages, in turns. All must be right and none
# may be reported. Programs that were built before are taken from $BUILD/cache/gpu-suite. SECTION=FILE: writes
# the table there instead of into doc/results.md.
set -eu
here=$(dirname "$0")
nvidia-smi -L >/dev/null 2>&1 || { echo 'guard-suite.sh: no GPU on this machine' >&2; exit 0; }
RUNS=${GUARD_SUITE_RUNS:-3}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cache=$BUILD/cache/gpu-suite
mkdir -p "$cache"
tsv=$here/../test/programs/programs.tsv
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
for name in $(tail -n +2 "$tsv" | cut -f 1); do
    [ -x "$cache/$name" ] || echo "$name"
done | xargs -r -P "$(nproc)" -I{} nvcc -O3 -gencode "arch=compute_$arch,code=[sm_$arch,compute_$arch]" \
    -o "$cache/{}" "$here/../test/programs/{}.cu"

run() {  # run LABEL NAME ARGS COMMAND...: a row LABEL NAME ms, or what went wrong
    local label=$1 name=$2 args=$3 start=${EPOCHREALTIME/./} status=0
    shift 3
    # shellcheck disable=SC2086
    timeout 120 "$@" "$cache/$name" $args >"$T/log" 2>&1 </dev/null || status=$?
    if [ $status = 77 ]; then
        echo "$label $name skipped" >>"$T/rows"
    elif [ $status != 0 ] || grep -q 'ERROR: moat' "$T/log"; then
        echo "$label $name status-$status" >>"$T/rows"
        echo "guard-suite.sh: $label $name: status $status: $(tail -n 1 "$T/log")" >&2
    else
        echo "$label $name $(((${EPOCHREALTIME/./} - start) / 1000))" >>"$T/rows"
    fi
}

for ((i = 0; i < RUNS; i++)); do
    while IFS=$'\t' read -r name _ small _; do
        run alone "$name" "$small"
        run api "$name" "$small" "$MOAT" --device=gpu
        run pages "$name" "$small" "$MOAT" --device=gpu --mode=pages
    done < <(tail -n +2 "$tsv")
done
{
    echo '## The suite under the guard, on a GPU'
    echo
    "$here/machine"
    echo "Wall time of the whole program, with the start of CUDA and of moat;" \
        "median of $RUNS runs in turns. Each program checks its own results."
    echo
    echo '| program | alone ms | watched | --mode=pages |'
    echo '| --- | --- | --- | --- |'
    awk '
        {
            key = $2 SUBSEP $1
            if (!($2 in seen)) { seen[$2] = 1; order[++names] = $2 }
            if ($3 ~ /^[0-9]/) v[key, ++n[key]] = $3; else word[key] = $3
        }
        function median(key,   i, j, x, a) {
            for (i = 1; i <= n[key]; i++) {
                x = v[key, i]; for (j = i - 1; j > 0 && a[j] > x; j--) a[j + 1] = a[j]; a[j + 1] = x }
            return a[int((n[key] + 1) / 2)]
        }
        function cell(name, label,   key) {
            key = name SUBSEP label
            if (key in word) { if (word[key] != "skipped") bad[label]++; return word[key] }
            right[label]++
            x = median(key); sum[label] += x; diff[label, ++d[label]] = x - median(name SUBSEP "alone")
            return x
        }
        function worst(label,   i, w) {
            w = -1e9; for (i = 1; i <= d[label]; i++) if (diff[label, i] > w) w = diff[label, i]; return w
        }
        function middle(label,   i, j, x, a) {
            for (i = 1; i <= d[label]; i++) {
                x = diff[label, i]; for (j = i - 1; j > 0 && a[j] > x; j--) a[j + 1] = a[j]; a[j + 1] = x }
            return a[int((d[label] + 1) / 2)]
        }
        END {
            for (k = 1; k <= names; k++)
                printf "| %s | %s | %s | %s |\n", order[k], cell(order[k], "alone"),
                    cell(order[k], "api"), cell(order[k], "pages")
            printf "| right | %d of %d | %d of %d | %d of %d |\n", right["alone"], names,
                right["api"], names, right["pages"], names
            printf "| added, average / median / worst ms | | %.0f / %.0f / %.0f | %.0f / %.0f / %.0f |\n",
                (sum["api"] - sum["alone"]) / d["api"], middle("api"), worst("api"),
                (sum["pages"] - sum["alone"]) / d["pages"], middle("pages"), worst("pages")
        }' "$T/rows"
} >"$T/section"
cat "$T/section"
"$here/finish" guard-suite-gpu "$T/section"
