#!/bin/bash
# SPDX-License-Identifier: MIT
# What redzones and shadow take of memory: the allocations of each program of the suite, written down once
# (shadow_trace.c) and repeated with all sizes multiplied so that they come to SHADOW_BYTES (4 GiB), alone
# and under --mode=shadow, for redzones of L percent and at least B bytes; and beside it what GASan's paper
# simulates for the same trace (shadow_memory.py). On a GPU if there is one, otherwise on the CPU device.
# shadow-memory.sh [NAME...]: all programs, or these. SECTION=FILE: the tables go there instead of into
# doc/results.md, and the drawing beside it instead of into doc/. SHADOW_TRACES=FOLDER: traces of other
# programs have a table of their own, by the names of their files, with the sizes that they have.
# SHADOW_PAIRS: pairs of L and B. GPU_SECONDS: no program is begun after so many.
#
# shadow-memory.sh --trace FILE COMMAND...: writes the trace of a program with a shared runtime, as PyTorch's.
set -eu
here=$(dirname "$0")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
gcc -shared -fPIC -O1 -o "$T/trace.so" "$here/shadow_trace.c" -ldl
if [ "${1:-}" = --trace ]; then
    SHADOW_TRACE=$2 LD_PRELOAD=$T/trace.so${LD_PRELOAD:+:$LD_PRELOAD} "${@:3}"
    exit
fi
command -v nvcc >/dev/null || { echo 'shadow-memory.sh: no nvcc on this machine' >&2; exit 0; }
device=cpu
! nvidia-smi -L >/dev/null 2>&1 || device=gpu
PAIRS=${SHADOW_PAIRS:-10,256 50,256 100,256 10,65536 50,65536 10,1048576}
WANTED=${SHADOW_BYTES:-$((4 << 30))}
export XDG_CACHE_HOME=$T/cache

trace() {  # trace NAME: its allocations, with small arguments, to $T/NAME
    local name=$1 sm args file
    IFS=$'\t' read -r _ sm args _ < <(grep "^$name	" test/programs/programs.tsv)
    file=$(test/programs/object "$name" "$sm") &&
        nvcc -cudart shared -L"$BUILD/lib/moat" "$file" -o "$T/program" || return 1
    # shellcheck disable=SC2086
    timeout 200 "$MOAT" --device=$device --mode=off env SHADOW_TRACE="$T/$name" LD_PRELOAD="$T/trace.so" \
        "$T/program" $args >/dev/null 2>&1 </dev/null
}

replay() {  # replay NAME FACTOR OPTION...: $peak and $taken, and $shadow and $shared by moat's own count
    local name=$1 factor=$2
    shift 2
    timeout 100 "$MOAT" --device=$device "$@" "$BUILD/bench/shadow_replay" "$T/$name" "$factor" \
        >"$T/out" 2>"$T/err" </dev/null || { grep -m 3 . "$T/err" >&2; return 1; }
    read -r peak taken <"$T/out"
    shadow=$(sed -n 's/^ *bytes of shadow in a context *//p' "$T/err" | tr -d ,)
    shared=$(sed -n 's/^ *of these zeros and poison .*  //p' "$T/err" | tr -d ,)
}

# What a context takes without buffers: $fixed bytes that are no shadow, $fixed_shadow, and $shared.
empty() {
    : >"$T/empty"
    replay empty 1 --mode=off || return 1
    fixed=$taken
    replay empty 1 --mode=shadow || return 1
    fixed=$((taken - shadow - fixed)) fixed_shadow=$((shadow - shared))
}

# row NAME FACTOR: NAME PEAK, and for each pair what is simulated, and what was measured
row() {
    local name=$1 factor=$2 alone line pair simulated
    replay "$name" "$factor" --mode=off || return 0
    alone=$taken line="$name $peak"
    for pair in $PAIRS; do
        simulated=$(python3 "$here/shadow_memory.py" "$T/$name" "${pair%,*}" "${pair#*,}" "$factor" |
            cut -d ' ' -f 2,3)
        replay "$name" "$factor" --mode=shadow --shadow-redzone="${pair%,*}" \
            --shadow-redzone-least="${pair#*,}" || return 0
        # What a context takes in any case is not for what is allocated.
        line+=" $simulated $((taken - alone - shadow - fixed)) $((shadow - shared - fixed_shadow))"
    done
    echo "$line"
}

multiplied() {  # multiplied NAME: its row, with as much memory as all other programs
    local peak
    read -r peak _ < <(python3 "$here/shadow_memory.py" "$T/$1" 10 256 1)
    [ "$peak" = 0 ] || row "$1" $(((WANTED + peak - 1) / peak))
}

left() { [ $SECONDS -lt "${GPU_SECONDS:-100000}" ]; }

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 test/programs/programs.tsv | cut -f 1 | grep -v 'cub\|thrust')
empty || exit 1
for file in ${SHADOW_TRACES:+"$SHADOW_TRACES"/*}; do
    left || break
    cp "$file" "$T/$(basename "$file")"
    row "$(basename "$file")" 1
done >"$T/others"
for name in "${names[@]}"; do
    left || break
    trace "$name" && [ -s "$T/$name" ] && multiplied "$name"
done >"$T/rows"
count=$(wc -l <"$T/rows")
[ "$count" != 0 ] || { echo 'shadow-memory.sh: nothing was measured' >&2; exit 1; }
python3 "$here/shadow_memory.py" --table "$PAIRS" <"$T/rows" >"$T/table" 2>"$T/points"
{
    echo '## Memory of --mode=shadow'
    echo
    "$here/machine"
    echo "Allocations of $count programs of the suite, all sizes multiplied so that a program has" \
        "$((WANTED >> 20)) MiB at most, repeated on" \
        "$([ $device = gpu ] && echo 'the GPU' || echo 'the CPU device')." \
        'Percent of that, for redzones of' \
        'so many percent of a buffer and at least 256 bytes: memory of redzones and rounding, and of' \
        'the shadow (a byte for 256). `simulated` is the way of the GASan paper for the same allocations;' \
        '`moat` is how much less memory was free than alone. Redzones of buffers from 1 MiB on are' \
        'addresses without memory, but have' \
        "a shadow. Besides, each context has $((shared >> 20)) MiB of zeros and poison that all shadows" \
        "share, and $(((fixed + fixed_shadow) >> 20)) MiB of tables, whatever is allocated."
    echo
    cat "$T/table"
    echo
    echo 'Means of all of them for redzones of L percent and at least B bytes:'
    echo
    python3 "$here/shadow_memory.py" --pairs "$PAIRS" <"$T/rows"
    if [ -s "$T/others" ]; then
        echo
        echo 'Other programs, with the sizes that they have:'
        echo
        python3 "$here/shadow_memory.py" --table "$PAIRS" <"$T/others" 2>/dev/null
    fi
    echo
    echo '![memory of redzones and of the shadow](shadow-memory.svg)'
} >"$T/section"
svg=$(dirname "${SECTION:-$here/../doc/.}")/shadow-memory.svg
python3 "$here/canary_plot.py" 'Memory of redzones and of the shadow' 'redzone, percent of a buffer' \
    'percent of what is allocated, mean' <"$T/points" >"$svg"
cat "$T/section"
"$here/finish" shadow-memory "$T/section"
