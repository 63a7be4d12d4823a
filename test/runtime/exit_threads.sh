#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A process may end while its threads launch kernels: modules stay loaded then. A library that is closed takes
# its own along, with our runtime shared or linked into it.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$BUILD/lib/moat
program=$BUILD/tool/exit_threads
here=$(dirname "$0")

for ((i = 0; i < 60; i++)); do
    "$program" exit || { echo "run $i: status $?"; exit 1; }
done

# A library without a sanitizer cannot have a runtime that was built with one.
! grep -q fsanitize "$BUILD/flags" || { echo 'at exit only: the libraries have a sanitizer'; exit 0; }
for runtime in libcudart_static.a libcudart.so.13; do
    ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -DLIBRARY -fvisibility=hidden -Isrc -fPIC -shared \
        "$here/exit_threads.c" "$BUILD/lib/$runtime" -ldl -pthread -o "$work/library.so"
    "$program" close "$work/library.so"
done
