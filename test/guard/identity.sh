#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# A program that changes its user before its first CUDA call, or its root before it must connect again,
# reports to the command all the same.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
[ "$(id -u)" = 0 ] || { echo 'only root can do that'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
chmod 755 "$T"
mkdir "$T/root"
passed=0 failed=0
cat >"$T/change.c" <<'C'
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>
int close_range(unsigned, unsigned, int);
int cudaMalloc(void **, size_t), cudaFree(void *), cudaGetDeviceCount(int *);
int main(int argc, char **argv)
{
    void *d;
    if (strcmp(argv[1], "user") == 0 && (setgid(65534) || setuid(65534)))
        return 77;
    if (strcmp(argv[1], "root") == 0 && (cudaGetDeviceCount(&(int){0}) || chroot(argv[2]) || chdir("/") || close_range(3, ~0u, 0)))
        return 77;
    if (cudaMalloc(&d, 256))
        return 3;
    cudaFree(d);
    if (argc > 3)
        cudaFree(d);
    return 0;
}
C
cc -g -o "$T/change" "$T/change.c" "$BUILD/lib/libcudart.so.13" || exit 1
try() {  # try STATUS ARGUMENT...
    timeout 120 "$MOAT" --device=cpu "$T/change" "${@:2}" >"$T/log" 2>&1
    local status=$?
    if [ $status = "$1" ] && ! grep -q 'nothing was watched' "$T/log" &&
        { [ "$1" = 0 ] || grep -q '^SUMMARY: moat: double-free .*change.c:17 in main$' "$T/log"; }; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL ${*:2}: status $status, expected $1"
        sed 's/^/    | /' "$T/log" | head -n 20
    fi
}
for what in none user root; do
    try 97 $what "$T/root" bad
    try 0 $what "$T/root"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
