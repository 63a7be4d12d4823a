#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# The suite under --mode=check on the CPU device: every program gives the result and the status that it gives
# without moat, nothing is reported, and kernels are checked. check-suite.sh [NAME...]: all programs, or
# these.
set -u
. test/programs/suite.bash

judge() {
    local name=$1 off=$2 status log=$T/$1.log
    shift 2
    timeout 500 "$MOAT" --device=cpu --mode=check --log-file="$log" "$T/$name" "$@" \
        >"$T/$name.out" 2>&1 </dev/null
    status=$?
    if [ $status != "$off" ] || grep -q 'ERROR: moat' "$log"; then
        echo ": status $status, $off without"
        tail -n 5 "$T/$name.out" | quote
        grep -A 12 -m 2 'ERROR: moat' "$log" | quote
        return 1
    fi
    if [ "$off" = 0 ] && ! grep -q 'kernel launches checked' "$log"; then
        echo ': no kernel was checked'
        tail -n 20 "$log" | quote
        return 1
    fi
    sed -n 's/^ *kernel launches not checked/; not checked/p' "$log"
}

suite "$@"
