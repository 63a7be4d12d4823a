#!/bin/bash
# SPDX-License-Identifier: MIT
# Four tenants share a GPU by MPS, and one of them makes a mistake every second: how long rounds of the three
# others take (fence_tenant neighbour, which compares each result), all tenants under --mode=fence, beside the
# same without moat and without mistakes, in turns. FENCE_MPS_SECONDS: of a turn (10); FENCE_MPS_TURNS: of
# each way (3). GPU_SECONDS: no turn is begun that would end later. GPU_ROWS keeps the turns. SECTION=FILE:
# the table goes there instead of into doc/results.md.
#
# The error that all clients get does not say whose kernel it was: the wrong one that had just run when a
# tenant failed. The turn ends with it, and is made again without this kernel on a new server; the section
# names it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
nvidia-smi -L >/dev/null 2>&1 || { echo 'fence-mps.sh: no GPU on this machine' >&2; exit 0; }
for tool in nvidia-cuda-mps-control nvcc; do
    command -v $tool >/dev/null || { echo "fence-mps.sh: no $tool on this machine" >&2; exit 0; }
done
seconds=${FENCE_MPS_SECONDS:-10}
T=$(mktemp -d) || exit 1
server='' servers=0 over='' pids=()
server_start() {
    servers=$((servers + 1))
    export CUDA_MPS_PIPE_DIRECTORY=$T/pipe.$servers CUDA_MPS_LOG_DIRECTORY=$T/mps-log.$servers
    mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
    timeout 30 nvidia-cuda-mps-control -d >/dev/null 2>&1 && server=1
}
server_end() {
    [ -z "$server" ] || echo 'quit -t 1' | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1
    server=
}
finish() {
    [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null
    server_end
    rm -rf "$T"
}
trap finish EXIT
trap over=yes TERM
export XDG_CACHE_HOME=${GPU_CACHE:-$T/cache} FENCE_DRIVER=''
mkdir -p "${GPU_ROWS:-$T}"
rows=${GPU_ROWS:-$T}/fence-mps-$("$here/rows-key")
guilty=$rows.guilty  # WAY NAME of each wrong kernel that has ended a tenant
touch "$rows" "$guilty"
nvcc -std=c++17 -O3 -gencode arch=compute_90,code=compute_90 -o "$T/tenant" \
    "$here/../test/guard/fence_tenant.cu" || exit 1
"$MOAT" --device=cpu --mode=off "$T/tenant" list >"$T/list" 2>/dev/null </dev/null
server_start || { echo 'fence-mps.sh: no MPS server starts' >&2; exit 1; }

command_of() {  # command_of WAY: in $command
    command=(timeout $((seconds + 60)))
    [ "$1" = plain ] || command+=("$MOAT" --device=gpu --mode=fence "--fence=$1" --error-exitcode=0)
}

# Waits until all three compute. Fails if one does not, because of what ran before the turn.
tenants_begin() {
    local limit=$((SECONDS + 20))
    while [ "$(cat "$T"/said.? | grep -c '^neighbour: computes')" -lt 3 ]; do
        [ $SECONDS -lt $limit ] && [ -z "$over" ] && ! tenants_failed || return 1
        sleep 0.05
    done
}

tenants_failed() {
    grep -qsE '^neighbour: (cuda|the result)' "$T"/said.?
}

# One wrong kernel of each kind after the other, a second apart; without a fence the right one. Fails if a
# tenant has.
mistakes() {  # mistakes WAY SEED
    local name options end=$((SECONDS + seconds)) what=bad next
    [ "$1" != plain ] || what=good
    awk -v way="$1" 'FILENAME != "-" { if ($1 == way) left[$2]; next } !($1 in left)' "$guilty" - \
        <"$T/list" >"$T/kernels"
    while [ $SECONDS -lt $end ]; do
        while read -r name _ _ options; do
            [ $SECONDS -lt $end ] && [ -z "$over" ] || return 0
            next=$((${EPOCHREALTIME/[.,]/} + 1000000))
            [ "$1" != plain ] || options=
            "${command[@]}" ${options:+"$options"} "$T/tenant" $what "$name" "$2" 2>&1 </dev/null |
                grep -E '^(good|bad) '
            # What a tenant gets it sees within a round.
            sleep 0.1
            while [ "${EPOCHREALTIME/[.,]/}" -lt $next ]; do sleep 0.02; done
            tenants_failed || continue
            echo "$1 $name" >>"$guilty"
            return 1
        done < <(shuf --random-source=<(yes "$2") "$T/kernels")
        [ -s "$T/kernels" ] || return 0
    done
}

# A row: WAY, milliseconds of a round of three tenants, mistakes made, tenants that failed. Fails if one has.
turn() {  # turn WAY NUMBER
    local command i failed=0
    command_of "$1"
    pids=()
    rm -f "$T"/said.?
    touch "$T"/said.{1,2,3}
    for i in 1 2 3; do
        "${command[@]}" "$T/tenant" neighbour "$seconds" >>"$T/said.$i" 2>&1 </dev/null &
        pids+=($!)
    done
    : >"$T/made"
    { tenants_begin && mistakes "$1" "$2" >"$T/made"; } || { sleep 1; kill "${pids[@]}" 2>/dev/null; }
    for i in 0 1 2; do
        # 143: that one went on beside one that has failed.
        wait "${pids[i]}" || [ $? = 143 ] || { failed=$((failed + 1)); tail -n 3 "$T/said.$((i + 1))" >&2; }
    done
    [ -z "$over" ] || return 0
    pids=()
    echo "$1 $(sed -n 's/^neighbour: ok after .* rounds, \(.*\) ms each/\1/p' "$T"/said.? | paste -sd ' ')" \
        "made $(grep -c . "$T/made") failed $failed" >>"$rows"
    [ $failed = 0 ]
}

# The code is compiled before anything is timed.
for way in plain mask check; do
    command_of $way
    "${command[@]}" "$T/tenant" good write >/dev/null 2>&1 </dev/null
done
for ((n = 1; n <= ${FENCE_MPS_TURNS:-3}; n++)); do
    for way in plain mask check; do
        for try in 1 2 3; do
            [ "$(grep -c "^$way .* failed 0\$" "$rows")" -lt "$n" ] || break
            [ -z "$over" ] && [ $((SECONDS + seconds + 6)) -lt "${GPU_SECONDS:-100000}" ] || break 3
            turn $way "$n.$try" || { server_end; server_start || break 3; }
        done
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
    if [ -s "$guilty" ]; then
        echo
        echo "A tenant failed when these had run, and later turns leave them out:" \
            "$(sed 's/\(.*\) \(.*\)/\2 (\1)/' "$guilty" | paste -sd , | sed 's/,/, /g')."
    fi
} >"$T/section"
cat "$T/section"
"$here/finish" fence-mps "$T/section"
