#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# Small parts of Triton's language under the command without options: right results, every launch is checked,
# and no error is reported.
set -u
# shellcheck source=test/python/common
. test/python/common
export XDG_CACHE_HOME=$T/cache
watch triton_parts.py
check 0 'moat: 0 errors' 'right kernels are silent'
for name in $(sed -n 's/^def test_\([a-z0-9_]*\).*/\1/p' test/python/triton_parts.py); do
    check 0 "^$name ok\$" "$name"
done
check 0 'idx.*value: 12345' 'what a kernel prints'
not 'WRONG|refused|kernel launches not checked' 'kernels'
finish
