#!/bin/bash
# SPDX-License-Identifier: MIT
# proofs.sh [NAME FOLDER]...: how far the accesses of kernels are understood, what the analysis takes, and
# what an evaluation takes, on the programs of the suite and on folders of other programs. A folder has
#   *.ptx    the programs' PTX
#   *.json   reports of `moat explain --format=json`, one for each program that was run; may be missing
#   about    a line that says which programs these are; may be missing
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
            printf " %.3f + %.3f | %.0f / %.0f |", v["analysis_s_per_mb"], v["closed_s_per_mb"],
                v["eval_ns_median"], v["eval_ns_99"]
            printf " %.0f / %.0f |", v["again_ns_median"], v["again_ns_99"]
            printf " %.0f / %.0f | %.1f %% |\n", v["other_ns_median"], v["other_ns_99"],
                100 * v["closed"] / v["evaluated"]
        }' "$T/out"
    sed -n 's/^reason \([0-9]*\) [0-9]* \(.*\)/\1 \2/p' "$T/out" | sort -rn >"$T/reasons-$name"
}
reasons() {  # reasons NAME
    echo
    echo "Why accesses of $1 are not of A to C, by cause:"
    echo
    while read -r n why; do
        [ "$n" = 0 ] || echo "- $n: $why"
    done <"$T/reasons-$1"
}
names=() folders=()
while [ $# -gt 1 ]; do
    names+=("$1") folders+=("$2")
    shift 2
done
{
    echo "## Proofs"
    echo
    "$here/machine"
    echo
    echo "Static accesses by the form of their address, in percent (doc/proofs.md has the letters);"
    echo "kernels in which all are of A to C and nothing is called; seconds of analysis per MB of PTX,"
    echo "without parsing, and of making the first closed forms; nanoseconds of an evaluation for a launch"
    echo "of 64 blocks of 256 threads, median of the kernels and 99th percentile; of the answer for a launch"
    echo "like an earlier one, which is remembered; of the answer for a launch with another grid and other"
    echo "integers than all before (of each kernel the median of 31 such launches, after four others); and"
    echo "the kernels for which a closed form gives that answer."
    echo
    echo "| programs | kernels | accesses | A | B | C | D | E | F | A to C | whole | s/MB | evaluation |" \
        "remembered | another launch | closed form |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    row suite "$suite"/*.ptx
    row 'suite without CUB' $(ls "$suite"/*.ptx | grep -v /cub.ptx)
    for i in "${!names[@]}"; do
        row "${names[i]}" "${folders[i]}"/*.ptx
    done
    echo
    for i in "${!names[@]}"; do
        [ ! -f "${folders[i]}/about" ] || echo "- ${names[i]}: $(cat "${folders[i]}/about")"
    done
    for i in "${!names[@]}"; do
        compgen -G "${folders[i]}/*.json" >/dev/null || continue
        "$here/proof_runs.py" "${names[i]}" "${folders[i]}"/*.json >>"$T/runs"
    done
    if [ -s "$T/runs" ]; then
        echo
        echo "With the arguments of real launches (moat explain, CPU device): programs that launched kernels,"
        echo "those kernels, others without PTX, their launches; kernels of which every access is bounded in"
        echo "all launches, and of which every one is known to be inside its buffer or unreachable; accesses"
        echo "that are bounded, in percent; nanoseconds that a launch's answer took, evaluated, remembered or"
        echo "by a closed form: the median of the launches, and the 99th percentile of the kernels' 99th"
        echo "percentiles."
        echo
        echo "| programs | ran | kernels | no PTX | launches | bounded | inside | accesses | answer |"
        echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
        cat "$T/runs"
    fi
    reasons suite
    for name in "${names[@]}"; do
        reasons "$name"
    done
} >"$T/section"
cat "$T/section"
"$here/section" proofs <"$T/section"
