#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The hooks, and what modes are made with, name no mode; and the check would see it if they did.
set -eu
script/check-hooks .

T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
mkdir -p "$T"/src/{base,hook,mode,rewrite,launch,context,track}
cp src/base/modes.def "$T/src/base/"
echo 'int pages = 1; // of a file; count of them' >"$T/src/hook/good.c"
script/check-hooks "$T"

must_fail() {  # must_fail WHAT FILE LINE
    printf '%s\n' "$3" >"$T/src/$2"
    if script/check-hooks "$T" >"$T/log"; then
        echo "not noticed: $1"
        exit 1
    fi
    rm "$T/src/$2"
}
must_fail 'a call of a mode' hook/bad.c 'pages_poll();'
must_fail 'a part of a mode' hook/bad.c 'kheap_host_launch();'
must_fail "a mode's option" hook/bad.c 'if (guard.options.mode >> OPTION_MODE_COUNT & 1)'
must_fail "a mode's table" rewrite/bad.h 'extern const struct mode canary_mode;'
must_fail 'a header of a mode' launch/bad.c '#include "tally/tally.h"'
