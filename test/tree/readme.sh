#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# What the README shows of `make demo` is what it prints: every line of its first block, in this order.
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
script/demo "$BUILD" >"$T/demo" 2>&1 || { cat "$T/demo"; exit 1; }
sed -n '/^```console$/,/^```$/p' README.md | sed '/^```$/q' | sed '1d;$d' | grep -v '^\$ make demo$' >"$T/readme"
[ "$(wc -l <"$T/readme")" -gt 10 ] || { echo 'the README shows no demo'; exit 1; }
awk 'NR == FNR { want[++n] = $0; next }
     at < n && $0 == want[at + 1] { at++ }
     END { if (at < n) { print "make demo does not print: " want[at + 1]; exit 1 } }' "$T/readme" "$T/demo"
