#!/bin/bash
# SPDX-License-Identifier: MIT
# Four tenants share a GPU by MPS, and one of them makes a mistake every second: how long rounds of the three
# others take (fence_tenant neighbour, which compares each result), all tenants under --mode=fence, beside the
# same without moat and without mistakes, in turns. FENCE_MPS_SECONDS: of a turn (10); FENCE_MPS_TURNS: of
# each way (3). GPU_SECONDS: no turn is begun that would end later. GPU_ROWS keeps the turns. SECTION=FILE:
# the table goes there instead of into doc/results.md.
set -u
here=$(cd "$(dirname "$0")" && pwd)
nvidia-smi -L >/dev/null 2>&1 || { echo 'fence-mps.sh: no GPU on this machine' >&2; exit 0; }
for tool in nvidia-cuda-mps-control nvcc; do
    command -v $tool >/dev/null || { echo "fence-mps.sh: no $tool on this machine" >&2; exit 0; }
done
seconds=${FENCE_MPS_SECONDS:-10}
T=$(mktemp -d) || exit 1
server='' over=''
finish() {
    [ -z "$server" ] || echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1
    rm -rf "$T"
}
trap finish EXIT
trap over=yes TERM
export XDG_CACHE_HOME=${GPU_CACHE:-$T/cache} FENCE_DRIVER=''
export CUDA_MPS_PIPE_DIRECTORY=$T/pipe CUDA_MPS_LOG_DIRECTORY=$T/mps-log
mkdir -p "$T/pipe" "$T/mps-log" "${GPU_ROWS:-$T}"
rows=${GPU_ROWS:-$T}/fence-mps-$("$here/rows-key")
touch "$rows"
nvcc -std=c++17 -O3 -gencode arch=compute_90,code=compute_90 -o "$T/tenant" \
    "$here/../test/guard/fence_tenant.cu" || exit 1
"$MOAT" --device=cpu --mode=off "$T/tenant" list >"$T/list" 2>/dev/null </dev/null
timeout 30 nvidia-cuda-mps-control -d >/dev/null 2>&1 ||
    { echo 'fence-mps.sh: no MPS server starts' >&2; exit 1; }
server=1

command_of() {  # command_of WAY: in $command
    command=(timeout $((seconds + 60)))
    [ "$1" = plain ] || command+=("$MOAT" --device=gpu --mode=fence "--fence=$1" --error-exitcode=0)
}

# One wrong kernel of each kind after the other, a second apart; without a fence the right one.
mistakes() {  # mistakes WAY SEED
    local name options end=$((SECONDS + seconds)) what=bad
    [ "$1" != plain ] || what=good
    while [ $SECONDS -lt $end ]; do
        while read -r name _ _ options; do
            [ $SECONDS -lt $end ] || break
            [ "$1" != plain ] || options=
            "${command[@]}" ${options:+"$options"} "$T/tenant" $what "$name" "$2" 2>&1 </dev/null |
                grep -E '^(good|bad) '
            sleep 1
        done < <(shuf --random-source=<(yes "$2") "$T/list")
    done
}

turn() {  # turn WAY NUMBER: WAY, milliseconds of a round of three tenants, mistakes made, tenants that failed
    local command i pids=() failed=0
    command_of "$1"
    for i in 1 2 3; do
        "${command[@]}" "$T/tenant" neighbour "$seconds" >"$T/said.$i" 2>&1 </dev/null &
        pids+=($!)
    done
    mistakes "$1" "$2" >"$T/made"
    for i in 0 1 2; do
        wait "${pids[i]}" || { failed=$((failed + 1)); tail -n 3 "$T/said.$((i + 1))" >&2; }
    done
    [ -z "$over" ] || return
    echo "$1 $(sed -n 's/^neighbour: ok after .* rounds, \(.*\) ms each/\1/p' "$T"/said.? | paste -sd ' ')" \
        "made $(grep -c . "$T/made") failed $failed" >>"$rows"
}

# The code is compiled before anything is timed.
for way in plain mask check; do
    command_of $way
    "${command[@]}" "$T/tenant" good write >/dev/null 2>&1 </dev/null
done
for ((n = 1; n <= ${FENCE_MPS_TURNS:-3}; n++)); do
    for way in plain mask check; do
        [ "$(grep -c "^$way " "$rows")" -lt "$n" ] || continue
        [ -z "$over" ] && [ $((SECONDS + seconds + 8)) -lt "${GPU_SECONDS:-100000}" ] || break 2
        turn $way "$n"
    done
done
[ -s "$rows" ] || { echo 'fence-mps.sh: nothing was measured' >&2; exit 1; }
{
    echo '## Four tenants under MPS, of which one makes mistakes'
    echo
    "$here/machine"
    echo
    echo "Three tenants compute for $seconds s and compare each result, the fourth runs another wrong" \
        'kernel every second (plain: the right one). plain: without moat; mask and check: all under' \
        '`--mode=fence`. Milliseconds of a round: 32 launches, a memset and a copy.'
    echo
    echo '| tenants | turns | mistakes | average ms | median | worst | median over plain | failed tenants |'
    echo '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |'
    for way in plain mask check; do
        grep "^$way " "$rows" | awk '{ for (i = 2; $i != "made" && i < NF; i++) print $i }' | sort -g |
            awk -v way=$way -v turns="$(grep -c "^$way " "$rows")" -v base="$(cat "$T/base" 2>/dev/null)" \
                -v made="$(awk -v way=$way '$1 == way { n += $(NF - 2) } END { print n + 0 }' "$rows")" \
                -v failed="$(awk -v way=$way '$1 == way { n += $NF } END { print n + 0 }' "$rows")" \
                -v keep="$T/base" '
                { v[NR] = $1; sum += $1 }
                END {
                    if (NR == 0) { printf "| %s | %d | %d | | | | | %d |\n", way, turns, made, failed; exit }
                    m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
                    if (way == "plain") { base = m; print m >keep }
                    over = base > 0 ? sprintf("%.3f", m / base) : ""
                    printf "| %s | %d | %d | %.4f | %.4f | %.4f | %s | %d |\n", way, turns,
                        way == "plain" ? 0 : made, sum / NR, m, v[NR], over, failed
                }'
    done
} >"$T/section"
cat "$T/section"
"$here/finish" fence-mps "$T/section"
