#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# The suite under moat explain on the CPU device: results stay right, no error is called certain, since the
# programs have none, and every kernel that was launched is explained. explain-suite.sh [NAME...]: all
# programs, or these.
set -u
. test/programs/suite.bash
command -v jq >/dev/null || { echo 'no jq on this machine'; exit 77; }

judge() {
    local name=$1 off=$2 status json=$T/$1.json log=$T/$1.log
    shift 2
    timeout 100 "$MOAT" explain --device=cpu --format=json --log-file="$json" "$T/$name" "$@" \
        >"$log" 2>&1 </dev/null
    status=$?
    if [ $status != "$off" ]; then
        echo ": status $status, $off without"
        tail -n 5 "$log" "$json" | quote
        return 1
    fi
    if jq -es 'map(select(.event == "error" or (.event == "proofs" and
        ([.kernels[] | .outside > 0 or .unread] | any)))) | length > 0' "$json" >/dev/null; then
        echo ': an error, or a kernel that was not read'
        jq -c 'select(.event == "error" or .event == "proofs")' "$json" | cut -c 1-1000 | quote
        return 1
    fi
    echo ": $(jq -rs 'map(select(.event == "proofs") | .kernels[]) |
        "\(length) kernels, \(map(.accesses) | add) accesses: \(map(.inside) | add) inside, " +
        "\(map(.maybe_outside) | add) maybe outside, \(map(.not_bounded) | add) not bounded"' "$json")"
}

suite "$@"
