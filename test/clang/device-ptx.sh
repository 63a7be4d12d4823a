#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The PTX in the tree, src/*/NAME.inc, is what script/device-ptx makes of src/*/device/NAME.c, all of them.
# script/install-deps installs the compiler: without it this fails.
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
script/device-ptx --list >"$T/list"
awk '{ print $2 }' "$T/list" | sort | diff - <(printf '%s\n' src/*/device/*.c | sort)
while read -r name _ file; do
    script/device-ptx "$name" >"$T/$name.inc"
    [ "$(wc -l <"$T/$name.inc")" -gt 20 ] || { echo "$name: next to nothing"; exit 1; }
    diff "$file" "$T/$name.inc" || {
        echo "$file is not what script/device-ptx makes: script/device-ptx --update"
        exit 1
    }
done <"$T/list"
# A second function of the ring's would meet those of other texts in one module.
[ "$(grep -c '\.func' src/ring/error_ring_functions.inc)" = 1 ] || {
    echo 'there is more than moat_ring_report'
    exit 1
}
