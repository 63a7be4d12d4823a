#!/bin/sh
# SPDX-License-Identifier: MIT
# builds: one
#
# Compares src/driver with a libcuda: its exports, what its cuGetProcAddress answers to every name
# and version, and its names of results. Takes the path of the library, or else libcuda.so.1.
# Exit status: 0 all alike, 1 some difference, 77 no such library.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
src=$here/../../src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

${CC:-cc} -std=gnu11 -I "$src" "$here/probe_libcuda.c" "$src/driver/driver.c" -ldl -o "$work/probe"
status=0
"$work/probe" "$@" || status=$?
exit $status
