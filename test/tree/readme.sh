#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# What the README shows of `make demo` is what it prints: every line of its first block, in this order. A line "..." stands
# for lines left out; processes and addresses have other numbers each time.
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
same() {
    sed -E 's/==[0-9]+==/==PID==/; s/thread [0-9]+ at/thread PID at/; s/0x[0-9a-f]+/ADDRESS/g'
}
script/demo "$BUILD" >"$T/out" 2>&1 || { cat "$T/out"; exit 1; }
same <"$T/out" >"$T/demo"
sed -n '/^```console$/,/^```$/p' README.md | sed '/^```$/q' | sed '1d;$d' | grep -vE '^(\$ make demo|\.\.\.)$' | same >"$T/readme"
[ "$(wc -l <"$T/readme")" -gt 10 ] || { echo 'the README shows no demo'; exit 1; }
awk 'NR == FNR { want[++n] = $0; next }
     at < n && $0 == want[at + 1] { at++ }
     END { if (at < n) { print "make demo does not print: " want[at + 1]; exit 1 } }' "$T/readme" "$T/demo"
