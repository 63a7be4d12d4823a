// SPDX-License-Identifier: MIT
#include "cli/cli.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cli/libdir.h"
#include "driver/driver.h"
#include "exec/exec.h"
#include "image/cache.h"

static const char *failure(CUresult result)
{
    const char *text = driver_result_text(result);
    return text ? text : "an unknown error";
}

static CUresult print_device(const struct driver *d, int index, const char *label, struct out *o)
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
    out_fmt(o, "%-10s %s, compute capability %d.%d, %d multiprocessor%s, %.1f GiB\n", label, name, major,
            minor, sms, sms == 1 ? "" : "s", (double)bytes / (1 << 30));
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
    out_fmt(o, "driver:    CUDA %d.%d\n", version / 1000, version % 1000 / 10);
    r = r ? r : d->cuInit(0);
    r = r ? r : d->cuDeviceGetCount(&count);
    for (int i = 0; !r && i < count; i++) {
        char label[32];
        snprintf(label, sizeof label, "GPU %d:", i);
        r = print_device(d, i, label, o);
    }
    if (r)
        out_fmt(o, "GPUs:      cannot be used: %s\n", failure(r));
    else if (!count)
        out_cstr(o, "GPUs:      none\n");
}

static void print_driver(struct out *o)
{
    struct driver d;
    char why[256];
    if (driver_open(&d, NULL, why, sizeof why))
        out_fmt(o, "driver:    none (%s)\n", why);
    else if (!complete(&d))
        out_cstr(o, "driver:    a driver without the calls that list GPUs\n");
    else
        print_gpus(&d, o);
    driver_close(&d);
}

// Queries the CPU device through its driver, as a program would.
static void print_cpu_device(const struct options *options, struct out *o)
{
    static const char *const names[] = {LIBDIR_DRIVER, NULL};
    char folder[PATH_MAX], path[PATH_MAX + 64], why[400];
    struct driver d = {0};
    if (libdir_find(folder, sizeof folder, names, why, sizeof why)) {
        out_fmt(o, "CPU:       no CPU device (%s)\n", why);
        return;
    }
    snprintf(path, sizeof path, "%s/" LIBDIR_DRIVER, folder);
    if (cli_export_options(options) || driver_open(&d, path, why, sizeof why) || !complete(&d)) {
        out_fmt(o, "CPU:       no CPU device (%s)\n", d.handle ? "it lacks calls" : why);
    } else {
        int count = 0;
        CUresult r = d.cuInit(0);
        r = r ? r : d.cuDeviceGetCount(&count);
        for (int i = 0; i < count && !r; i++)
            r = print_device(&d, i, "CPU:", o);
        if (r)
            out_fmt(o, "CPU:       cannot be used: %s\n", failure(r));
    }
    out_fmt(o, "libraries: %s\n", folder);
    driver_close(&d);
}

static void print_cores(const struct options *options, struct out *o)
{
    static const char *const lanes[] = {
        [OPTION_LANES_PLAIN] = "plain",
        [OPTION_LANES_AVX2] = "avx2",
        [OPTION_LANES_AVX512] = "avx512",
    };
    cpu_set_t set;
    CPU_ZERO(&set);
    int cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    if (options->cpu_lanes != OPTION_LANES_AUTO && exec_lanes_force(lanes[options->cpu_lanes]))
        out_fmt(o, "cores:     %d, without %s\n", cores, lanes[options->cpu_lanes]);
    else
        out_fmt(o, "cores:     %d, lanes on %s\n", cores, exec_lanes_name());
}

static void print_cache(const struct options *options, struct out *o)
{
    struct cache_size size;
    if (!options->cache) {
        out_cstr(o, "cache:     none (--no-cache)\n");
        return;
    }
    int err = cache_measure(options->cache_dir, &size);
    if (err)
        out_fmt(o, "cache:     none (%s%s%s)\n", size.folder, size.folder[0] ? ": " : "", cache_why(err));
    else
        out_fmt(o, "cache:     %s, %llu module%s, %.1f of %.1f MiB%s\n", size.folder,
                (unsigned long long)size.entries, size.entries == 1 ? "" : "s", (double)size.bytes / 1048576,
                (double)options->cache_size / 1048576, size.there ? "" : ", not made yet");
}

// Prints the modes in which a program would run if --mode is not given.
static void print_mode(const struct options *options, struct out *o)
{
    const struct option_row *row = option_table.rows;
    while (row->offset != offsetof(struct options, mode))
        row++;
    out_cstr(o, "mode:      ");
    option_print_value(options->set, row, o);
#define WORD(word, help) {word, help},
    static const char *const basic[][2] = {MODES_BASIC(WORD)};
#undef WORD
    if (options->mode >> OPTION_MODE_AUTO & 1)
        out_fmt(o, " (%s)", basic[0][1]);
    out_char(o, '\n');
}

int cmd_info(const struct options *options, int argc, char **argv)
{
    if (argc)
        return cli_error("`moat info` takes no operand, but \"%.60s\" was given", argv[0]);
    struct out o;
    out_to_file(&o, stdout);
    out_cstr(&o, "moat:      " MOAT_VERSION "\n");
    print_driver(&o);
    print_cpu_device(options, &o);
    print_cores(options, &o);
    print_mode(options, &o);
    print_cache(options, &o);
    return cli_close(&o, CLI_OK);
}
