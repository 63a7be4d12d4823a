#!/bin/bash
# SPDX-License-Identifier: MIT
# What a module takes the driver's compiler when it is first loaded under --mode=check, beside the program's
# own PTX. check-load.sh [NAME...]: all programs of the suite, or these, and then nothing is written
# into doc/. On a GPU the driver compiles (bench/link_time.c): the program's PTX by cuModuleLoadData, and the
# rewritten one by a link, with one thread and with several. Elsewhere ptxas does, for sm_90, as it does for a
# link, and the seconds are its processor's. PTX comes from $BUILD/programs, or from nvcc.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build} MOAT=${MOAT:-$BUILD/bin/moat}
export BUILD
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
device=cpu
! nvidia-smi -L >/dev/null 2>&1 || device=gpu
if [ $device = cpu ] && ! command -v ptxas >/dev/null; then
    echo 'check-load.sh: no ptxas, and no GPU' >&2
    exit 0
fi

text_of() {  # text_of NAME: its PTX
    local n
    if [ -x "$BUILD/programs/$1" ]; then
        n=$("$MOAT" ptx list "$BUILD/programs/$1" | awk '$2 == "ptx" { print $1; exit }')
        "$MOAT" ptx print --module="$n" "$BUILD/programs/$1"
    elif command -v nvcc >/dev/null; then
        cat "$(test/programs/object "$1" compute_90 ptx)"
    else
        return 1
    fi
}
ptxas_seconds() {  # ptxas_seconds FILE: of the processor; - if it is refused
    local TIMEFORMAT='%U %S'
    { time ptxas -c -arch=sm_90 -o "$T/out" "$1" >/dev/null 2>&1 || : >"$T/refused"; } 2>"$T/time"
    [ ! -e "$T/refused" ] || { rm "$T/refused"; echo -; return; }
    awk '{ printf "%.2f\n", $1 + $2 }' "$T/time"
}
moat_seconds() {  # moat_seconds FILE: what the pass takes of it, into $T/checked.ptx
    local TIMEFORMAT='%U %S'
    { time "$MOAT" ptx instrument --pass=check "$1" >"$T/checked.ptx" 2>/dev/null; } 2>"$T/time"
    awk '{ printf "%.2f\n", $1 + $2 }' "$T/time"
}
row() {  # row NAME: NAME, lines, lines of the rewritten text, seconds of moat, then seconds of compilers
    local own checked split lines moat
    if ! text_of "$1" >"$T/own.ptx" || [ ! -s "$T/own.ptx" ]; then
        echo "check-load.sh: no PTX of $1" >&2
        return
    fi
    moat=$(moat_seconds "$T/own.ptx")
    lines="$(wc -l <"$T/own.ptx") $(wc -l <"$T/checked.ptx")"
    if [ $device = gpu ]; then
        read -r _ own _ < <("$BUILD/bench/link_time" "$T/own.ptx")
        read -r _ _ checked split < <("$BUILD/bench/link_time" "$T/checked.ptx")
    else
        own=$(ptxas_seconds "$T/own.ptx") checked=$(ptxas_seconds "$T/checked.ptx") split=$checked
    fi
    echo "$1 $lines $moat $own $checked $split"
}

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 test/programs/programs.tsv | cut -f 1)
for name in "${names[@]}"; do row "$name"; done | tee "$T/rows" >&2
[ -s "$T/rows" ] || { echo 'nothing was measured' >&2; exit 77; }
{
    [ $device = gpu ] && where='on a GPU' || where='by ptxas'
    echo "## First load of a module under --mode=check, $where"
    echo
    bench/machine
    echo
    if [ $device = gpu ]; then
        echo 'Seconds of the driver: the PTX of the program by cuModuleLoadData, and the rewritten one by a' \
            'link with one thread and with several. The last column compares the latter with the first.'
    else
        echo 'Processor seconds of `ptxas -c -arch=sm_90`: the PTX of the program, and the rewritten one.'
    fi
    echo
    head='| program | lines | rewritten | moat s | own s | checked s |'
    rule='| --- | ---: | ---: | ---: | ---: | ---: |'
    [ $device = cpu ] || head+=' several threads s |' rule+=' ---: |'
    printf '%s ratio |\n%s ---: |\n' "$head" "$rule"
    sort -k 6,6nr "$T/rows" | awk -v device=$device '
        $5 == "-" || $6 == "-" || $7 == "-" {
            printf "| %s | %d | %d | | | refused | |%s\n", $1, $2, $3, device == "gpu" ? " |" : ""
            bad++
            next
        }
        {
            printf "| %s | %d | %d | %s | %s | %s | %s%.1f |\n", $1, $2, $3, $4, $5, $6,
                device == "gpu" ? $7 " | " : "", $7 / ($5 > 0 ? $5 : 0.01)
            own += $5; all += $6; split_all += $7
            if ($7 / ($5 > 0 ? $5 : 0.01) <= 3) within++
            n++
        }
        END {
            printf "\nAll: %.1f s, checked %.1f s%s, %.1f times; %d of %d within 3 times.\n", own, all,
                device == "gpu" ? sprintf(", with several threads %.1f s", split_all) : "",
                split_all / own, within, n
            if (bad) printf "%d refused.\n", bad
        }'
} >"$T/section"
cat "$T/section"
[ $# -gt 0 ] || bench/finish "check-load-$device" "$T/section"
