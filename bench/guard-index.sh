#!/bin/bash
# SPDX-License-Identifier: MIT
# guard-index.sh [FILE]: the guard's index of buffers, its depot of stacks, and what both add to an
# allocation, as a section of FILE (doc/results.md).
set -eu
here=$(dirname "$0")
{
    echo '## Index of buffers'
    echo
    "$here/machine"
    echo
    "$BUILD/bench/guard_index"
    echo
    echo "What the guard adds to an allocation and to its free (bench/guard_null.c), over a driver that" \
        "does nothing but give"
    echo "out addresses or that also uses enough memory to empty the nearer caches;" \
        "the tenth percentile of rounds of 200:"
    echo
    "$BUILD/bench/guard_null"
} | tee >("$here/section" guard-index "$@")
wait
