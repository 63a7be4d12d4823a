#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The files that documents name exist, and the check would see if they did not.
set -eu
script/check-named-files README.md doc/*.md

T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
expect() {  # expect 0|1 TEXT: whether the check complains of it
    local found=0
    printf '%s\n' "$2" >"$T/text"
    script/check-named-files "$T/text" >"$T/log" || found=1
    [ "$found" = "$1" ] || { echo "$2: complaints $found, expected $1"; exit 1; }
}
expect 0 'See `src/ptx/ops.def`, `ptx/ops.def`, `ops.def` and `src/*/*_test.c`.'
expect 0 '`src/flow/{launch_text,judge}_test.c`, `NAME_test.c`, `pass_NAME.c`, `cuda.h`'
expect 1 '`src/ptx/ops2.def`'
expect 1 '`test/guard/count.sh`'
expect 1 '`ops2.def` beside `ops.def`'
expect 1 '`src/flow/{launch_text,judge2}_test.c`'
expect 1 '`test/nothing_*.sh`'
