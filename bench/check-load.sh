#!/bin/bash
# SPDX-License-Identifier: MIT
# What a module takes when it is first loaded under --mode=check, beside what the driver's compiler takes for
# the program's own PTX: with all variants together, and with each apart, when all launches are proved and
# when every variant of every kernel is wanted. check-load.sh [NAME...]: all programs of the suite, or these,
# and then nothing is written into doc/. On a GPU the driver compiles (bench/link_time.c, seconds by the
# clock, links on several threads). Elsewhere ptxas and nvlink do, for sm_90, as the driver does it, and the
# seconds are the processor's, also without those that the compilers take to start. PTX comes from
# $BUILD/programs, or from nvcc. CHECK_LOAD_ROWS: a file that
# gets the rows. ROUNDS: the least of so many runs (3). CHECK_LOAD_WITHOUT: programs that are left out.
# CHECK_LOAD_LIMIT: no program is begun after so many seconds.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build} MOAT=${MOAT:-$BUILD/bin/moat}
export BUILD
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
device=cpu
! nvidia-smi -L >/dev/null 2>&1 || device=gpu
for tool in ptxas nvlink; do
    [ $device = cpu ] && ! command -v $tool >/dev/null || continue
    echo "check-load.sh: no $tool, and no GPU" >&2
    exit 0
done

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
sum() { awk '{ for (i = 1; i <= NF; i++) s += $i } END { printf("%.3f\n", s > 0.001 ? s : 0.001) }'; }
# processor COMMAND...: the least seconds of ROUNDS runs, of one if that takes more than a second; `refused`
# is there if it fails
processor() {
    local TIMEFORMAT="%3U %3S" took least=""
    for _ in $(seq "${ROUNDS:-3}"); do
        { time "$@" >/dev/null 2>&1 || : >"$T/refused"; } 2>"$T/time"
        took=$(sum <"$T/time")
        least=$(printf '%s\n' ${least:+"$least"} "$took" | sort -g | head -n 1)
        [ "$(awk -v t="$took" 'BEGIN { print (t > 1) }')" = 0 ] || break
    done
    echo "$least"
}
ptxas_seconds() { processor ptxas -arch=sm_90 "$@"; }

# link_seconds FILE...: of links of each with the judge
link_seconds() {
    local file
    for file; do
        if [ $device = gpu ]; then
            LINK_WITH=$T/texts/judge.ptx "$BUILD/bench/link_time" "$file" | awk '
                { print $NF == "-" ? 0 : $NF; if ($NF == "-") print "refused" >"/dev/stderr" }' 2>"$T/error"
            [ ! -s "$T/error" ] || : >"$T/refused"
        else
            ptxas_seconds -c "$file" -o "$T/cubin"
            echo "$judge"
            processor nvlink -arch=sm_90 "$T/cubin" "$T/judge.cubin" -o "$T/linked"
        fi
    done | sum
}
own_seconds() {
    if [ $device = gpu ]; then
        "$BUILD/bench/link_time" "$1" | awk '{ print $2 }'
    else
        ptxas_seconds "$1" -o "$T/out"
    fi
}

# row NAME: NAME, variants, then seconds: own; together; apart and proved; apart, with every variant
row() {
    local own together made left cut n
    rm -rf "$T/texts" "$T/refused"
    mkdir "$T/texts"
    if ! text_of "$1" >"$T/own.ptx" || [ ! -s "$T/own.ptx" ]; then
        echo "check-load.sh: no PTX of $1" >&2
        return
    fi
    read -r made left cut n < <("$BUILD/bench/variant_texts" "$T/own.ptx" "$T/texts") || return
    [ $device = gpu ] || [ -n "${judge:-}" ] ||
        judge=$(ptxas_seconds -c -maxrregcount 32 "$T/texts/judge.ptx" -o "$T/judge.cubin")
    own=$(own_seconds "$T/own.ptx")
    together=$(echo "$made $(link_seconds "$T/texts/together.ptx")" | sum)
    if [ "$n" = 0 ]; then
        echo "$1 - $own $together $together $together"
    else
        echo "$1 $n $own $together $(echo "$left $own" | sum)" \
            "$(echo "$left $own $cut $(link_seconds "$T"/texts/variant-*.ptx)" | sum)"
    fi
    [ ! -e "$T/refused" ] || echo "check-load.sh: the compiler refuses a text of $1" >&2
}

# What a compiler's process takes before it has read anything.
start="0 0"
if [ $device = cpu ]; then
    printf '.version 7.8\n.target sm_90\n.address_size 64\n' >"$T/empty.ptx"
    start=$(ptxas_seconds -c "$T/empty.ptx" -o "$T/cubin")
    start="$start $(processor nvlink -arch=sm_90 "$T/cubin" -o "$T/linked")"
fi

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 test/programs/programs.tsv | cut -f 1)
for name in "${names[@]}"; do
    [[ " ${CHECK_LOAD_WITHOUT:-} " != *" $name "* ]] || continue
    [ $SECONDS -lt "${CHECK_LOAD_LIMIT:-100000}" ] || break
    row "$name"
done >"$T/rows"
[ -s "$T/rows" ] || { echo 'nothing was measured' >&2; exit 77; }
[ -z "${CHECK_LOAD_ROWS:-}" ] || cp "$T/rows" "$CHECK_LOAD_ROWS"
{
    [ $device = gpu ] && where='on a GPU' || where='by ptxas and nvlink'
    echo "## First load of a module under --mode=check, $where"
    echo
    bench/machine
    echo
    # shellcheck disable=SC2086
    python3 bench/check_load.py "$T/rows" $device "${#names[@]}" $start
} >"$T/section"
cat "$T/section"
[ $# -gt 0 ] || bench/finish "check-load-$device" "$T/section"
