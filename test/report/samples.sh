#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# What doc/reports.md shows is what moat prints, but for numbers of processes, addresses and folders: each of
# its blocks that begin as moat's lines do stands in the output of a run, line by line.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
cc -g -Isrc -o "$T/pipeline" demo/pipeline.c -L"$BUILD/lib/moat" -lcuda || exit 1
sed 's/tile\[1024\]/tile[1028]/' demo/smooth.ptx >"$T/fixed.ptx"
same() {
    sed -E 's/==[0-9]+==/==PID==/; s/(thread|process|pid) [0-9]+/\1 PID/; s/0x[0-9a-f]+/ADDRESS/g
        s|of [^ ]*/fixed.ptx|of fixed.ptx|'
}
for way in 'pages freed' 'api overflow' 'count good'; do
    "$MOAT" --device=cpu --mode="${way% *}" "$T/pipeline" "$T/fixed.ptx" "${way#* }" 2>&1 >/dev/null
done | same >"$T/out"
same <doc/reports.md | awk -v out="$T/out" '
    BEGIN { while ((getline line < out) > 0) all = all "\n" line; all = all "\n" }
    /^```/ {
        if (block ~ /^\n==PID==/) {
            blocks++
            if (!index(all, block "\n")) { print "moat does not print:" block; bad = 1 }
        }
        block = ""; inside = !inside; next
    }
    inside { block = block "\n" $0 }
    END { if (blocks < 3) { print "only " blocks + 0 " blocks of output were found"; bad = 1 } exit bad }'
