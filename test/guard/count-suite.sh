#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# The suite under --mode=count on the CPU device: results stay right, every kernel is counted, and the counts
# agree with those of the device. count-suite.sh [NAME...]: all programs, or these.
set -u
. test/programs/suite.bash
command -v python3 >/dev/null || { echo 'no python3 on this machine'; exit 77; }
OFF_OPTIONS=(--stats)

judge() {
    local name=$1 off=$2 status json=$T/$1.json log=$T/$1.log
    shift 2
    timeout 100 "$MOAT" --device=cpu --mode=count --stats --format=json --log-file="$json" "$T/$name" "$@" \
        >"$log" 2>&1 </dev/null
    status=$?
    if [ $status != "$off" ]; then
        echo ": status $status, $off without"
        tail -n 5 "$log" "$json" | quote
        return 1
    fi
    if [ "$off" != 0 ]; then
        echo ": status $off with and without"
        return 0
    fi
    if ! python3 test/guard/count_compare.py "$json" "$log" "$T/$name.off" >"$T/$name.compared"; then
        echo
        quote <"$T/$name.compared"
        return 1
    fi
    if grep -q '"key":"left_' "$json"; then
        echo ": $(grep -o '"key":"left_[^}]*' "$json")"
        return 1
    fi
    echo ": $(cat "$T/$name.compared")"
}

suite "$@"
