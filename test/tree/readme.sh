#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# What the README shows is real: its kernel is demo/scale.cu's, and `make demo` prints every line of its first
# block of console, in this order. Processes and addresses have other numbers each time. Links lead somewhere.
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
same() {
    sed -E 's/==[0-9]+==/==PID==/; s/thread [0-9]+ at/thread PID at/; s/0x[0-9a-f]+/ADDRESS/g'
}
block() {  # block LANGUAGE: the first such block of the README
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" README.md | sed '/^```$/q' | sed '1d;$d'
}
block cuda | diff - <(sed -n '/^__global__/,$p' demo/scale.cu) ||
    { echo "the README's kernel is another one"; exit 1; }
script/demo "$BUILD" >"$T/out" 2>&1 || { cat "$T/out"; exit 1; }
same <"$T/out" >"$T/demo"
block console | same >"$T/readme"
[ "$(wc -l <"$T/readme")" -gt 10 ] || { echo 'the README shows no demo'; exit 1; }
awk 'NR == FNR { want[++n] = $0; next }
     at < n && $0 == want[at + 1] { at++ }
     END { if (at < n) { print "make demo does not print: " want[at + 1]; exit 1 } }' \
    "$T/readme" "$T/demo" || exit 1

anchors() {  # anchors FILE: of its headings, as code hosts make them
    sed -nE 's/^#+ //p' "$1" | tr 'A-Z' 'a-z' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}
bad=0
for page in README.md doc/*.md; do
    while IFS= read -r link; do
        file=${link%%#*} anchor=${link#"${link%%#*}"}
        [ -n "$file" ] && file=$(dirname "$page")/$file || file=$page
        if [ ! -e "$file" ]; then
            echo "$page: nothing is at $link"
            bad=1
        elif [ -n "$anchor" ] && ! anchors "$file" | grep -qxF -- "${anchor#\#}"; then
            echo "$page: $file has no heading for $anchor"
            bad=1
        fi
    done < <(sed '/^```/,/^```/d' "$page" | grep -oE '\]\([^)]+\)' | sed 's/^](//; s/)$//' | grep -v '^http')
done
exit $bad
