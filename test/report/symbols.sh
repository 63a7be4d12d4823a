#!/bin/bash
# SPDX-License-Identifier: MIT
# Places in programs are named however those were built: gcc and clang, with and without PIE, as shared
# objects, stripped more or less, with debugging information elsewhere, gone.
set -u
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
tool=$BUILD/tool/name_places
failed=0 passed=0

cat >"$T/place.cpp" <<'END'
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
__attribute__((noinline)) static void print(void *pc) {
    Dl_info info;
    link_map *map;
    dladdr1(pc, &info, (void **)&map, RTLD_DL_LINKMAP);
    printf("0x%zx\n", (size_t)pc - (size_t)map->l_addr);
}
__attribute__((noinline)) static void here() {
    print(__builtin_return_address(0));
    asm volatile("");
}
namespace deep {
struct box {
    template <class T> __attribute__((always_inline)) void put(T) {
        here();
        asm volatile("");
    }
};
__attribute__((noinline)) void fill(int n) {
    box b;
    b.put(n);
    asm volatile("");
}
}
extern "C" __attribute__((visibility("default"))) void enter() { deep::fill(3); asm volatile(""); }
#ifndef LIBRARY
int main() { enter(); }
#endif
END
printf 'void enter(void);\nint main(void) { enter(); }\n' >"$T/main.c"

expect() {  # expect WHAT EXPECTED OBJECT OFFSET
    local got
    got=$("$tool" "$3" "$4" 2>&1 | tr '\n' ';')
    if [ "$got" = "$2" ]; then
        passed=$((passed + 1))
    else
        printf '%s: got %s, expected %s\n' "$1" "$got" "$2"
        failed=$((failed + 1))
    fi
}

lines='+void deep::box::put<int>(int) place.cpp:17;deep::fill(int) place.cpp:23;'
build() {  # build COMPILER NAME FLAG...
    local cxx=$1 name=$2
    shift 2
    "$cxx" -o "$T/$name" "$T/place.cpp" "$@" -ldl || exit 1
    "$T/$name"
}
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || continue
    for flags in '-g -O0' '-g -O2' '-g -O2 -no-pie -fno-pie' '-gdwarf-4 -O1' '-g -O2 -gz' \
        '-g -Os -ffunction-sections'; do
        # shellcheck disable=SC2086
        at=$(build $cxx app $flags) || exit 1
        expect "$cxx $flags" "$lines" "$T/app" "$at"
        objcopy --strip-debug "$T/app" "$T/app.symbols"
        expect "$cxx $flags, symbols only" 'deep::fill(int);' "$T/app.symbols" "$at"
        strip "$T/app" -o "$T/app.stripped"
        expect "$cxx $flags, stripped" '?;' "$T/app.stripped" "$at"
    done
    $cxx -g -O2 -fPIC -shared -DLIBRARY -o "$T/libplace.so" "$T/place.cpp" -ldl || exit 1
    gcc -o "$T/main" "$T/main.c" -L"$T" -lplace -Wl,-rpath,"$T" || exit 1
    at=$("$T/main")
    expect "$cxx, a library" "$lines" "$T/libplace.so" "$at"
    strip "$T/libplace.so"
    expect "$cxx, a stripped library" 'deep::fill(int);' "$T/libplace.so" "$at"
    rm "$T/libplace.so"
    expect "$cxx, a library that is gone" '?;' "$T/libplace.so" "$at"
done
echo "covered: $passed places named"
[ $failed = 0 ]
