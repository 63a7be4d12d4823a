#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Documents, tables that users read, and comments and strings of all sources, tests, benchmarks and scripts
# are plain English (script/check-words).
set -eu
documents=(README.md CHANGELOG.md doc/*.md doc/moat.1 demo/*)
mapfile -t sources < <(find src test bench script include -type f ! -path 'test/fuzz/corpus/*' \
    ! -name check-words ! -name words.sh -exec grep -Il . {} +)
[ ${#documents[@]} -gt 10 ] || { echo "only ${#documents[@]} documents were found"; exit 1; }
[ ${#sources[@]} -gt 500 ] || { echo "only ${#sources[@]} sources were found"; exit 1; }
script/check-words "${documents[@]}" "${sources[@]}"

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
must_fail 'Locks are skipped. So are tables.'
must_fail '// So does one whose variant cannot run.'
must_fail 'Writes the tail likewise.'
must_fail 'The same if what counts as free were so.'
must_fail 'Errors that there was no room to tell of.'
must_fail 'The monitor is told when a buffer goes.'
must_fail 'A case that nobody can mend.'
printf 'Returns false if out of memory; the slab is discarded.\n' >"$T/text"
script/check-words "$T/text"
