#!/bin/bash
# SPDX-License-Identifier: MIT
# --stats counts what counted.ptx is known to execute, --times counts nothing, and without either nothing is
# printed.
#
# A block of 64 threads is two warps: A, where 8 of 32 lanes are `low`, and B, where none is. Of the 14
# instructions A executes all (4 + 7 with 32 lanes, 2 with 24, 1 with 8: 408), B all but the store to shared
# memory (13 with 32: 416). So a block makes 27 warp instructions of 824 threads, 2 conditional branches of
# which 1 diverges, 2 loads of 4 sectors each, and 2 stores of 32 each. A launch has 3 blocks.
#
# The faulty launch comes last: one warp like A up to the load, 10 instructions of 280 threads.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0

expect() {  # expect OPTIONS: standard input is what must come, with S for times
    MOAT_OPTIONS=$1 "$BUILD/tool/count_kernels" >"$T/out" 2>"$T/err" ||
        echo "count_kernels: status $?" >>"$T/err"
    sed -E 's/ +/ /g; s/[0-9]+\.[0-9]{6}/S/g' "$T/err" >"$T/got"
    if diff -u - "$T/got"; then
        passed=$((passed + 1))
        echo "ok   ${1:-neither}"
    else
        failed=$((failed + 1))
        echo "FAIL ${1:-neither}"
    fi
}

expect '' </dev/null
expect times <<'END'
moat: kernels: launches seconds cpu-seconds kernel
moat: kernels: 2 S S counted
moat: kernels: 1 S S idle
moat: kernels: launches seconds cpu-seconds kernel
moat: kernels: 2 S S counted
END
expect stats:cpu-threads=1 <<'END'
moat: kernels: launches seconds cpu-seconds warp-insns thread-insns active-% branches divergent ld-global ld-param st-global st-shared sectors kernel
moat: kernels: 2 S S 162 4944 95.4 12 6 12 12 12 6 432 counted
moat: kernels: 1 S S 1 1 3.1 0 0 0 0 0 0 0 idle
moat: kernels: launches seconds cpu-seconds warp-insns thread-insns active-% branches divergent ld-global ld-param st-global st-shared sectors kernel
moat: kernels: 2 S S 91 2752 94.5 7 4 7 7 6 4 220 counted
END
echo "$passed passed, $failed failed"
[ $failed = 0 ]
