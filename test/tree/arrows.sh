#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Modules include only what src/arrows.txt lets them, and the check would see it if they did not.
set -eu
script/check-arrows .

T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
mkdir -p "$T"/src/{base,ptx,flow}
cp src/arrows.txt "$T/src/"
echo '#include "ptx/ptx.h"' >"$T/src/flow/good.c"
script/check-arrows "$T"

must_fail() {  # must_fail WHAT FILE LINE
    printf '%s\n' "$3" >"$T/src/$2"
    if script/check-arrows "$T" >"$T/log"; then
        echo "not noticed: $1"
        exit 1
    fi
    rm "$T/src/$2"
}
must_fail 'an arrow against its direction' ptx/bad.c '#include "flow/cfg.h"'
must_fail 'an arrow out of base' base/bad.h '#  include "ptx/ptx.h"'
must_fail 'no module named' flow/bad.c '#include "cfg.h"'
mkdir "$T/src/other"
must_fail 'a module without a row' other/bad.c '#include "base/str.h"'
rmdir "$T/src/other"
must_fail 'cpu reaching pass' arrows.txt "$(sed 's/^cpu:.*/cpu: ptx image guard/' src/arrows.txt)"
