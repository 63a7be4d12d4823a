#!/bin/bash
# SPDX-License-Identifier: MIT
# Libraries whose destructors free CUDA memory, linked and opened: what they free has not leaked, what they
# keep has.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
cat >"$T/keeper.c" <<'END'
#include <dlfcn.h>
#include <stdlib.h>
static unsigned long long memory;
static void *driver;
#define CALL(type, name) ((int (*) type)dlsym(driver, name))
void keeper_take(void);
void keeper_take(void)
{
    void *context;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver || CALL((unsigned), "cuInit")(0) ||
        CALL((void **, int), "cuDevicePrimaryCtxRetain")(&context, 0) ||
        CALL((void *), "cuCtxSetCurrent")(context) ||
        CALL((unsigned long long *, size_t), "cuMemAlloc_v2")(&memory, 1000))
        exit(2);
}
__attribute__((destructor)) static void give_back(void)
{
    if (memory && !getenv("KEEP") && CALL((unsigned long long), "cuMemFree_v2")(memory))
        _Exit(2);
}
END
cat >"$T/linked.c" <<'END'
void keeper_take(void);
int main(void)
{
    keeper_take();
    return 0;
}
END
cat >"$T/opened.c" <<'END'
#include <dlfcn.h>
int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW);
    void (*take)(void) = library ? (void (*)(void))dlsym(library, "keeper_take") : 0;
    if (!take)
        return 2;
    take();
    return 0;
}
END
cc=${CC:-cc}
$cc -shared -fPIC -o "$T/libkeeper.so" "$T/keeper.c" -ldl && $cc -o "$T/opened" "$T/opened.c" -ldl &&
    $cc -o "$T/linked" "$T/linked.c" -L"$T" -lkeeper -Wl,-rpath,"$T" || exit 1

expect() {  # expect STATUS LEAKS COMMAND...
    local status=$1 leaks=$2 got
    shift 2
    timeout 60 "$MOAT" --device=cpu --leak-check "$@" >"$T/log" 2>&1 </dev/null
    got=$?
    if [ $got = "$status" ] && [ "$(grep -c 'ERROR: moat: memory-leak' "$T/log")" = "$leaks" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $*: status $got"
        head -n 20 "$T/log" | sed 's/^/    | /'
    fi
}
for program in linked opened; do
    expect 0 0 "$T/$program" "$T/libkeeper.so"
    KEEP=1 expect 97 1 "$T/$program" "$T/libkeeper.so"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
