#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Random matrices, copies and boxes under --mode=check on a real GPU, each kind of instruction alone
# (enum kind of test/guard/check_wholes.c): where a kind ends the context, the others show what they do.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
failed=0 number=0
for kind in ldmatrix stmatrix wmma.load wmma.store cp.async bulk-to-shared bulk-to-global bulk-reduce \
    st.async red.async box-load box-store box-add; do
    class=matrices
    [ $number -lt 4 ] || class=copies
    [ $number -lt 10 ] || class=boxes
    CHECK_RANDOM_KIND=$number timeout 60 "$MOAT" --device=gpu --mode=check --no-cache --format=json \
        --log-file="$T/log" --print-limit=0 "$BUILD/tool/check_wholes" 17 60 $class \
        >"$T/plan" 2>"$T/err" </dev/null
    if result=$(python3 test/guard/check_compare.py "$T/plan" "$T/log" 2>&1); then
        echo "ok   $kind"
    else
        failed=1
        echo "FAIL $kind: $(head -n 3 <<<"$result" | paste -sd ' '); $(tail -n 1 "$T/err")"
    fi
    number=$((number + 1))
done
exit $failed
