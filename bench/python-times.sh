#!/bin/bash
# SPDX-License-Identifier: MIT
# Python on the CPU device: Triton's kernels after compilation, an operator of PyTorch, and what moat adds to
# `import torch`, ROUNDS times each way in turns. It needs BUILD/venv (make check-python), and writes the
# section `python` of doc/results.md; SECTION=FILE: to that file.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build} MOAT=${MOAT:-$BUILD/bin/moat} ROUNDS=${ROUNDS:-9}
PYTHON=$BUILD/venv/bin/python
[ -x "$PYTHON" ] || { echo 'no virtual environment: make check-python makes it'; exit 0; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export TRITON_CACHE_DIR=$T/triton TRITON_DEFAULT_FP_FUSION=1

took() {  # took STATUS COMMAND...: milliseconds of processor time; it does not depend on what else runs
    local TIMEFORMAT='%U %S' status=$1
    shift
    { time { "$@" >/dev/null 2>&1 </dev/null; echo $? >"$T/status"; }; } 2>"$T/time"
    [ "$(cat "$T/status")" = "$status" ] || { echo "bench/python-times.sh: status of $*" >&2; exit 1; }
    awk '{ printf "%d\n", ($1 + $2) * 1000 }' "$T/time"
}
for mode in api check; do
    "$MOAT" --device=cpu --mode=$mode "$PYTHON" bench/python_times.py >"$T/times-$mode" 2>"$T/errors" ||
        { tail -n 5 "$T/errors"; exit 1; }
    sed "s/^[^\t]*/&\t$mode/" "$T/times-$mode" >>"$T/times"
done
took 0 "$PYTHON" -c 'import torch' >/dev/null || exit 1
for ((i = 0; i < ROUNDS; i++)); do
    plain=$(took 0 "$PYTHON" -c 'import torch') || exit 1
    # 98: nothing of CUDA is used.
    with=$(took 98 "$MOAT" --device=cpu "$PYTHON" -c 'import torch') || exit 1
    echo "$plain $with" >>"$T/imports"
done
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
plain=$(cut -d' ' -f1 "$T/imports" | median)
with=$(cut -d' ' -f2 "$T/imports" | median)
{
    echo '## Python on the CPU device'
    echo
    bench/machine
    "$PYTHON" -c 'from importlib.metadata import version as v
print("PyTorch {}, Triton {}. After compilation, by the clock.".format(v("torch"), v("triton")))'
    echo
    echo '| what | mode | ms, median | worst |'
    echo '| --- | --- | --- | --- |'
    awk -F '\t' '{ printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4 }' "$T/times"
    echo
    awk -v p="$plain" -v w="$with" -v n="$ROUNDS" 'BEGIN {
        printf "`import torch` in a process of its own, processor time, median of %d: ", n
        printf "%d ms, under moat %d ms", p, w
        printf " (%+.1f%%).\n", 100 * (w - p) / p }'
} | bench/section python ${SECTION:+"$SECTION"}
