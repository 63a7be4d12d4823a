#!/bin/bash
# SPDX-License-Identifier: MIT
# proofs.sh [NAME FOLDER]...: how far the accesses of kernels are understood, what the analysis takes, and
# what an evaluation takes, on the programs of the suite and on folders of PTX files.
set -eu
here=$(dirname "$0")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
suite=$BUILD/suite-ptx
mkdir -p "$suite"
if nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null); then
    for source in "$here"/../test/programs/*.cu; do
        to=$suite/$(basename "$source" .cu).ptx
        [ "$to" -nt "$source" ] && continue
        "$nvcc" -std=c++17 -arch=sm_90a -lineinfo -ptx -o "$to" "$source" 2>/dev/null || rm -f "$to"
    done
fi
compgen -G "$suite/*.ptx" >/dev/null ||
    { echo 'proofs.sh: no nvcc here, so no PTX of the suite' >&2; exit 0; }

row() {  # row NAME FILE...
    local name=$1
    shift
    "$BUILD/bench/proof_rate" "$@" >"$T/out"
    awk -v name="$name" '
        { v[$1] = $2 } $1 == "form" { form[$2] = $3 }
        END {
            all = v["accesses"]
            printf "| %s | %d | %d |", name, v["kernels"], all
            for (i = 1; i <= 6; i++)
                printf " %.1f |", 100 * form[substr("ABCDEF", i, 1)] / all
            printf " %.1f |", 100 * (form["A"] + form["B"] + form["C"]) / all
            printf " %.0f %% |", 100 * v["whole"] / v["kernels"]
            printf " %.3f | %.0f / %.0f |\n", v["analysis_s_per_mb"], v["eval_ns_median"], v["eval_ns_99"]
        }' "$T/out"
    sed -n 's/^reason \([0-9]*\) [0-9]* \(.*\)/\1 \2/p' "$T/out" | sort -rn >"$T/reasons-$name"
}
{
    echo "## Proofs"
    echo
    "$here/machine"
    echo
    echo "Static accesses by the form of their address, in percent (doc/proofs.md has the letters);"
    echo "kernels in which all are of A to C and nothing is called; seconds of analysis per MB of PTX,"
    echo "without parsing; nanoseconds of an evaluation for a launch of 64 blocks of 256 threads, median of"
    echo "the kernels and 99th percentile."
    echo
    echo "| programs | kernels | accesses | A | B | C | D | E | F | A to C | whole | s/MB | evaluation |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    row suite "$suite"/*.ptx
    row 'suite without CUB' $(ls "$suite"/*.ptx | grep -v /cub.ptx)
    while [ $# -gt 1 ]; do
        row "$1" "$2"/*.ptx
        shift 2
    done
    echo
    echo "Why accesses of the suite are not of A to C, by cause:"
    echo
    while read -r n why; do
        [ "$n" = 0 ] || echo "- $n: $why"
    done <"$T/reasons-suite"
} >"$T/section"
cat "$T/section"
"$here/section" proofs <"$T/section"
