#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The manual page has no fault and says what the tables say; and the check would see if it did not.
set -eu
script/check-manual doc/moat.1

T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
must_fail() {  # must_fail WHAT SED-SCRIPT
    sed "$2" doc/moat.1 >"$T/moat.1"
    if cmp -s doc/moat.1 "$T/moat.1"; then
        echo "the page has nothing to change for: $1"
        exit 1
    fi
    if script/check-manual "$T/moat.1" >"$T/log" 2>&1; then
        echo "not noticed: $1"
        exit 1
    fi
}
must_fail 'a missing option' '/^\.It Fl -raw/,/^Print/d'
must_fail 'an option that is not there' 's/^\.It Fl -raw$/.It Fl -cooked/'
must_fail 'a missing command' '/^\.It Nm moat Cm info/,/^Print/d'
must_fail 'another text' 's/^Print the version/Show the version/'
must_fail 'another default' 's/Default: text/Default: json/'
must_fail 'a missing mode' '/^\.It Cm tally/,/^Count/d'
must_fail 'another text of a mode' 's/^Find writes/Look for writes/'
must_fail 'bad mdoc' 's/^\.El/.Elle/'
