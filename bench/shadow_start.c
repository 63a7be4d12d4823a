// SPDX-License-Identifier: MIT
// shadow_start [BITS [MIB]]: what the driver takes for the calls by which --mode=shadow makes the shadow of a
// context: memory of a handle, its filling, 2^BITS bytes (40) of addresses that it is mapped to over and
// over, and giving all of it back. A line for each size of the handle, up to MIB (4096), in milliseconds:
//   MIB create C fill F map M access A touch T unmap U release R
#include "bench.h"

static struct driver d;

// Prints the milliseconds since *from, under a name, and begins anew.
static void passed(const char *name, double *from)
{
    double to = bench_now();
    printf(" %s %.2f", name, (to - *from) * 1e3);
    *from = to;
}

static void set_access(CUdeviceptr at, uint64_t bytes, CUmemAccess_flags flags)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, .flags = flags};
    NEED(d.cuMemSetAccess(at, bytes, &access, 1));
}

static void measure(CUdeviceptr at, uint64_t bytes, uint64_t unit)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    unsigned char byte = 1;
    double from = bench_now();
    if (d.cuMemCreate(&handle, unit, &prop, 0)) {
        printf("%llu no memory\n", (unsigned long long)(unit >> 20));
        return;
    }
    printf("%llu", (unsigned long long)(unit >> 20));
    passed("create", &from);
    NEED(d.cuMemMap(at, unit, 0, handle, 0));
    set_access(at, unit, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    NEED(d.cuMemsetD8_v2(at, 0, unit));
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemUnmap(at, unit));
    passed("fill", &from);
    for (uint64_t to = 0; to < bytes; to += unit)
        NEED(d.cuMemMap(at + to, unit, 0, handle, 0));
    passed("map", &from);
    set_access(at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ);
    passed("access", &from);
    NEED(d.cuMemcpyDtoH_v2(&byte, at + bytes - 1, 1));
    passed("touch", &from);
    NEED(d.cuMemUnmap(at, bytes));
    passed("unmap", &from);
    NEED(d.cuMemRelease(handle));
    passed("release", &from);
    puts(byte ? ": the last byte is not 0" : "");
}

int main(int argc, char **argv)
{
    uint64_t bytes = (uint64_t)1 << (argc > 1 ? atoi(argv[1]) : 40);
    uint64_t most = (uint64_t)(argc > 2 ? atoi(argv[2]) : 4096) << 20;
    char why[300] = "";
    CUdevice device;
    CUcontext context;
    CUdeviceptr at;
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "shadow_start: %s\n", why);
        return 2;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDeviceGet(&device, 0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, device));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuMemAddressReserve(&at, bytes, 2 << 20, 0, 0));
    for (uint64_t unit = (uint64_t)256 << 20; unit <= most && unit <= bytes; unit *= 4)
        measure(at, bytes, unit);
    NEED(d.cuMemAddressFree(at, bytes));
    return 0;
}
