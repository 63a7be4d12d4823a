#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Sources are as `make format` leaves them.
set -eu
script/format --check
if printf 'int  f( void ){return 1;}\n' |
    clang-format --dry-run -Werror --assume-filename=src/base/bad.c 2>/dev/null; then
    echo 'not noticed: a badly formatted function'
    exit 1
fi
