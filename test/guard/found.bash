# SPDX-License-Identifier: MIT
# find_types FILE [all]: the types of the errors that moat reports in FILE, in $found, with blanks between; of
# the same one after another only the first, except with `all`. No process of its own: tests of many small
# programs take a good part of their time to read reports.
#
# shellcheck shell=bash
find_types() {
    local line last=
    found=
    while IFS= read -r line; do
        [[ $line == *'ERROR: moat: '* ]] || continue
        line=${line##*'ERROR: moat: '}
        line=${line%%[!a-z-]*}
        [ -z "${2:-}" ] && [ "$line" = "$last" ] || found+=${found:+ }$line
        last=$line
    done <"$1"
}
