#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Checked kernels of small needs get no more registers than blocks of full residency leave them, and keep
# nothing else in memory: what lives across a call of the judge is saved there (pass_check_save.c), and the
# judge is a text of its own that is compiled with few registers. The texts are those that the driver gets;
# ptxas and nvlink take them as the driver does.
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
for tool in ptxas nvlink; do
    command -v $tool >/dev/null || { echo "no $tool on this machine"; exit 77; }
done
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
{
    printf '.version 7.8\n.target sm_90\n.address_size 64\n'
    sed -n 's/^"\(.*\)\\n"$/\1/p' src/kcheck/kcheck_functions.inc | sed 's/\\\(["\\]\)/\1/g'
} >"$T/judge.ptx"
ptxas -arch=sm_90 -c -maxrregcount 32 "$T/judge.ptx" -o "$T/judge.cubin" || exit 1
# Programs of the suite, compiled as one: the driver gets one text with the kernels of all.
object=$(test/programs/object strsearch,stencil2d,transpose,reduce,histogram 75) &&
    nvcc -cudart shared -L"$BUILD/lib/moat" "$object" -o "$T/strsearch" || exit 1
IFS=$'\t' read -r _ _ args _ < <(grep '^strsearch	' test/programs/programs.tsv)
# shellcheck disable=SC2086
XDG_CACHE_HOME=$T/cache "$MOAT" --device=cpu --mode=check --check-variants=together \
    --dump-rewritten="$T/dump" "$T/strsearch" $args >"$T/log" 2>&1 </dev/null || { cat "$T/log"; exit 1; }
ptxas -arch=sm_90 -c -v "$T"/dump/*.ptx -o "$T/cubin" >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }
nvlink -arch=sm_90 "$T/cubin" "$T/judge.cubin" -o "$T/linked" || exit 1
# Lines of an entry: its name, its own frame and spills, its registers.
while read -r kernel registers spilled; do
    if [ "$registers" -le 32 ] && [ "$spilled" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $kernel: $registers registers, $spilled bytes of spilled loads"
    fi
done < <(awk '
    /Compiling entry function/ { gsub("\047", ""); entry = $7 }
    /Function properties for/ { properties = $NF }
    /bytes stack frame/ && properties == entry { spilled = $9 }
    /Used [0-9]+ registers/ && entry ~ /^__moat_/ {
        for (i = 1; i < NF; i++) if ($i == "Used") print entry, $(i + 1), spilled
    }' "$T/log")
# How long a pattern in constant memory is, is known at the launch: what checks the rest leaves its loads out,
# so that none is there twice, with a check and in the copy behind it.
if [ "$(sed -n '/entry __moat_rest/,$p' "$T"/dump/*.ptx | grep -c 'ld.const.u8')" = 1 ]; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo 'FAIL strsearch: the rest variant checks the pattern'
fi
[ $passed -gt 4 ] || { echo 'too few checked kernels'; failed=$((failed + 1)); }
echo "$passed passed, $failed failed"
[ $failed = 0 ]
