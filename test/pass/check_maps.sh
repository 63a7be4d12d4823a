#!/bin/bash
# SPDX-License-Identifier: MIT
# --pass=check finds that a tensor map is a parameter of the kernel, also if its address goes through 32 bits,
# as in Triton's kernels, but not if those may have wrapped.
set -u
file=test/pass/check_maps.ptx
found=$("$MOAT" ptx instrument --pass=check $file |
    sed -n -e 's/^\/\/ site [0-9]*: \([a-z]*\): .* root \([a-z]*\): .*/\1 \2/p' \
        -e 's/^\/\/ not checked: \(.*\)/\1/p')
wanted='widened variable
widened parameter
wrapped: 2 asynchronous
signed: 2 asynchronous'
[ "$found" = "$wanted" ] || { diff <(echo "$wanted") <(echo "$found"); exit 1; }
