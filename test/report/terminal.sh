#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Keys typed at a terminal, and job control.
set -eu
unset MOAT_OPTIONS
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
mkdir -p "$T/bin" "$T/lib/moat"
cp "$MOAT" "$T/bin/moat"
cp -L "$BUILD/lib/libmoat-cpu.so" "$BUILD/lib/libcudart.so.13" "$T/lib/moat/"
gcc -shared -fPIC -x c -o "$T/lib/moat/libmoat.so" - <<<'int nothing;'
TERM=xterm python3 test/report/terminal.py "$T/bin/moat" "$(realpath "$BUILD/tool/fake_watched")"
