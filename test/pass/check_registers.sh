#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Checked kernels of small needs get no more registers than blocks of full residency leave them, and their
# loops keep nothing in memory: what lives across a call of the judge is saved there (pass_check_save.c).
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
command -v ptxas >/dev/null || { echo 'no ptxas on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
for name in stencil2d strsearch transpose reduce histogram; do
    nvcc -O3 -arch=compute_90 -ptx -Itest/programs "test/programs/$name.cu" -o "$T/$name.ptx" || exit 1
    "$MOAT" ptx instrument --pass=check "$T/$name.ptx" >"$T/checked.ptx" || exit 1
    ptxas -arch=sm_90 -v "$T/checked.ptx" -o "$T/cubin" >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }
    # Lines of an entry: its name, its own frame and spills, its registers.
    while read -r kernel registers spilled; do
        if [ "$registers" -le 32 ] && [ "$spilled" = 0 ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL $name: $kernel: $registers registers, $spilled bytes of spilled loads"
        fi
    done < <(awk '
        /Compiling entry function/ { gsub("\047", ""); entry = $7 }
        /Function properties for/ { properties = $NF }
        /bytes stack frame/ && properties == entry { spilled = $9 }
        /Used [0-9]+ registers/ && entry ~ /^__moat_/ {
            for (i = 1; i < NF; i++) if ($i == "Used") print entry, $(i + 1), spilled
        }' "$T/log")
done
[ $passed -gt 4 ] || { echo 'too few checked kernels'; failed=$((failed + 1)); }
echo "$passed passed, $failed failed"
[ $failed = 0 ]
