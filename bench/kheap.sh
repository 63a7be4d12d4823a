#!/bin/bash
# SPDX-License-Identifier: MIT
# malloc and free inside kernels: the programs of bench/kheap_kernels.cu with CUDA's own heap, unprotected,
# and with ours and its canaries, in turns; how much the number of byte arrays matters; how long a scan takes,
# and how long it takes to find an overflow. On a GPU: the CPU device's own malloc costs next to nothing, so
# there is nothing to compare with. KHEAP_CPU=1: nevertheless. SECTION=FILE: writes the table there instead of
# into doc/results.md, and the drawing, kheap.svg, beside it instead of into doc/. KHEAP_RUNS, KHEAP_THREADS,
# KHEAP_ARRAYS, KHEAP_MIB; KHEAP_PTX=FILE: the kernels, compiled before. KHEAP_KEEP=FILE: results go there
# too; KHEAP_ROWS=FILE: the tables are made from such a file, and KHEAP_MACHINE says where it is from.
# KHEAP_ROUTE=direct: test/cpu/kheap_load.c itself puts ours into the module, with a scan every millisecond;
# moat: `moat --mode=canary` does, as for users.
set -eu
here=$(dirname "$0")
svg=$(dirname "${SECTION:-$here/../doc/.}")/kheap.svg
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
route=${KHEAP_ROUTE:-direct} runs=${KHEAP_RUNS:-3} ptx=${KHEAP_PTX:-$T/kernels.ptx}
device=cpu threads=${KHEAP_THREADS:-1024 16384} mib=${KHEAP_MIB:-64}
if [ -n "${KHEAP_ROWS:-}" ] || nvidia-smi -L >/dev/null 2>&1; then
    device=gpu threads=${KHEAP_THREADS:-1024 4096 16384 65536 262144 1048576} mib=${KHEAP_MIB:-1024}
elif [ -z "${KHEAP_CPU:-}" ]; then
    echo 'kheap.sh: no GPU on this machine' >&2
    exit 0
fi
load=$BUILD/tool/kheap_load

run() {  # run LABEL HEAP ARRAYS PROGRAM:THREADS...
    local label=$1 heap=$2 arrays=$3 with=("$MOAT" --device="$device" --mode=off)
    shift 3
    [ "$device" = cpu ] || with=()
    [ "$heap" = cuda ] || [ "$route" = direct ] ||
        { heap=cuda with=("$MOAT" --device="$device" --mode=canary --kheap-arrays="$arrays"); }
    "${with[@]}" "$load" "$heap" "$ptx" "$mib" "$runs" "$arrays" "$@" >"$T/out" 2>"$T/log" </dev/null ||
        { echo "kheap.sh: $label: $(tail -n 1 "$T/log")" >&2; return 0; }
    awk -v label="$label" -v OFS='\t' 'NF >= 3 && $3 + 0 > 0 { print label, $1, $2, $3 }' "$T/out" >>"$T/rows"
}

compile() {
    if [ -z "${KHEAP_PTX:-}" ]; then
        if command -v nvcc >/dev/null; then
            nvcc -ptx -arch=compute_75 -o "$ptx" "$here/kheap_kernels.cu" 2>/dev/null
        else
            (cd "$here/.." && test/clang/ptx bench/kheap_kernels.cu sm_75 -O2) >"$ptx" ||
                { echo 'kheap.sh: no compiler for CUDA' >&2; exit 0; }
        fi
    fi
}

measure() {
    local all=() alone=() counts most arrays n p
    for n in $threads; do
        for p in alloc-dealloc alloc-cycle-dealloc grid-point add-string random-graph; do
            all+=("$p:$n")
        done
        alone+=("malloc-16:$n" "malloc-256:$n")
    done
    for p in "${all[@]}" "${alone[@]}"; do
        run cuda cuda 32 "$p"
        run ours ours 32 "$p"
    done
    read -ra counts <<<"$threads"
    most=${counts[-1]}
    for arrays in ${KHEAP_ARRAYS:-32 64 96 128}; do
        run "arrays $arrays" ours "$arrays" "alloc-dealloc:$most" "alloc-cycle-dealloc:$most" \
            "random-graph:$most" "malloc-16:$most"
    done
    if [ "$route" = direct ]; then
        for n in $threads; do
            run latency ours 32 "latency:$n"
        done
    fi
}

if [ -n "${KHEAP_ROWS:-}" ]; then
    cp "$KHEAP_ROWS" "$T/rows"
else
    compile
    measure
fi
[ -s "$T/rows" ] || { echo 'kheap.sh: nothing measured' >&2; exit 1; }
[ -z "${KHEAP_KEEP:-}" ] || cp "$T/rows" "$KHEAP_KEEP"
{
    echo '## malloc and free inside kernels'
    echo
    echo "${KHEAP_MACHINE:-$("$here/machine")}"
    echo "On $([ $device = gpu ] && echo 'the GPU' || echo 'the CPU device'), $mib MiB of heap," \
        "median of $runs runs, time on the device." \
        "\"CUDA\" is the driver's heap without protection, \"moat\" ours with canaries," \
        "$([ "$route" = direct ] && echo 'put into the module directly and scanned every millisecond' ||
            echo 'under `moat --mode=canary`')." \
        "Drawn in \`$(basename "$svg")\`."
    echo
    python3 "$here/kheap_table.py" "$T/rows" "$T/points"
} >"$T/section"
cat "$T/section"
python3 "$here/canary_plot.py" 'Times as fast as CUDA, with protection' 'threads' \
    'times as fast' <"$T/points" >"$svg"
"$here/finish" "kheap-$device" "$T/section"
