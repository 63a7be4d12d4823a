#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Copies of boxes of tensors on the CPU device: each case of test/guard/tensor_answers.cu has the error, and
# leaves the bytes in the tensor and in shared memory, that an H200 had and left (tensor_answers.expected).
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
program=$(test/guard/compiled 90 tensor_answers 2>"$T/log") || { cat "$T/log"; exit 1; }
passed=0 failed=0

while IFS= read -r wanted; do
    name=${wanted%%:*}
    said=$(timeout 60 "$MOAT" --device=cpu --mode=off "$program" "$name" 2>/dev/null </dev/null)
    if [ "$said" = "$wanted" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $wanted; the CPU device: ${said#*: }"
    fi
done < <(grep -v '^#' test/guard/tensor_answers.expected)

# No case is left out, but those that no GPU has answered yet.
"$MOAT" --device=cpu --mode=off "$program" list 2>/dev/null </dev/null | sort >"$T/cases"
sed -n 's/^\([a-z0-9_]*\):.*/\1/p' test/guard/tensor_answers.expected | sort |
    comm -13 "$T/cases" - >"$T/gone"
if [ -s "$T/gone" ]; then
    failed=$((failed + 1))
    echo "FAIL no such case: $(paste -sd ' ' "$T/gone")"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 40 ]
