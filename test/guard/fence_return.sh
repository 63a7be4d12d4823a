#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=fence gives freed memory back to the driver, beyond what --fence-keep keeps; buffers that stay keep
# their contents, later ones are whole, and a kernel that writes into a buffer which has gone ends nothing.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache FENCE_DRIVER=$BUILD/lib/moat/libmoat-cpu.so
passed=0 failed=0
nvcc -std=c++14 -gencode arch=compute_90,code=compute_90 -cudart shared -L"$BUILD/lib/moat" \
    -o "$T/fence_return" test/guard/fence_return.cu >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }

try() {  # try LEAST MOST OPTION...: MiB that each round gives back
    local least=$1 most=$2 rounds
    shift 2
    timeout 120 "$MOAT" --device=cpu --mode=fence --cpu-memory=8G "$@" "$T/fence_return" \
        >"$T/log" 2>&1 </dev/null
    local status=$?
    rounds=$(sed -n 's/^round .* given back \([0-9]*\) MiB$/\1/p' "$T/log")
    if [ $status = 0 ] && [ "$(wc -l <<<"$rounds")" = 3 ] &&
        awk -v least="$least" -v most="$most" '$1 < least || $1 > most { exit 1 }' <<<"$rounds"; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $*: status $status, $least to $most MiB wanted"
    tail -n 30 "$T/log" | sed 's/^/    | /'
}

# Of 12 buffers of 96 MiB one stays; a piece that it is in stays too, and what is kept.
try 500 1500
try 800 1500 --fence-keep=0
try 0 0 --fence-keep=64G
grep -q 'bytes of freed memory given back' "$T/log" && { echo 'FAIL: something was given back'; failed=1; }
echo "$passed passed, $failed failed"
[ $failed = 0 ]
