#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The help of every option, command and mode is one short sentence; and the check would see if it were not.
set -eu
rows=$(script/check-help --rows)
for name in '--canary-interval=MS' 'ptx list FILE' 'canary'; do
    grep -q "^$name"$'\t' <<<"$rows" || { echo "check-help does not see: $name"; exit 1; }
done
[ "$(wc -l <<<"$rows")" -gt 50 ] || { echo "check-help sees only $(wc -l <<<"$rows") rows"; exit 1; }
script/check-help <<<"$rows"

must_fail() {  # must_fail HELP
    if script/check-help <<<"--sample"$'\t'"$1" >/dev/null; then
        echo "not noticed: $1"
        exit 1
    fi
}
must_fail 'wait this long; longer where scans take more'
must_fail 'print it. Then exit'
must_fail 'print it.'
must_fail 'Print it'
must_fail ''
must_fail "$(printf 'word %.0s' {1..33})"
