#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# doc/reports.md names every type of error with its text and CWE, and every key of the JSON.
set -u
failed=0
missing() {
    echo "doc/reports.md does not have: $1"
    failed=1
}
types=$(sed -nE 's/^ERROR\([A-Z_]+, "([^"]+)", [a-z]+, ([0-9]+), "(.*)"\)$/| \1 | \3 | \2 |/p' \
    src/report/errors.def)
[ "$(wc -l <<<"$types")" = "$(grep -c '^ERROR(' src/report/errors.def)" ] || {
    echo 'errors.def is not understood'
    exit 1
}
while IFS= read -r row; do grep -qxF -- "$row" doc/reports.md || missing "$row"; done <<<"$types"
keys=$(grep -oE '(FIELD|ALWAYS|TEXTS|ARRAY|OBJECT|STACK|IF)\([^"]*"[a-z_]+"' src/report/json_shape.c |
    cut -d'"' -f2 | sort -u)
[ "$(wc -l <<<"$keys")" -gt 30 ] || { echo 'json_shape.c is not understood'; exit 1; }
while IFS= read -r key; do grep -qF -- "\`$key\`" doc/reports.md || missing "\`$key\`"; done <<<"$keys"
exit $failed
