#!/bin/bash
# SPDX-License-Identifier: MIT
# What redzones and shadow take of memory: the allocations of each program of the suite, written down once
# (shadow_trace.c) and repeated with all sizes multiplied so that they come to SHADOW_BYTES (4 GiB), alone
# and under --mode=shadow, for redzones of 10, 50 and 100 percent; and beside it what GASan's paper simulates
# for the same trace (shadow_memory.py). On a GPU if there is one, otherwise on the CPU device.
# shadow-memory.sh [NAME...]: all programs, or these. SECTION=FILE: the table goes there instead of into
# doc/results.md, and the drawing beside it instead of into doc/.
set -eu
here=$(dirname "$0")
command -v nvcc >/dev/null || { echo 'shadow-memory.sh: no nvcc on this machine' >&2; exit 0; }
device=cpu
! nvidia-smi -L >/dev/null 2>&1 || device=gpu
LEVELS='10 50 100' LEAST=256 WANTED=${SHADOW_BYTES:-$((4 << 30))}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
gcc -shared -fPIC -O1 -o "$T/trace.so" "$here/shadow_trace.c" -ldl

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

row() {  # row NAME: NAME PEAK, and for each level what is simulated, and what was measured
    local name=$1 alone line factor level simulated
    read -r peak _ < <(python3 "$here/shadow_memory.py" "$T/$name" 10 $LEAST 1)
    [ "$peak" -gt 0 ] || return 0
    factor=$(((WANTED + peak - 1) / peak))
    replay "$name" $factor --mode=off || return 0
    alone=$taken line="$name $peak"
    for level in $LEVELS; do
        simulated=$(python3 "$here/shadow_memory.py" "$T/$name" "$level" $LEAST $factor | cut -d ' ' -f 2,3)
        replay "$name" $factor --mode=shadow --shadow-redzone="$level" \
            --shadow-redzone-least=$LEAST || return 0
        # The zeros that all memory without a shadow of its own shares are not for what is allocated.
        line+=" $simulated $((taken - alone - shadow)) $((shadow - shared))"
    done
    echo "$line"
}

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 test/programs/programs.tsv | cut -f 1 | grep -v 'cub\|thrust')
shared=0
for name in "${names[@]}"; do
    trace "$name" && [ -s "$T/$name" ] && row "$name"
done >"$T/rows"
count=$(wc -l <"$T/rows")
python3 "$here/shadow_memory.py" --table "$LEVELS" <"$T/rows" >"$T/table" 2>"$T/points"
{
    echo '## Memory of --mode=shadow'
    echo
    "$here/machine"
    echo "Allocations of $count programs of the suite, all sizes multiplied so that a program has" \
        "$((WANTED >> 20)) MiB at most, repeated on" \
        "$([ $device = gpu ] && echo 'the GPU' || echo 'the CPU device')." \
        'Percent of that, for redzones of' \
        "so many percent of a buffer and at least $LEAST bytes: memory of redzones and rounding, and of" \
        'the shadow (a byte for 256). `simulated` is the way of the GASan paper for the same allocations;' \
        '`moat` is how much less memory was free than alone. Redzones of buffers from 1 MiB on are' \
        'addresses without memory, but have' \
        "a shadow. Besides, each context has $((shared >> 20)) MiB of zeros and poison," \
        'whatever is allocated.'
    echo
    cat "$T/table"
    echo
    echo '![memory of redzones and of the shadow](shadow-memory.svg)'
} >"$T/section"
svg=$(dirname "${SECTION:-$here/../doc/.}")/shadow-memory.svg
python3 "$here/canary_plot.py" 'Memory of redzones and of the shadow' 'redzone, percent of a buffer' \
    'percent of what is allocated, mean' <"$T/points" >"$svg"
cat "$T/section"
"$here/finish" shadow-memory "$T/section"
