#!/bin/bash
# SPDX-License-Identifier: MIT
# check-code.sh [NAME...]: what checks add to the machine code of the suite's kernels for sm_90, without a
# GPU: ptxas compiles the text that the driver gets under --mode=check, which holds each kernel, its fully
# checked variant and the one that checks the rest, and nvdisasm says what became of their innermost loops.
# All programs of the suite, or these, and then nothing is written into doc/. CHECK_CODE_ROWS: a file that
# gets the rows.
set -eu
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
export BUILD
for tool in nvcc ptxas nvdisasm; do
    command -v $tool >/dev/null || { echo "check-code.sh: no $tool on this machine" >&2; exit 0; }
done
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 test/programs/programs.tsv | cut -f 1)
for name in "${names[@]}"; do
    rm -rf "$T/texts"
    mkdir "$T/texts"
    if ! text=$(test/programs/object "$name" compute_90 ptx 2>"$T/log") ||
        ! "$BUILD/bench/variant_texts" "$text" "$T/texts" >"$T/log" 2>&1 ||
        ! timeout 600 ptxas -arch=sm_90 -c -v -lineinfo "$T/texts/together.ptx" -o "$T/cubin" >"$T/log" 2>&1
    then
        echo "check-code.sh: $name: $(head -n 1 "$T/log")" >&2
        continue
    fi
    nvdisasm -c -gp "$T/cubin" >"$T/sass"
    python3 bench/check_code.py kernels "$name" "$T/texts/together.ptx" "$T/sass" "$T/log"
done >"$T/rows"
[ -s "$T/rows" ] || { echo 'nothing was measured' >&2; exit 77; }
[ -z "${CHECK_CODE_ROWS:-}" ] || cp "$T/rows" "$CHECK_CODE_ROWS"
{
    echo '## Code of kernels under --mode=check'
    echo
    bench/machine
    echo
    release=$(ptxas --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
    programs=$(cut -d ' ' -f 1 "$T/rows" | sort -u | wc -l)
    echo "Instructions of machine code for sm_90, by ptxas ($release), of $programs programs of the suite:" \
        'the kernel itself, the variant that checks everything (check)' \
        'and the one that checks what a proof may leave (rest). hot: of one round of the innermost loop, or' \
        'of the whole kernel if it has none, in both cases without the slow copies that run when something' \
        'may be wrong; a launch that is proved wholly runs the kernel itself.'
    echo
    python3 bench/check_code.py table "$T/rows"
} >"$T/section"
cat "$T/section"
[ $# -gt 0 ] || bench/finish check-code "$T/section"
