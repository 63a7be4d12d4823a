#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=shadow costs kernels: small ones (shadow_kernels.cu), as the driver compiles their PTX,
# under --mode=check, and under --mode=shadow by encoding, with the load of the shadow and without, with
# proofs and without. SHADOW_ROUNDS rounds in turns, the least time of each; before them what a small program
# takes from its start to its end, and of that the shadow, and the driver's calls that make one
# (shadow_start.c). GPU_SECONDS: no run is begun after so many. GPU_ROWS keeps what was
# measured. SECTION=FILE: the tables go there instead of into doc/results.md, and the plot beside it.
# DEVICE=cpu SHADOW_SHIFT=12 tries the script where there is no GPU; then nothing is written into doc/.
set -u
here=$(dirname "$0")
DEVICE=${DEVICE:-gpu} ROUNDS=${SHADOW_ROUNDS:-3}
[ "$DEVICE" = cpu ] || nvidia-smi -L >/dev/null 2>&1 ||
    { echo 'shadow-gpu.sh: no GPU on this machine' >&2; exit 0; }
command -v nvcc >/dev/null || { echo 'shadow-gpu.sh: no nvcc on this machine' >&2; exit 0; }
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=${GPU_CACHE:-$T/cache}
rows=${GPU_ROWS:-$T}/shadow-gpu-$("$here/rows-key")
mkdir -p "${rows%/*}"
touch "$rows" "$rows.starts"
nvcc -O3 -std=c++17 -gencode arch=compute_80,code=compute_80 -cudart shared -L"$BUILD/lib/moat" \
    -o "$T/kernels" "$here/shadow_kernels.cu" || exit 1

limit() {  # limit: seconds for a run
    local rest=$((${GPU_SECONDS:-100000} - SECONDS))
    echo $((rest > 100 ? 100 : rest > 1 ? rest : 1))
}

start() {  # start OPTION...: a small program, from its start to its end
    local from making
    from=$(date +%s%N)
    timeout "$(limit)" "$MOAT" --device="$DEVICE" "$@" "$T/kernels" 1 12 >"$T/log" 2>&1 </dev/null
    from=$((($(date +%s%N) - from) / 1000000))
    making=$(sed -n 's/^ *nanoseconds that making the shadow took.*  //p' "$T/log" | tr -d ,)
    echo "$*: $from ms${making:+, of these $((making / 1000000)) for the shadow}" \
        "$(grep -o 'no table of buffers.*' "$T/log")"
}

# run LABEL OPTION...: lines LABEL NAME MICROSECONDS, and one that names the round, which is not run again
run() {
    local label=$1
    shift
    ! grep -q "^round $i $label\$" "$rows" || return 0
    [ $SECONDS -lt "${GPU_SECONDS:-100000}" ] || return 0
    if ! timeout "$(limit)" "$MOAT" --device="$DEVICE" "$@" \
        "$T/kernels" "${SHADOW_REPEATS:-10}" "${SHADOW_SHIFT:-0}" \
        >"$T/out" 2>"$T/err" </dev/null; then
        echo "$label failed: $(grep -m 1 'ERROR\|moat:' "$T/err") $(tail -n 1 "$T/out")" >&2
        return
    fi
    ! grep -q 'ERROR: moat\|not checked' "$T/err" || grep -m 1 'ERROR: moat\|not checked' "$T/err" >&2
    # Kernels that are not checked say nothing about checks.
    ! grep -q 'contexts and modules without a table of buffers' "$T/err" || return 0
    { sed "s/^/$label /" "$T/out"; echo "round $i $label"; } >>"$rows"
}

if [ ! -s "$rows.starts" ]; then
    {
        start --mode=off
        start --mode=check
        start --mode=check
        start --mode=shadow
        start --mode=shadow
        start --mode=shadow --shadow-scale=128
        [ "$DEVICE" = cpu ] || start --mode=shadow --shadow-scale=8
        echo
        echo 'MiB of a handle; milliseconds for making it, and mapping it to 2^40 bytes of addresses:'
        if [ "$DEVICE" = cpu ]; then
            "$MOAT" --device=cpu --mode=off "$BUILD/bench/shadow_start" 36 256
        else
            timeout "$(limit)" "$BUILD/bench/shadow_start"
        fi 2>&1
    } >"$T/starts"
    cp "$T/starts" "$rows.starts"
fi

for ((i = 0; i < ROUNDS; i++)); do
    run native --mode=off
    run check --mode=check
    run check-noproofs --mode=check --proofs=off
    run shadow --mode=shadow
    run shadow-noproofs --mode=shadow --proofs=off
    for scale in 256 128 8; do
        [ "$DEVICE/$scale" != cpu/8 ] || continue
        run "$scale" --mode=shadow --proofs=off --shadow-roots=no --shadow-scale=$scale
        run "$scale-unloaded" --mode=shadow --proofs=off --shadow-scale=$scale --shadow-load=no
    done
done
table() {  # table PATTERN: ratios of the kernels of such names, and their geometric mean, to $T/means too
    awk -v pattern="$1" -v means="$T/means" '
        $1 == "round" || $2 !~ pattern { next }
        {
            key = $1 SUBSEP $2; if (!($1 in labels)) { labels[$1]; label[++nl] = $1 }
            if (!($2 in names)) { names[$2]; name[++nn] = $2 }
            if (!(key in least) || $3 < least[key]) least[key] = $3
        }
        END {
            printf "| kernel | native us |"; for (l = 2; l <= nl; l++) printf " %s |", label[l]; print ""
            printf "| --- | ---: |"; for (l = 2; l <= nl; l++) printf " ---: |"; print ""
            for (n = 1; n <= nn; n++) {
                base = least["native", name[n]]
                printf "| %s | %.1f |", name[n], base
                for (l = 2; l <= nl; l++) {
                    v = least[label[l], name[n]]
                    if (v > 0 && base > 0) {
                        printf " %.3f |", v / base
                        sum[l] += log(v / base)
                        count[l]++
                        print label[l], name[n], v / base >>means
                    } else printf " |"
                }
                print ""
            }
            printf "| geometric mean | |"
            for (l = 2; l <= nl; l++) if (count[l]) {
                printf " %.3f |", exp(sum[l] / count[l])
                print label[l], "mean", exp(sum[l] / count[l]) >>means
            } else printf " |"
            print ""
        }' "$rows"
}
[ -s "$rows" ] || { echo 'shadow-gpu.sh: nothing was measured' >&2; exit 1; }
{
    echo '## Small kernels under --mode=shadow on a GPU'
    echo
    "$here/machine"
    echo
    echo 'A small program, from its start to its end; the first time its kernels are compiled, unless the' \
        'cache has them:'
    echo
    echo '```'
    cat "$rows.starts"
    echo '```'
    echo
    echo 'Eight kernels, in microseconds as the driver compiles their PTX, and ratios to it: under' \
        '`--mode=check`, and under `--mode=shadow` with proofs and without; then with' \
        '`--shadow-roots=no`, by the bytes of memory that a byte of the shadow describes, with its load and' \
        'without;' \
        "$(grep -c '^round .* native$' "$rows") rounds."
    echo
    table '^[^_]*(_naive|_tiled)?$'
    echo
    echo 'The same for kernels that read from one level of the memory, as fast as they can or each address' \
        'from the one before:'
    echo
    table '^(l1|l2|mem)_'
    echo
    echo '![time by encoding](shadow-gpu.svg)'
} >"$T/section"
cat "$T/section"
# Over the bytes that a byte describes: means of the eight kernels, and the levels.
svg=${SECTION:+$(dirname "$SECTION")}
svg=${svg:-$here/../doc}/shadow-gpu.svg
[ "$DEVICE" = gpu ] || [ -n "${SECTION:-}" ] || svg=/dev/null
if [ -s "$T/means" ]; then
    awk -v OFS='\t' '
        { scale = $1; way = sub(/-unloaded$/, "", scale) ? "not loaded" : "loaded" }
        scale !~ /^(256|128|8)$/ { next }
        $2 == "mean" && !(($1, "mean") in seen) { seen[$1, "mean"]; print "eight kernels, " way, scale, $3 }
        $2 ~ /^(l1|l2|mem)_lat$/ { sub(/_lat/, "", $2); print $2 " latency, " way, scale, $3 }
    ' "$T/means" | python3 "$here/canary_plot.py" 'Time under --mode=shadow without proofs' \
        'bytes of memory for a byte of the shadow' 'times native' >"$svg"
fi
[ "$DEVICE" = cpu ] && [ -z "${SECTION:-}" ] || "$here/finish" shadow-gpu "$T/section"
