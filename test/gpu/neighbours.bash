#!/bin/bash
# SPDX-License-Identifier: MIT
# For scripts that run wrong programs beside neighbours under an MPS server of their own; sourced by them,
# with units.bash, $T a scratch folder and $tenant the program of test/guard/fence_tenant.cu.
#
#   server_start, server_end
#   neighbours_start    starts two neighbours, and succeeds if both compute
#   neighbours_go_on    succeeds if both compute a whole round from now on
#   neighbours_end      ends them, and succeeds if all their results were right; $neighbours_said: what they
#                       have said
#   beside NUMBER LIST ROWS COMMAND
#                       runs COMMAND, a function that is exported, for each line of LIST, NUMBER at a time; it
#                       prints a row, `WAY NAME pass` or `WAY NAME fail: why`, which goes to ROWS. If a
#                       neighbour does not go on, the lines of that time are run again, one by one, beside new
#                       neighbours of a new server; the row of a line after which they do not go on says so. A
#                       later call with the same ROWS does that at once with those that the end of the time
#                       has left. If the server refuses clients (error 46), because a program was killed whose
#                       kernel never ends, there is a new one, too. Fails if new neighbours do not compute.
# shellcheck shell=bash disable=SC2154
server='' neighbour_pids=() neighbours_said='' servers=0

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

neighbours_start() {
    local n
    neighbour_pids=()
    for n in 1 2; do
        echo 0 >"$T/beat.$n"
        timeout 600 "$tenant" neighbour 600 "$T/beat.$n" >"$T/n$n" 2>&1 </dev/null &
        neighbour_pids+=($!)
    done
    neighbours_go_on
}

beat() {  # beat N: rounds of that neighbour
    local rounds=
    read -r rounds <"$T/beat.$1"
    echo "${rounds:-0}"
}

neighbours_go_on() {
    local n from limit=$((SECONDS + 20)) status=0
    # The round that is under way has begun before this call.
    local goal=()
    for n in 1 2; do from=$(beat $n) goal[n]=$((from + 2)); done
    for n in 1 2; do
        while kill -0 "${neighbour_pids[n - 1]}" 2>/dev/null && [ "$(beat $n)" -lt "${goal[n]}" ] &&
            [ $SECONDS -lt $limit ]; do sleep 0.02; done
        kill -0 "${neighbour_pids[n - 1]}" 2>/dev/null && [ "$(beat $n)" -ge "${goal[n]}" ] || status=1
    done
    return $status
}

neighbours_end() {
    local pid limit=$((SECONDS + 10)) status=0
    rm -f "$T"/beat.[12]
    for pid in "${neighbour_pids[@]}"; do
        while kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $limit ]; do sleep 0.02; done
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" || status=1
    done
    neighbour_pids=()
    neighbours_said="$(cat "$T/n1" 2>/dev/null); $(cat "$T/n2" 2>/dev/null)"
    return $status
}

# Runs the lines of a file, NUMBER at a time. Fails if a neighbour does not go on ($dead), or if clients were
# refused; then there are new ones.
beside_once() {  # beside_once NUMBER LIST COMMAND
    xargs -P "$1" -I{} bash -c "$3 {}" <"$2" >"$T/now"
    dead=yes
    ! neighbours_go_on || dead=
    [ -n "$dead" ] || grep -q ' fail: .*error 46,' "$T/now" || return 0
    neighbours_end
    server_end
    server_start && neighbours_start || over=yes
    return 1
}

# The row of a line that has ended its neighbours.
beside_guilty() {
    local way name rest
    read -r way name rest <"$T/now" || return 0
    echo "$way $name fail: its neighbours ended: $neighbours_said (itself: $rest)"
}

beside_alone() {  # beside_alone LIST ROWS COMMAND
    local line
    while IFS= read -r line <&8; do
        [ "$(units_rest)" -gt 12 ] && [ -z "$over" ] || return 0
        echo "$line" >"$T/line"
        beside_once 1 "$T/line" "$3" || [ -n "$dead$over" ] || beside_once 1 "$T/line" "$3"
        if [ -z "$dead" ]; then cat "$T/now"; else beside_guilty; fi >>"$2"
        [ ! -s "$T/now" ] || grep -vxF -- "$line" "$2.alone" >"$T/left"
        [ ! -s "$T/now" ] || mv "$T/left" "$2.alone"
    done 8<"$1"
}

beside() {
    local over='' dead='' at lines
    : >>"$3.alone"
    grep -xF -f "$3.alone" "$2" >"$T/first"
    beside_alone "$T/first" "$3" "$4"
    mapfile -t lines < <(grep -vxF -f "$T/first" "$2")
    for ((at = 0; at < ${#lines[@]}; at += $1)); do
        [ "$(units_rest)" -gt 12 ] && [ -z "$over" ] || break
        printf '%s\n' "${lines[@]:at:$1}" >"$T/some"
        if beside_once "$1" "$T/some" "$4"; then
            cat "$T/now" >>"$3"
        else
            cat "$T/some" >>"$3.alone"
            beside_alone "$T/some" "$3" "$4"
        fi
    done
    [ -z "$over" ]
}
