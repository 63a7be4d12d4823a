#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# What a GPU answers to copies of boxes of tensors, without moat, and what the CPU device does: the error, and
# sums of the tensor and of shared memory, for each case of test/guard/tensor_answers.cu in a process of its
# own. Prints all answers, those that differ with both. TENSOR_ANSWERS=PROGRAM: that program is the GPU's.
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-$PWD}
MOAT=${MOAT:-$BUILD/bin/moat}
[ -n "${TENSOR_ANSWERS:-}" ] || nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
compile() {  # compile NAME OPTION...
    nvcc -std=c++17 -gencode arch=compute_90,code=compute_90 -o "$T/$1" "${@:2}" \
        test/guard/tensor_answers.cu >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }
}
compile answers -cudart shared -L"$BUILD/lib/moat"
gpu=${TENSOR_ANSWERS:-$T/gpu}
[ -n "${TENSOR_ANSWERS:-}" ] || compile gpu
same=0 different=0

answer() {  # answer COMMAND...: its line, or that it hangs
    local line
    line=$(timeout 20 "$@" 2>/dev/null </dev/null)
    [ $? != 124 ] || line="${*: -1}: does not end"
    echo "${line:-${*: -1}: no answer}"
}
export -f answer

export T MOAT gpu
"$MOAT" --device=cpu --mode=off "$T/answers" list >"$T/cases" 2>/dev/null </dev/null
xargs -P 4 -I{} bash -c 'answer "$gpu" {} >"$T/{}.gpu"' <"$T/cases"
xargs -P 4 -I{} bash -c 'answer "$MOAT" --device=cpu --mode=off "$T/answers" {} >"$T/{}.cpu"' <"$T/cases"
while read -r name; do
    if cmp -s "$T/$name.gpu" "$T/$name.cpu"; then
        same=$((same + 1))
        cat "$T/$name.gpu"
    else
        different=$((different + 1))
        echo "FAIL $(cat "$T/$name.gpu"); the CPU device: $(sed 's/^[^:]*: //' "$T/$name.cpu")"
    fi
done <"$T/cases"
echo "$same passed, $different failed"
[ $different = 0 ] && [ $same -gt 0 ]
