#!/bin/bash
# SPDX-License-Identifier: MIT
# Two processes that share memory, events and pools of the CPU device: with the library's code in the program
# itself, where a sanitizer sees it, and by `moat`, unwatched and watched.
set -u
# shellcheck source=test/cpu/try
. test/cpu/try

said() { grep -q 'first: ok' "$1" && grep -q 'second: ok' "$1"; }

try 'the library in it' "$BUILD/tool/ipc_pair"
if ! grep -q fsanitize "$BUILD/flags" 2>/dev/null; then
    cc -std=gnu11 -D_GNU_SOURCE -Isrc -o "$T/ipc_pair" test/cpu/ipc_pair.c -L"$BUILD/lib/moat" \
        -lcuda -pthread || exit 1
    try '--mode=off' "$MOAT" --device=cpu --mode=off "$T/ipc_pair"
    try '--mode=off --cpu-devices=2' "$MOAT" --device=cpu --mode=off --cpu-devices=2 "$T/ipc_pair"
fi
try_end
