#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Programs built with AddressSanitizer start under moat, and both find what is theirs. --heap leaves a program
# alone whose sanitizer has its own malloc in a shared library, and says so.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
cat >"$T/both.c" <<'C'
#include <stdlib.h>
int cudaMalloc(void **, size_t), cudaFree(void *);
int main(void)
{
    void *d;
    char *volatile h = malloc(3);
    cudaMalloc(&d, 256);
    cudaFree(d);
    cudaFree(d);
    h[4] = 1;
    return 0;
}
C
for cc in gcc clang; do
    $cc -fsanitize=address -g -o "$T/both" "$T/both.c" "$BUILD/lib/libcudart.so.13" 2>/dev/null ||
        { echo "skip $cc"; continue; }
    for mode in api canary pages; do
        timeout 120 "$MOAT" --device=cpu --mode=$mode "$T/both" >"$T/log" 2>&1
        if grep -q '^SUMMARY: moat: double-free .*both.c:9' "$T/log" &&
            grep -q '^SUMMARY: AddressSanitizer: heap-buffer-overflow' "$T/log"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL $cc, $mode"
            sed 's/^/    | /' "$T/log" | head -n 20
        fi
    done
done

heap() {  # heap STATUS PATTERN OPTION...: of $T/both under --heap
    timeout 120 "$MOAT" --device=cpu --heap "${@:3}" "$T/both" >"$T/log" 2>&1
    local status=$?
    if [ $status = "$1" ] && grep -q "$2" "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL --heap ${*:3}: status $status, expected $1 and \"$2\""
        sed 's/^/    | /' "$T/log" | head -n 20
    fi
}
said='built with a sanitizer, which has a malloc of its own: --heap does not watch it'
for sanitizer in address thread; do
    gcc -fsanitize=$sanitizer -g -o "$T/both" "$T/both.c" "$BUILD/lib/libcudart.so.13" 2>/dev/null &&
        ldd "$T/both" | grep -Eq 'lib[at]san' || { echo "skip --heap, $sanitizer"; continue; }
    heap 97 "$said" --mode=api
    heap 97 '^SUMMARY: moat: double-free .*both.c:9' --mode=api
    heap 98 "$said" --mode=api --strict
done
echo "$passed passed, $failed failed"
[ $passed -gt 0 ] || [ $failed -gt 0 ] || exit 77
[ $failed = 0 ]
