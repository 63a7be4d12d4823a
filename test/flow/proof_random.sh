#!/bin/bash
# SPDX-License-Identifier: MIT
# Random kernels, executed, every address compared with its bound: some thousands, with --all 100,000 from
# another seed.
# builds: one
# slow
set -u
tool=$BUILD/tool/proof_random
if [ ! -x "$tool" ]; then
    echo 'there is no tool to compare with'
    exit 77
fi
if [ "${TEST_ALL:-0}" = 1 ]; then
    exec "$tool" 100000 1000000
fi
exec "$tool" 1500 1
