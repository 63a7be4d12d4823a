#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# What is said of a fault that a driver does not describe, as GPUs' do not: the kernel, if only one was
# launched, but under MPS that it may be another client's. The driver is the CPU device without its word on
# faults; with MPS=1 it says that MPS shares its contexts.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0
cat >"$T/vague.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int moat_driver_fault(void *context, void *fault)
{
    return 1;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static int (*real)(int *, int, int);
    if (!real)
        real = (int (*)(int *, int, int))dlsym(RTLD_NEXT, "cuDeviceGetAttribute");
    int result = real(value, attribute, device);
    if (!result && attribute == 133)  // CU_DEVICE_ATTRIBUTE_MPS_ENABLED
        *value = getenv("MPS") != NULL;
    return result;
}
END
cat >"$T/wild.cu" <<'END'
__global__ void wild(volatile int *p) { *p = 1; }
int main()
{
    wild<<<1, 1>>>((int *)0x700000000000);
    return cudaDeviceSynchronize();
}
END
# The CPU device under a name of its own: whoever needs libcuda.so.1 gets moat.
sed 's/libcuda\.so\.1/libmild.so.1/g' "$BUILD/lib/moat/libmoat-cpu.so" >"$T/libmild.so.1"
cc -shared -fPIC -o "$T/libvague.so" "$T/vague.c" -Wl,--no-as-needed "$T/libmild.so.1" -Wl,-rpath,"$T" -ldl &&
    nvcc -std=c++14 -gencode arch=compute_90,code=compute_90 -cudart shared -L"$BUILD/lib/moat" \
        -o "$T/wild" "$T/wild.cu" >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }

check() {  # check WHAT COMMAND...
    if "${@:2}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1"
        head -n 20 "$T/out" | sed 's/^/    | /'
    fi
}
run() {
    timeout 60 "$MOAT" --device=cpu --driver="$T/libvague.so" --mode=api "$T/wild" >"$T/out" 2>&1 </dev/null
    check 'an error is reported' grep -q 'ERROR: moat: wild-access' "$T/out"
}
says() { grep -qE "$1" "$T/out"; }
no() { ! "$@"; }

unset MPS
run
check 'the only kernel is named' says 'ERROR: moat: wild-access .*in kernel wild\('
check 'nobody else is' no says MPS
export MPS=1
run
check 'no kernel is blamed' no says 'ERROR: .*in kernel wild\('
check 'but listed' says 'launched last: wild\('
check 'another client may be guilty' says "may be another program's: .* MPS server"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
