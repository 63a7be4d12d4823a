#!/bin/bash
# SPDX-License-Identifier: MIT
# How long launches of the suite wait for checked variants that are compiled when they are first needed, with
# an empty cache, and how often the kernel's other variant was there, which could have run meanwhile.
# On a GPU if there is one, otherwise on the CPU device. check-variants.sh [NAME...]: all programs, or these.
set -eu
here=$(dirname "$0")
! command -v nvcc >/dev/null && { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
device=cpu where='the CPU device, which decodes what a driver compiles'
! nvidia-smi -L >/dev/null 2>&1 || { device=gpu where='the GPU'; }
programs=test/programs/programs.tsv
[ $# -gt 0 ] || mapfile -t names < <(tail -n +2 "$programs" | cut -f1)
[ $# -eq 0 ] || names=("$@")

of() {  # of LABEL: a number of the summary; 0 if it is not there
    local n
    n=$(sed -n "s/^ *$1 *\([0-9][0-9,]*\)\$/\1/p" "$T/log" | tr -d , | tail -n1)
    echo "${n:-0}"
}
: >"$T/rows"
ran=0 needing=0 all=0 beside=0
for name in "${names[@]}"; do
    IFS=$'\t' read -r _ sm args _ < <(grep "^$name	" "$programs")
    file=$(test/programs/object "$name" "$sm") || continue
    nvcc -cudart shared -L"$BUILD/lib/moat" "$file" -o "$T/$name"
    read -ra args <<<"$args"
    XDG_CACHE_HOME=$T/cache-$name timeout 500 "$MOAT" --device=$device --mode=check --log-file="$T/log" \
        "$T/$name" "${args[@]}" >"$T/out" 2>&1 </dev/null || { echo "$name: status $?" >&2; continue; }
    ran=$((ran + 1))
    made=$(of 'checked variants compiled when a launch first needed them')
    [ "$made" != 0 ] || continue
    other=$(of "of these where the kernel's other checked variant was there")
    needing=$((needing + 1)) all=$((all + made)) beside=$((beside + other))
    printf '| %s | %s | %s | %s | %.1f |\n' "$name" "$(of 'kernel launches checked')" "$made" "$other" \
        "$(($(of 'nanoseconds for which launches waited for such variants') / 100000))e-1" >>"$T/rows"
done
{
    echo "## Waiting for checked variants$([ $device = cpu ] || echo ', on a GPU')"
    echo
    "$here/machine"
    echo "On $where. $ran programs of the suite, each with an empty cache; $needing needed $all variants" \
        "in all, $beside of them where the kernel's other variant was there. All others made no launch" \
        "that needs one."
    echo
    echo '| program | checked launches | variants | beside the other one | waited ms |'
    echo '| --- | ---: | ---: | ---: | ---: |'
    cat "$T/rows"
} >"$T/section"
cat "$T/section"
"$here/finish" "check-variants-$device" "$T/section"
