#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Documents and the tables that users read are plain English (script/check-words). WORDS_SCOPE=all adds the
# comments and strings of all sources, tests, benchmarks and scripts.
set -eu
scope=${WORDS_SCOPE:-documents}
files=(README.md CHANGELOG.md doc/*.md doc/moat.1 demo/* src/*/*.def)
if [ "$scope" = all ]; then
    mapfile -t more < <(find src test bench script include -type f ! -name '*.def' \
        ! -path 'test/fuzz/corpus/*' ! -name check-words ! -name words.sh -exec grep -Il . {} +)
    files+=("${more[@]}")
fi
[ ${#files[@]} -gt 20 ] || { echo "only ${#files[@]} files were found"; exit 1; }
script/check-words "${files[@]}"

T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
must_fail() {  # must_fail SENTENCE
    printf '%s\n' "$1" >"$T/text"
    if script/check-words "$T/text" >/dev/null; then
        echo "not noticed: $1"
        exit 1
    fi
}
must_fail 'False: so it is, for no memory.'
must_fail 'Does so.'
must_fail 'The same if what counts as free were so.'
must_fail 'Errors that there was no room to tell of.'
must_fail 'The monitor is told when a buffer goes.'
must_fail 'A case that nobody can mend.'
printf 'Returns false if out of memory; the slab is discarded.\n' >"$T/text"
script/check-words "$T/text"
