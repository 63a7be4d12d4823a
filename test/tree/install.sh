#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# `make install` puts the command and its manual below DESTDIR and nowhere else.
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
script/install "$BUILD" "$T/usr/local"
[ "$("$T/usr/local/bin/moat" --version)" = "$("$MOAT" --version)" ]
[ -s "$T/usr/local/share/man/man1/moat.1" ]
