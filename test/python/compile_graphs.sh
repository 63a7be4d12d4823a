#!/bin/bash
# SPDX-License-Identifier: MIT
# slow
# torch.compile with mode="reduce-overhead": forward and backward of two small models by CUDA graphs, and
# graphs that are recorded behind others; under check, where each tensor is a buffer of moat's, and with
# PyTorch's pool.
set -u
# shellcheck source=test/python/common
. test/python/common
for which in transformer cnn paths; do
    watch torch_compiled.py -- $which reduce-overhead
    check 0 '^right' "$which"
    check 0 'graph launches  *[1-9]' "$which: graphs ran"
    not 'ERROR' "$which"
done
watch --mode=api torch_compiled.py -- transformer reduce-overhead
check 0 '^right' "PyTorch's own pool"
check 0 'graph launches  *[1-9]' "PyTorch's own pool: graphs ran"
finish
