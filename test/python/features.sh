#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# What Triton's language has, under the command without options: right results, every launch is checked,
# and no error is reported.
set -u
# shellcheck source=test/python/common
. test/python/common
export XDG_CACHE_HOME=$T/cache
watch triton_features.py
check 0 'moat: 0 errors' 'right kernels are silent'
for name in $(sed -n 's/^def test_\([a-z0-9_]*\).*/\1/p' test/python/triton_features.py); do
    check 0 "^$name ok\$" "$name"
done
not 'WRONG|refused|kernel launches not checked' 'kernels'
finish
