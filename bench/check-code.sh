#!/bin/bash
# SPDX-License-Identifier: MIT
# check-code.sh [NAME...]: what checks add to the machine code of the suite's kernels for sm_90, without a
# GPU: ptxas compiles the texts that the driver gets under --mode=check, of the program and of each kernel's
# fully checked variant and the one that checks the rest, with as many registers as a launch on an H200 allows
# them, and nvdisasm says what became of their innermost loops.
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
compile() {  # FILE, without .ptx
    timeout 600 ptxas -arch=sm_90 -c -v -lineinfo "$1.ptx" -o "$1.cubin" >"$1.log" 2>&1 || return
    nvdisasm -c -gp "$1.cubin" >"$1.sass" 2>>"$1.log"
}
for name in "${names[@]}"; do
    rm -rf "$T/texts"
    mkdir "$T/texts"
    own=$T/texts/own files=()
    if ! text=$(test/programs/object "$name" compute_90 ptx 2>"$T/log") || ! cp "$text" "$own.ptx" ||
        ! compile "$own" || ! python3 bench/check_code.py limits "$own.ptx" "$own.log" >"$T/limits" ||
        ! "$BUILD/bench/variant_texts" "$own.ptx" "$T/texts" "$T/limits" >"$T/log" 2>&1
    then
        echo "check-code.sh: $name: $(cat "$T/log" "$own.log" 2>&1 | head -n 1)" >&2
        continue
    fi
    texts=("$own.ptx" "$T"/texts/variant-*.ptx)
    [ -f "${texts[1]}" ] || texts=("$T/texts/together.ptx")  # its variants cannot be apart
    for text in "${texts[@]}"; do
        [ "$text" = "$own.ptx" ] || compile "${text%.ptx}" || {
            echo "check-code.sh: $name: $(head -n 1 "${text%.ptx}.log")" >&2
            continue
        }
        files+=("$text" "${text%.ptx}.sass" "${text%.ptx}.log")
    done
    python3 bench/check_code.py kernels "$name" "${files[@]}"
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
        'may be wrong; all but slow copies: the same of the whole kernel; a launch that is proved wholly' \
        'runs the kernel itself.'
    echo
    python3 bench/check_code.py table "$T/rows"
} >"$T/section"
cat "$T/section"
[ $# -gt 0 ] || bench/finish check-code "$T/section"
