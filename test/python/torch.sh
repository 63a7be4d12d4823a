#!/bin/bash
# SPDX-License-Identifier: MIT
# PyTorch's wheel for CUDA on the CPU device: operators, copies, streams, graphs, small models.
set -u
# shellcheck source=test/python/common
. test/python/common
watch torch_operators.py
check 0 '^convolution ok' 'a convolution, forward and backward'
check 0 '^graph ok' 'a graph'
check 0 '[0-9]+ calls of [0-9]+ operators of PyTorch ran on the CPU' 'the list of what ran where'
check 0 'transfers and memsets checked  *[1-9]' 'copies pass through the driver'
not 'WRONG|ERROR' 'operators'
passed=$((passed + $(grep -c ' ok$' "$T/log")))
watch --mode=canary torch_operators.py
check 0 '^transformer ok' 'with each tensor between canaries'
not 'WRONG|ERROR' 'with canaries'
watch --no-torch-ops torch_operators.py
check 1 'Error' 'without them, machine code cannot run'
finish
