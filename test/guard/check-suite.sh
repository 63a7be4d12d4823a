#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# The suite under --mode=check on the CPU device: every program gives the result and the status that it gives
# without moat, nothing is reported, and kernels are checked, also if all proofs are checked.
# check-suite.sh [NAME...]: all programs, or these. SUITE_MODE: a mode that works as --mode=check does.
set -u
. test/programs/suite.bash

checked() {  # checked OPTION... -- PROGRAM ARG...: status in $status, report in $log
    timeout 500 "$MOAT" --device=cpu --mode="${SUITE_MODE:-check}" --log-file="$log" "$@" \
        >"$log.out" 2>&1 </dev/null
    status=$?
}
judge() {
    local name=$1 off=$2 status log=$T/$1.log
    shift 2
    checked --proofs=check -- "$T/$name" "$@"
    if [ $status != "$off" ] || grep -q 'ERROR: moat\|a bug of moat' "$log"; then
        echo ": --proofs=check: status $status, $off without"
        grep -A 12 -m 2 'ERROR: moat\|a bug of moat' "$log" | quote
        return 1
    fi
    checked -- "$T/$name" "$@"
    if [ $status != "$off" ] || grep -q 'ERROR: moat' "$log"; then
        echo ": status $status, $off without"
        tail -n 5 "$log.out" | quote
        grep -A 12 -m 2 'ERROR: moat' "$log" | quote
        return 1
    fi
    if [ "$off" = 0 ] && ! grep -q 'kernel launches checked' "$log"; then
        echo ': no kernel was checked'
        tail -n 20 "$log" | quote
        return 1
    fi
    echo ": $(sed -n 's/^ *kernel launches checked *//p' "$log") launches," \
        "$(sed -n 's/^ *of these proved right.*checks *//p' "$log") proved," \
        "$(sed -n 's/^ *of these proved in part.*checks *//p' "$log") in part" \
        "$(sed -n 's/^ *kernel launches not checked/; not checked/p' "$log")"
}

suite "$@"
