#!/bin/bash
# SPDX-License-Identifier: MIT
# What checks add to code, without a GPU: for the kernels of bench/shadow_kernels.cu the instructions of PTX
# that a warp executes, counted by the CPU device (--stats, without proofs), and their machine code and
# registers by ptxas for sm_90, the judge left out. SECTION=FILE: the tables go there instead of into
# doc/results.md.
set -eu
here=$(dirname "$0")
for tool in nvcc ptxas readelf; do
    command -v $tool >/dev/null || { echo "shadow-code.sh: no $tool on this machine" >&2; exit 0; }
done
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
nvcc -O3 -std=c++17 -gencode arch=compute_80,code=compute_80 -cudart shared -L"$BUILD/lib/moat" \
    -o "$T/kernels" "$here/shadow_kernels.cu"
nvcc -O3 -std=c++17 -arch=compute_90 -ptx -o "$T/off.ptx" "$here/shadow_kernels.cu"

executed() {  # executed LABEL OPTION...: rows LABEL executed KERNEL NUMBER
    local label=$1
    shift
    timeout 300 "$MOAT" --device=cpu --stats "$@" "$T/kernels" 1 12 2>&1 </dev/null | awk -v label="$label" '
        /^moat: kernels: +[0-9]/ {
            name = $NF; sub(/^__moat_check_/, "", name)
            print label, "executed", name, $6
        }' >>"$T/rows"
}
compiled() {  # compiled LABEL PREFIX FILE: rows LABEL code|registers KERNEL NUMBER
    ptxas -arch=sm_90 -c -v -o "$T/cubin" "$3" >"$T/log" 2>&1
    readelf -SW "$T/cubin" 2>/dev/null | awk -v label="$1" -v prefix=".text.$2" '
        { sub(/^ *\[ *[0-9]+\] */, "") }
        index($1, prefix "_Z") == 1 && $2 == "PROGBITS" {
            print label, "code", substr($1, length(prefix) + 1), ("0x" $5)
        }' | while read -r label what name size; do echo "$label $what $name $((size / 16))"; done >>"$T/rows"
    awk -v label="$1" -v prefix="$2" '
        /Compiling entry function/ { gsub("\047", ""); entry = $7 }
        /Used [0-9]+ registers/ && index(entry, prefix "_Z") == 1 {
            for (i = 1; i < NF; i++)
                if ($i == "Used") print label, "registers", substr(entry, length(prefix) + 1), $(i + 1)
        }' "$T/log" >>"$T/rows"
}

executed native --mode=off
executed check --mode=check --proofs=off
for scale in 256 128; do
    executed $scale --mode=shadow --proofs=off --shadow-roots=no --shadow-scale=$scale
done
executed shadow --mode=shadow --proofs=off
executed unloaded --mode=shadow --proofs=off --shadow-load=no
compiled native '' "$T/off.ptx"
for pass in check:check shadow:shadow 256:shadow_alone 128:shadow_128 8:shadow_8 unloaded:shadow_unloaded; do
    "$MOAT" ptx instrument --pass="${pass#*:}" "$T/off.ptx" >"$T/on.ptx"
    compiled "${pass%:*}" __moat_check_ "$T/on.ptx"
done

table() {  # table WHAT FACTOR LABEL...: a row for each kernel; FACTOR 1: over the first label
    awk -v what="$1" -v ratio="$2" -v labels="${*:3}" '
        $2 == what { v[$1, $3] = $4; if (!($3 in seen)) { seen[$3]; name[++n] = $3 } }
        END {
            nl = split(labels, label, " ")
            printf "| kernel |"; for (l = 1; l <= nl; l++) printf " %s |", label[l]; print ""
            printf "| --- |"; for (l = 1; l <= nl; l++) printf " ---: |"; print ""
            for (i = 1; i <= n; i++) {
                short = name[i]; sub(/^_Z[0-9]+/, "", short)
                length_of = name[i]; sub(/^_Z/, "", length_of)
                base = v[label[1], name[i]]
                printf "| %s | %d |", substr(short, 1, length_of + 0), base
                for (l = 2; l <= nl; l++) {
                    now = v[label[l], name[i]]
                    if (!now || !base) printf " |"
                    else if (ratio) { printf " %.2f |", now / base; sum[l] += log(now / base); count[l]++ }
                    else printf " %d |", now
                }
                print ""
            }
            if (ratio) {
                printf "| geometric mean | |"
                for (l = 2; l <= nl; l++) printf " %.2f |", count[l] ? exp(sum[l] / count[l]) : 0
                print ""
            }
        }' "$T/rows"
}
{
    echo '## Code of --mode=check and --mode=shadow'
    echo
    echo 'Kernels without proofs; `256`, `128` and `8`: with `--shadow-roots=no`, by the' \
        'bytes of memory for a byte of the shadow;' \
        '`unloaded`: 256, without the load. Instructions of PTX that' \
        'warps execute, on small data, over those of the kernel itself:'
    echo
    table executed 1 native check shadow 256 128 unloaded
    echo
    echo 'Instructions of machine code, by `ptxas` for sm_90, with the slow copies that run when something' \
        'may be wrong, but without the judge:'
    echo
    table code 0 native check shadow 256 128 8 unloaded
    echo
    echo 'Registers:'
    echo
    table registers 0 native check shadow 256 128 8 unloaded
} >"$T/section"
cat "$T/section"
"$here/finish" shadow-code "$T/section"
