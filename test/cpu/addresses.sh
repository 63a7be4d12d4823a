#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Where a limit leaves no addresses for the CPU device, calls return an error, and a message says why.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer needs more addresses'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
cc -Isrc -o "$T/app" demo/app.c -L"$BUILD/lib/moat" -lcuda || exit 1

said='^moat: the CPU device needs some 40 GiB of addresses, not memory, and `ulimit -v` allows 19531 MiB:'
for mode in off check; do
    (
        ulimit -v 20000000
        "$MOAT" --device=cpu --mode=$mode "$T/app" >"$T/log" 2>&1
    )
    if [ $? = 0 ] || [ "$(grep -c "$said" "$T/log")" != 1 ]; then
        echo "FAIL --mode=$mode"
        cat "$T/log"
        exit 1
    fi
done
"$MOAT" --device=cpu --mode=off "$T/app" >"$T/log" 2>&1
! grep -q 'reserves' "$T/log"
