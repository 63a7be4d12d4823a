#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Modules that libraries are made of neither exit, print, start threads nor take memory behind base/mem's
# back; and the script that checks it notices when they do.
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
mapfile -t objects < <(find "$BUILD/obj" -name '*.o' ! -path '*/cli/*' ! -name '*_test.o')
[ ${#objects[@]} -gt 20 ] || { echo "only ${#objects[@]} objects in $BUILD"; exit 1; }
script/check-objects "${objects[@]}" || exit 1

refused() {  # refused WHAT CODE
    printf '%s\n' "$2" >"$T/bad.c"
    cc -c -o "$T/bad.o" "$T/bad.c" || exit 1
    if script/check-objects "$T/bad.o" >"$T/log"; then
        echo "an object with $1 is let through"
        exit 1
    fi
}
refused 'exit' 'void exit(int); void f(void) { exit(1); }'
refused 'malloc' '#include <stdlib.h>
void *f(void) { return malloc(5); }'
refused 'output' '#include <stdio.h>
void f(void) { fprintf(stderr, "x"); }'
refused 'a constructor' '__attribute__((constructor)) static void f(void) {}'
printf 'int f(int x) { return x; }\n' >"$T/good.c"
cc -c -o "$T/good.o" "$T/good.c" && script/check-objects "$T/good.o"
