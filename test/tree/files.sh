#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Names, SPDX lines, lengths and leftovers; and the check would see what it looks for.
set -eu
script/check-files

check=$PWD/script/check-files
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
mkdir -p "$T"/src/{base,ptx}
cd "$T"
spdx='// SPDX-License-Identifier: MIT'
echo "$spdx" >src/base/good.c
"$check"

must_fail() {  # must_fail WHAT: with src/ptx/bad.c as it is
    if "$check" >log; then
        echo "not noticed: $1"
        exit 1
    fi
    rm -f log src/ptx/*
}
echo 'int x;' >src/ptx/bad.c
must_fail 'no SPDX line'
echo "$spdx" >src/ptx/good.c
must_fail 'a name used twice'
{ echo "$spdx"; yes '' | head -n 1000; } >src/ptx/bad.c
must_fail 'a long file'
printf '%s\n// %s: later\n' "$spdx" 'TO''DO' >src/ptx/bad.c
must_fail 'a leftover'
printf '%s\n// %s\n' "$spdx" '/ho''me/me/moat' >src/ptx/bad.c
must_fail 'a path of one machine'
