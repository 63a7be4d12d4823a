// SPDX-License-Identifier: MIT
#include "cli/cli.h"

#include <sched.h>
#include <string.h>

#include "driver/driver.h"

static const char *failure(CUresult result)
{
    const char *text = driver_result_text(result);
    return text ? text : "an unknown error";
}

static CUresult print_gpu(const struct driver *d, int index, struct out *o)
{
    CUdevice device;
    char name[256] = "";
    size_t bytes = 0;
    int major = 0, minor = 0, sms = 0;
    CUresult r = d->cuDeviceGet(&device, index);
    r = r ? r : d->cuDeviceGetName(name, sizeof name - 1, device);
    r = r ? r : d->cuDeviceTotalMem_v2(&bytes, device);
    r = r ? r : d->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    r = r ? r : d->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    r = r ? r : d->cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (r)
        return r;
    out_fmt(o, "GPU %d:   %s, compute capability %d.%d, %d multiprocessors, %.1f GiB\n", index, name, major,
            minor, sms, (double)bytes / (1 << 30));
    return 0;
}

static bool complete(const struct driver *d)
{
    return d->cuInit && d->cuDriverGetVersion && d->cuDeviceGetCount && d->cuDeviceGet &&
           d->cuDeviceGetName && d->cuDeviceTotalMem_v2 && d->cuDeviceGetAttribute;
}

static void print_gpus(const struct driver *d, struct out *o)
{
    int version = 0, count = 0;
    CUresult r = d->cuDriverGetVersion(&version);
    out_fmt(o, "driver:  CUDA %d.%d\n", version / 1000, version % 1000 / 10);
    r = r ? r : d->cuInit(0);
    r = r ? r : d->cuDeviceGetCount(&count);
    for (int i = 0; !r && i < count; i++)
        r = print_gpu(d, i, o);
    if (r)
        out_fmt(o, "GPUs:    cannot be used: %s\n", failure(r));
    else if (!count)
        out_cstr(o, "GPUs:    none\n");
}

static void print_driver(struct out *o)
{
    struct driver d;
    char why[256];
    if (driver_open(&d, NULL, why, sizeof why))
        out_fmt(o, "driver:  none (%s)\n", why);
    else if (!complete(&d))
        out_cstr(o, "driver:  one that lacks the calls to list its GPUs\n");
    else
        print_gpus(&d, o);
    driver_close(&d);
}

static void print_cpu(struct out *o)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    const char *vectors = "none that moat knows";
#if defined(__x86_64__)
    __builtin_cpu_init();
    vectors = __builtin_cpu_supports("avx512f") ? "AVX-512"
              : __builtin_cpu_supports("avx2")  ? "AVX2"
                                                : "SSE2";
#elif defined(__aarch64__)
    vectors = "NEON";
#endif
    out_fmt(o, "CPU:     %d core%s, vector extension %s\n", cores, cores == 1 ? "" : "s", vectors);
}

int cmd_info(const struct options *options, int argc, char **argv)
{
    if (argc)
        return cli_error("`moat info` takes no operand, but \"%.60s\" was given", argv[0]);
    struct out o;
    out_to_file(&o, stdout);
    out_cstr(&o, "moat:    " MOAT_VERSION "\n");
    print_driver(&o);
    print_cpu(&o);
    return cli_close(&o, CLI_OK);
}
