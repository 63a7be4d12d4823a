#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# The suite under --mode=fence on the CPU device: every program gives the result and the status that it gives
# without moat, nothing is reported, and its kernels are fenced. FENCE chooses the way: mask, check or modulo.
# fence-suite.sh [NAME...]: all programs, or these.
set -u
. test/programs/suite.bash

judge() {
    local name=$1 off=$2 status log=$T/$1.log
    shift 2
    timeout 100 "$MOAT" --device=cpu --mode=fence --fence="${FENCE:-mask}" --log-file="$log" "$T/$name" "$@" \
        >"$log.out" 2>&1 </dev/null
    status=$?
    if [ $status != "$off" ] || grep -q 'ERROR: moat' "$log"; then
        echo ": status $status, $off without"
        tail -n 5 "$log.out" | quote
        grep -A 12 -m 2 'ERROR: moat' "$log" | quote
        grep 'refused\|could not' "$log" | quote
        return 1
    fi
    if [ "$off" = 0 ] && ! grep -q 'kernel launches fenced' "$log"; then
        echo ': no kernel was fenced'
        tail -n 20 "$log" | quote
        return 1
    fi
    echo ": $(sed -n 's/^ *kernel launches fenced *//p' "$log") launches" \
        "$(sed -n 's/^ *of these by the mask alone *//p' "$log") masked" \
        "$(sed -n 's/^ *of these proved to stay inside, run without a fence *//p' "$log") proved" \
        "$(sed -n 's/^ *ranges of memory outside/unlisted &/p' "$log")"
}

suite "$@"
