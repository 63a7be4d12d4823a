#!/bin/bash
# SPDX-License-Identifier: MIT
# guard-index.sh [FILE]: the guard's index of buffers and its depot of stacks, as a section of FILE (doc/results.md).
set -eu
here=$(dirname "$0")
{
    echo '## Index of buffers'
    echo
    "$here/machine"
    echo
    "$BUILD/bench/guard_index"
} | tee >("$here/section" guard-index "$@")
wait
