#!/bin/bash
# SPDX-License-Identifier: MIT
# Checks whether the CPU device answers texture and surface instructions as an H200 did. `sampling diff`
# prints more.
# builds: one
set -u
sampling=$BUILD/tool/sampling
if [ ! -x "$sampling" ]; then
    echo 'there is no tool to compare with'
    exit 77
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"$sampling" check test/golden/sampling.golden --libcuda="$BUILD/lib/libmoat-cpu.so" >"$log" 2>&1
status=$?
[ $status = 0 ] || grep -v '^   ' "$log" | head -n -1 | tail -n 25 | cut -c 1-250
tail -n 1 "$log"
exit $status
