#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs on the driver API, in plain C, on the CPU device: with the library's code in the program itself,
# where a sanitizer sees it, and linked with libcuda and run by `moat`.
set -u
# shellcheck source=test/cpu/try
. test/cpu/try

sanitized=0
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || sanitized=1
for source in test/cpu/driver_*.c; do
    name=$(basename "$source" .c)
    try "$name, the library in it" "$BUILD/tool/$name"
    [ $sanitized = 0 ] || continue
    if cc -std=gnu11 -D_GNU_SOURCE -Isrc -o "$T/$name" "$source" -L"$BUILD/lib/moat" -lcuda -pthread; then
        try "$name, by moat" "$MOAT" --device=cpu --mode=off "$T/$name"
    else
        failed=$((failed + 1))
    fi
done

try 'fault_record, the library in it' "$BUILD/tool/fault_record"
if [ $sanitized = 0 ]; then
    # Valgrind leaves a program 128 GiB of addresses.
    for room in 40 48 128; do
        try "driver_output in $room GiB of addresses" \
            bash -c "ulimit -v $((room << 20)); exec '$BUILD/tool/driver_output'"
    done
    # A program that opens the driver by name.
    cat >"$T/open.c" <<'END'
#include <dlfcn.h>
int main(int argc, char **argv)
{
    void *cuda = dlopen(argv[1], RTLD_NOW), *context, *p;
    if (!cuda)
        return 1;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(cuda, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = (int (*)(void *))dlsym(cuda, "cuCtxSetCurrent");
    int (*take)(void **, unsigned long) = (int (*)(void **, unsigned long))dlsym(cuda, "cuMemAlloc_v2");
    return init(0) || retain(&context, 0) || set(context) || take(&p, 100);
}
END
    cc -o "$T/open" "$T/open.c" -ldl || exit 1
    try 'dlopen("libcuda.so.1")' "$MOAT" --device=cpu "$T/open" libcuda.so.1
    try 'dlopen("libcuda.so")' "$MOAT" --device=cpu "$T/open" libcuda.so
    try 'settings' "$MOAT" --device=cpu --cpu-threads=1 --cpu-lanes=plain \
        --cpu-capability=75 "$T/driver_launch"
fi
try_end
