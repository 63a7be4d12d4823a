#!/bin/bash
# SPDX-License-Identifier: MIT
# torch.compile on the CPU device: forward and backward of two small models, with CUDA graphs too, right
# results, and no noise of the processes that compile.
# slow
set -u
# shellcheck source=test/python/common
. test/python/common
for which in transformer cnn; do
    watch torch_compiled.py -- $which
    check 0 '^right' "$which"
    check 0 'kernel launches.* [1-9]' "$which: kernels ran"
    check 0 'modules loaded' "$which: modules"
    not 'NOTHING WAS WATCHED|without a summary|ERROR' "$which: processes that compile"
    [ "$(grep -c ': watching ' "$T/log")" = 1 ] || { echo "FAIL $which: banners"; failed=$((failed + 1)); }
done
# Under check each tensor is a buffer of moat's, also what graphs keep.
for which in transformer cnn paths; do
    watch torch_compiled.py -- $which reduce-overhead
    check 0 '^right' "reduce-overhead: $which"
    check 0 'graph launches  *[1-9]' "reduce-overhead: $which: graphs ran"
    not 'ERROR' "reduce-overhead: $which"
done
watch --mode=api torch_compiled.py -- transformer reduce-overhead
check 0 '^right' "reduce-overhead with PyTorch's own pool"
check 0 'graph launches  *[1-9]' "reduce-overhead with PyTorch's own pool: graphs ran"
finish
