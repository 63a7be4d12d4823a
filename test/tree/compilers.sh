#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The builds that the tests run on were made by gcc and by clang, with warnings as errors; and a warning stops
# both.
set -eu
warnings='-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith'
expect() {  # expect BUILD WORD...: in the flags it was built with
    local build=$1 word
    shift
    for word; do
        if [[ " $(cat "$build/flags") " != *" $word "* ]]; then
            echo "$build was built without $word"
            exit 1
        fi
    done
}
# shellcheck disable=SC2086
expect "$BUILD" gcc -Werror $warnings
# shellcheck disable=SC2086
[ ! -d "$BUILD/clang" ] || expect "$BUILD/clang" clang -Werror -DMOAT_CHECKED $warnings
[ ! -d "$BUILD/asan" ] || expect "$BUILD/asan" clang -DMOAT_CHECKED
# What is installed does not pay for the assertions of base/checked.h.
if grep -q MOAT_CHECKED "$BUILD/flags"; then
    echo "$BUILD was built with MOAT_CHECKED"
    exit 1
fi

# An executable source cannot be compiled with a warning in it.
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
printf 'int bad(void);\nint bad(void)\n{\n    int unused;\n    return 0;\n}\n' >"$T/bad.c"
for cc in gcc clang; do
    # shellcheck disable=SC2086
    if $cc $warnings -Werror -fsyntax-only "$T/bad.c" 2>/dev/null; then
        echo "$cc accepts a warning"
        exit 1
    fi
done
