#!/bin/bash
# SPDX-License-Identifier: MIT
# Machine code that NVRTC compiles and nvJitLink links, through NVIDIA's Python bindings: the PTX behind it is
# executed.
set -u
# shellcheck source=test/python/common
. test/python/common
"$PYTHON" -c 'import cuda.bindings.nvjitlink, cuda.bindings.nvrtc' 2>/dev/null ||
    { echo 'the virtual environment has no cuda.bindings'; exit 77; }
for how in nvrtc link lto; do
    watch nvrtc_twice.py -- $how
    check 0 '^right' "$how"
    not 'could not be had' "$how"
    watch --no-jit-ptx nvrtc_twice.py -- $how
    check 1 'modules that the driver refused to load  *1$' "$how, without PTX"
done
finish
