#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# A variant with many slow copies tells the driver's compiler that these are cold, and may use as many
# registers as keep the number of blocks that run at once. That changes nothing of what is found: each wrong
# store is reported and left out, and right ones are performed. ptxas takes the text.
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
is() {  # is WHAT WANTED FOUND
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: wanted\n%s\nfound\n%s\n' "$1" "$2" "$3"
    fi
}
nvcc -cudart shared -lineinfo -gencode arch=compute_80,code=compute_80 -L"$BUILD/lib/moat" \
    -o "$T/cold" test/guard/check_cold.cu || exit 1
for wrong in 0 1; do
    XDG_CACHE_HOME=$T/cache "$MOAT" --device=cpu --mode=check "$T/cold" $wrong \
        >"$T/log$wrong" 2>&1 </dev/null
    is "$wrong: left out" "$((wrong * 3)) left out" "$(grep 'left out' "$T/log$wrong")"
done
is 'good: errors' '0 errors' "$(sed -n 's/.*moat: \([0-9]* error.*\)/\1/p' "$T/log0")"
is 'bad: reported' 'heap-buffer-overflow test/guard/check_cold.cu:12 in scatter(int*, int const*)' \
    "$(sed -n 's/^SUMMARY: moat: //p' "$T/log1" | sort -u)"
is 'bad: times' 'report 1 was seen 3 times in all' "$(sed -n 's/.*moat: \(report 1 .*\)/\1/p' "$T/log1")"
# The variant, as the CPU device keeps it: what was linked, one text behind another.
variant=$(grep -rlaF '.pragma "frequency 1"' "$T/cache") || { echo 'FAIL no variant is marked'; exit 1; }
LC_ALL=C awk '/\.version/ { n++; sub(/.*\.version/, ".version") } n == 1' "$variant" >"$T/variant.ptx"
is version '.version 9.0' "$(head -n 1 "$T/variant.ptx")"
is registers '.maxnreg 32' "$(grep '^\.maxnreg' "$T/variant.ptx")"
is 'slow copies' 20 "$(grep -c 'frequency 1"' "$T/variant.ptx")"
is 'what they ask' 20 "$(grep -c '__moat_check_call,' "$T/variant.ptx")"
if command -v ptxas >/dev/null; then
    is ptxas '' "$(ptxas -arch=sm_90 -c "$T/variant.ptx" -o "$T/cubin" 2>&1)"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
