#!/bin/bash
# SPDX-License-Identifier: MIT
# torch.compile on the CPU device: forward and backward of two small models, right results, and no noise of
# the processes that compile.
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
finish
