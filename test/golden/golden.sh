#!/bin/bash
# SPDX-License-Identifier: MIT
# Checks whether the CPU device computes what an H200 computed: every combination of test/golden, with each
# instruction set that this machine has. `golden check` prints more; `golden record --only-missing` adds what
# is not recorded.
# builds: one
# slow
set -u
golden=$BUILD/tool/golden passed=0 failed=0 covered=
if [ ! -x "$golden" ]; then
    echo 'there is no tool to compare with'
    exit 77
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
for lanes in plain avx2 avx512; do
    "$golden" check test/golden/h200.golden --libcuda="$BUILD/lib/libmoat-cpu.so" --lanes=$lanes --quiet \
        >"$log" 2>&1
    case $? in
    0)
        passed=$((passed + 1))
        covered=$(sed -n 's/^covered: //p' "$log")
        grep agree "$log"
        ;;
    77) tail -n 1 "$log" ;;
    *)
        failed=$((failed + 1))
        echo "FAIL $lanes"
        tail -n 25 "$log" | cut -c 1-250
        ;;
    esac
done
[ -z "$covered" ] || echo "covered: $covered"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
