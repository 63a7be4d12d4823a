#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# What the machine's own driver answers to odd calls, against the H200 that answers.expected was recorded on.
# Other GPUs and other versions of the driver may differ. RECORD=1 writes answers.expected anew.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
for f in "$BUILD/tool/answers" test/cpu/answers.expected; do
    [ -e "$f" ] || { echo "packed without $f"; exit 77; }
done
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
"$BUILD/tool/answers" --libcuda=libcuda.so.1 >"$T/got" || exit 1
if [ -n "${RECORD:-}" ]; then
    cp "$T/got" test/cpu/answers.expected
elif [ "$(head -n 1 "$T/got")" != "$(head -n 1 test/cpu/answers.expected)" ]; then
    echo "$(head -n 1 "$T/got"): not what the answers were recorded on"
    exit 77
fi
diff test/cpu/answers.expected "$T/got"
