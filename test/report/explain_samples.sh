#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# What doc/explain.md shows is what moat prints, but for numbers of processes, addresses, folders and times:
# each of its blocks stands in the output of the command that it names, line by line.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
cc -g -Isrc -o "$T/app" demo/app.c -L"$BUILD/lib/moat" -lcuda || exit 1
same() {
    sed -E 's/==[0-9]+==/==PID==/; s/(thread|process|pid) [0-9]+/\1 PID/; s/0x[0-9a-f]+/ADDRESS/g
        s|watching [^ ]+ |watching PROGRAM |
        s|^(  +1  +2 .*) +[0-9,]+ +[0-9,]+  scale|\1 NS NS  scale|; s/ +NS NS/ NS NS/'
}
show() {  # show COMMAND: as the document has it, and what it prints
    echo "\$ moat $*"
    eval "\"\$MOAT\" ${*//build\/demo\/app/$T/app}" 2>&1
}
{
    show ptx explain demo/scale.ptx
    show ptx explain demo/scale.ptx --launch "'scale<<<4,256>>>(*4000, 2.0, 1000)'"
    show explain --device=cpu build/demo/app | grep -v '^done$'
} | same >"$T/out"
same <doc/explain.md | awk -v out="$T/out" '
    BEGIN { while ((getline line < out) > 0) all = all "\n" line; all = all "\n" }
    /^```/ {
        if (inside) {
            blocks++
            if (!index(all, block "\n")) { print "moat does not print:" block; bad = 1 }
        }
        block = ""; inside = !inside; next
    }
    inside { block = block "\n" $0 }
    END { if (blocks < 4) { print "only " blocks + 0 " blocks of output were found"; bad = 1 }
          if (bad) print "it prints:" all; exit bad }'
