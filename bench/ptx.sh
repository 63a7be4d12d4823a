#!/bin/bash
# SPDX-License-Identifier: MIT
# The PTX front end on the largest PTX module inside the toolkit's cuBLAS, or on the file given.
set -eu
here=$(dirname "$0")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT

if [ $# -gt 0 ]; then
    cp "$1" "$T/large.ptx"
    what="\`${1##*/}\`"
else
    ptxas=$(command -v ptxas) ||
        { echo 'ptx.sh: no toolkit here, so no cuBLAS: give a PTX file' >&2; exit 0; }
    library=$(readlink -f "$(dirname "$(readlink -f "$ptxas")")/../lib64/libcublas.so")
    module=$("$MOAT" ptx list "$library" |
        awk '$2 == "ptx" && $7 > most { most = $7; at = $1 } END { print at }')
    "$MOAT" ptx print --raw --module="$module" "$library" >"$T/large.ptx"
    what="module $module of \`${library##*/}\`"
fi
bytes=$(stat -c %s "$T/large.ptx")
{
    echo "## PTX front end"
    echo
    "$here/machine"
    echo
    echo "Text: $what, $bytes bytes, $(wc -l <"$T/large.ptx") lines."
    echo
    "$BUILD/bench/ptx_rate" "$T/large.ptx" 30
    echo
    echo "Whole commands." \
        "Peak memory of \`moat ptx print\` less that of \`moat --version\`, over the text's size, is"
    echo "what the front end takes per byte, the text itself and the output included."
    echo
    "$BUILD/bench/measure" 20 'cat (baseline)' cat "$T/large.ptx" -- 'moat --version' "$MOAT" --version -- \
        'moat ptx print' "$MOAT" ptx print "$T/large.ptx" | tee "$T/table"
    echo
    awk -F'|' -v bytes="$bytes" '/moat --version/ { none = $6 } /moat ptx print/ { peak = $6 }
        END { printf "Memory: %.1f times the text.\n", (peak - none) * 1048576 / bytes }' "$T/table"
    if [ -n "${library:-}" ]; then
        echo
        echo "Listing \`${library##*/}\` ($(($(stat -c %s "$library") / 1000000)) MB," \
            "$("$MOAT" ptx list "$library" | tail -n 1)):"
        echo
        "$BUILD/bench/measure" 10 'cat (baseline)' cat "$library" -- 'moat ptx list' \
            "$MOAT" ptx list "$library"
    fi
} >"$T/section"
cat "$T/section"
"$here/section" ptx <"$T/section"
