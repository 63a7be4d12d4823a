#!/bin/bash
# SPDX-License-Identifier: MIT
# --mode=canary reports every kernel that computes with the element behind or before a buffer
# (canary_arithmetic.c), each time: 20 rounds of each operation, places and sizes of buffers.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device. SECTION=FILE: a table of the results goes there.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
program=$BUILD/tool/canary_arithmetic
device=${GUARD_DEVICE:-cpu} passed=0 failed=0
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT

found() {  # found LOG...: of each, how many errors were reported, equal ones counted each
    python3 - "$@" <<'END'
import json, sys
for log in sys.argv[1:]:
    counts = {}
    for event in map(json.loads, open(log)):
        if event["event"] in ("error", "repeat"):
            counts[event["id"]] = event["count"]
    print(log.rsplit(".", 1)[1], sum(counts.values()))
END
}

for operation in $("$program" list); do
    "$MOAT" --device="$device" --mode=canary --format=json --log-file="$T/log.$operation" \
        "$program" "$operation" "${CANARY_ARITHMETIC_ROUNDS:-4}" 2>"$T/err.$operation" </dev/null |
        tail -n 1 >"$T/wanted.$operation"
done
found "$T"/log.* >"$T/found"
rows=
for operation in $("$program" list); do
    wanted=$(<"$T/wanted.$operation")
    got=$(awk -v name="$operation" '$1 == name { print $2 }' "$T/found")
    if [[ $wanted =~ ^[0-9]+$ ]] && [ "$got" = "$wanted" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $operation: $got of $wanted reported"
        sed 's/^/    | /' "$T/err.$operation" | head -n 5
    fi
    rows+="| $operation | $wanted | $got |"$'\n'
done
if [ -n "${SECTION:-}" ]; then
    {
        echo '## Canaries and arithmetic, on a GPU'
        echo
        bench/machine
        echo
        echo '| operation | words behind or before a buffer | reported |'
        echo '| --- | ---: | ---: |'
        printf '%s\n%s operations always reported, %s not.\n' "$rows" "$passed" "$failed"
    } >"$SECTION"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
