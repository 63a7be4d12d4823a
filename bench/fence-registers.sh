#!/bin/bash
# SPDX-License-Identifier: MIT
# fence-registers.sh [FILE]: registers and machine code of the suite's kernels for sm_90, as the program has
# them and fenced, by ptxas; as a section of FILE (doc/results.md). Needs no GPU. FENCE_PROGRAMS: names of
# programs, all by default.
set -eu
here=$(dirname "$0")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
for tool in nvcc ptxas readelf; do
    command -v $tool >/dev/null || { echo "fence-registers.sh: no $tool here" >&2; exit 0; }
done
ptx=$BUILD/fence-ptx
mkdir -p "$ptx"

# KERNEL REGISTERS SPILLS BYTES of each kernel, from ptxas' messages and the sections of its output.
measure() {  # measure FILE.ptx TO
    timeout 600 ptxas -arch=sm_90 -c -v "$1" -o "$T/cubin" >"$T/said" 2>&1 || return 1
    readelf -SW "$T/cubin" 2>/dev/null |
        sed -n 's/^ *\[ *[0-9]*\] \.text\.\([^ ]*\) *[A-Z]* *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\).*/\1 \2/p' \
            >"$T/sections"
    awk 'FILENAME == ARGV[1] { bytes[$1] = $2; next }
        /Compiling entry function/ { gsub("\047", ""); entry = $7 }
        /Function properties for/ { properties = $NF }
        /bytes stack frame/ && properties == entry { spilled = $5 + $9 }
        /Used [0-9]+ registers/ {
            for (i = 1; i < NF; i++) if ($i == "Used") registers = $(i + 1)
            if (entry != "") print entry, registers, spilled, bytes[entry]
            entry = ""
        }' "$T/sections" "$T/said" >"$2"
}

: >"$T/all"
: >"$T/failed"
for source in "$here"/../test/programs/*.cu; do
    name=$(basename "$source" .cu)
    [[ -z ${FENCE_PROGRAMS:-} || " $FENCE_PROGRAMS " == *" $name "* ]] || continue
    [ "$ptx/$name.ptx" -nt "$source" ] ||
        nvcc -std=c++17 -O3 -arch=compute_90 -ptx -o "$ptx/$name.ptx" "$source" 2>/dev/null || continue
    measure "$ptx/$name.ptx" "$T/own" || continue
    for pass in fence fence_watchdog; do
        if ! "$BUILD/bench/fence_text" $pass "$ptx/$name.ptx" >"$T/fenced.ptx" ||
            ! measure "$T/fenced.ptx" "$T/fenced"; then
            echo "$pass $name" >>"$T/failed"
            continue
        fi
        awk -v pass=$pass -v name="$name" '
            FILENAME == ARGV[1] { registers[$1] = $2; bytes[$1] = $4; spills[$1] = $3; next }
            { kernel = $1; way = "compared" }
            sub(/^__moat_fence_/, "", kernel) { way = "masked" }
            sub(/^__moat_rest_/, "", kernel) { way = "rest" }
            kernel in registers {
                print pass, way, name, kernel, registers[kernel], $2, bytes[kernel], $4, spills[kernel], $3
            }' "$T/own" "$T/fenced" >>"$T/all"
    done
done
[ -s "$T/all" ] || { echo 'fence-registers.sh: nothing measured' >&2; exit 1; }
hex() {  # sizes of sections are hexadecimal
    while read -r pass way name kernel r0 r1 b0 b1 s0 s1; do
        echo "$pass $way $name $kernel $r0 $r1 $((16#$b0)) $((16#$b1)) $s0 $s1"
    done <"$T/all"
}
hex >"$T/rows"
{
    echo '## Registers and code of fenced kernels'
    echo
    "$here/machine"
    echo
    release=$(ptxas --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
    kernels=$(cut -d ' ' -f 3,4 "$T/rows" | sort -u | wc -l)
    programs=$(cut -d ' ' -f 3 "$T/rows" | sort -u | wc -l)
    echo "By ptxas -c for sm_90 ($release), of $kernels kernels of $programs programs of the suite. compared:"
    echo 'the kernel itself; masked: its variant for launches whose pointers lie in the partition, where it'
    echo 'has one; rest: the variant that masks what a proof does not bound. Code: bytes of the kernel'
    echo 'after the fence over those before, without the functions that it calls; geometric mean and largest.'
    echo 'Registers more than before: of how many kernels none, at most 8; median; most.'
    echo
    echo '| | kernels | none more | at most 8 more | median | most | spill and did not | code | largest |'
    echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- |'
    for pass in fence fence_watchdog; do
        for way in compared masked rest; do
            grep "^$pass $way " "$T/rows" | awk '{ print $6 - $5, $8 / $7, ($10 > 0 && $9 == 0) }' | sort -n |
                awk -v what="$way$([ $pass = fence ] || echo ', with the watchdog')" '
                    { more[NR] = $1; none += $1 <= 0; few += $1 <= 8; sum += log($2); spill += $3
                      if ($2 > largest) largest = $2 }
                    END {
                        if (NR)
                            printf "| %s | %d | %.0f %% | %.0f %% | %d | %d | %d | %.2f | %.2f |\n", what, NR,
                                100 * none / NR, 100 * few / NR, more[int((NR + 1) / 2)], more[NR], spill,
                                exp(sum / NR), largest
                    }'
        done
    done
    echo
    echo 'Kernels whose masked or rest variant has more than 8 registers more, or spills (bytes), without the'
    echo 'watchdog; registers:'
    echo
    echo '| program | kernel | own | compared | masked | rest | spilled: own | compared | masked | rest |'
    echo '| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |'
    grep '^fence ' "$T/rows" | awk '
        { at = $3 " " $4; own[at] = $5; spilled[at] = $9; to[at, $2] = $6; spills[at, $2] = $10 }
        $2 != "compared" && ($6 - $5 > 8 || $10 > $9) { worse[at] = $6 - $5 }
        END {
            for (at in worse) {
                split(at, part, " ")
                printf "%d\t%s\t%s\t%d", worse[at], part[1], part[2], own[at]
                row("to")
                printf "\t%d", spilled[at]
                row("spills")
                print ""
            }
        }
        function row(what, i, way) {
            split("compared masked rest", way, " ")
            for (i = 1; i <= 3; i++)
                if (!((at, way[i]) in to)) printf "\t"
                else printf "\t%d", what == "to" ? to[at, way[i]] : spills[at, way[i]]
        }' | sort -t "$(printf '\t')" -k1,1nr -k2 | cut -f 2- | c++filt -p |
        sed -e 's/\(\t[^\t]\{60\}\)[^\t]*/\1.../' -e 's/\t/ | /g' -e 's/^/| /' -e 's/$/ |/'
    if [ -s "$T/failed" ]; then
        echo
        echo "Not compiled: $(sed 's/ / of /' "$T/failed" | paste -sd ';' | sed 's/;/; /g')."
    fi
} | tee >("$here/section" fence-registers "$@")
wait
