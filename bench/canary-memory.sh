#!/bin/bash
# SPDX-License-Identifier: MIT
# How much device memory canaries take: how much less is free with so many more buffers, alone and with
# canaries, by size. On a GPU if there is one, otherwise on the CPU device. SECTION=FILE: writes the table
# there instead of into doc/results.md. CANARY_SECONDS: see canary_programs.
set -eu
here=$(dirname "$0")
"$MOAT" --mode=canary --version >/dev/null 2>&1 ||
    { echo 'canary-memory.sh: this moat has no --mode=canary' >&2; exit 0; }
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/canary_programs
. "$here/canary_programs"
device=cpu total=$((512 << 20))
! nvidia-smi -L >/dev/null 2>&1 || device=gpu total=$((4 << 30))

taken() {  # taken COUNT SIZE OPTION...: bytes, and what moat says it took of them for canaries and rounding
    local count=$1 size=$2
    shift 2
    canary_programs_step "$MOAT" --device=$device "$@" "$BUILD/tool/canary_good" memory \
        "$count" "$size" >"$T/out" 2>&1 </dev/null || return 1
    awk '/^taken/ { n = $2 } /for canaries and rounding/ { own = $NF; gsub(",", "", own) }
         END { print n, own + 0 }' "$T/out"
}

for size in 100 460 500 1000 4096 60000 300000 1048576 2097152 16777216 104857600; do
    count=$((total / size < 100000 ? total / size : 100000))
    canary_programs_left 100 || break
    read -r alone _ < <(taken $count $size --mode=off) || continue
    read -r with own < <(taken $count $size --mode=canary) || continue
    plain=
    [ $size -lt 1048576 ] ||
        read -r plain _ < <(taken $count $size --mode=canary --canary-memory=plain) || plain=
    awk -v plain="$plain" -v size=$size -v count=$count -v alone="$alone" -v with="$with" \
        -v own="$own" 'BEGIN {
        printf "| %d | %d | %.0f | %.0f | %+.0f | %+.2f%% | %s | %.0f | %.0f |\n", size,
            count, alone / count, with / count,
            (with - alone) / count, (with / alone - 1) * 100,
            plain == "" ? "-" : sprintf("%+.2f%%", (plain / alone - 1) * 100), own / (count + 1),
            own / (count + 1) - ((512 - size % 512) % 512) }'
done >"$T/rows"
{
    echo '## Memory that canaries take'
    echo
    "$here/machine"
    echo "On $([ $device = gpu ] && echo 'the GPU' || echo 'the CPU device'): by how" \
        "much less is free, for each of so many buffers; with" \
        'canaries this includes memory that is not given out yet, and what 2 MiB, in which' \
        'a device gives it, leave at the end. `plain`: what is added with `--canary-memory=plain`.' \
        'The last columns are what moat counts as canaries and rounding, and what of that is beyond' \
        'the multiple of 512 bytes that a' \
        'driver takes for a buffer anyway.'
    echo
    echo '| size | buffers | alone | with canaries | added | | plain | canaries and rounding |' \
        "beyond the driver's |"
    echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- |'
    cat "$T/rows"
} >"$T/section"
cat "$T/section"
"$here/finish" "canary-memory-$device" "$T/section"
