// SPDX-License-Identifier: MIT
#include "cpu/config.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mutex.h"
#include "base/option_variable.h"
#include "image/ptx_store.h"

#define LARGE_PAGE ((uint64_t)2 << 20)
#define LEAST_MEMORY ((uint64_t)64 << 20)

// Returns the number of cores that this process may use.
static unsigned core_count(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) || !CPU_COUNT(&set))
        return 1;
    return (unsigned)CPU_COUNT(&set);
}

// Returns half of the machine's memory, divided among the devices: a program that fills its GPU must not make
// the machine swap.
static uint64_t usual_memory(unsigned devices)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t half = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : LEAST_MEMORY;
    return half / devices < LEAST_MEMORY ? LEAST_MEMORY : half / devices;
}

static void take(struct config *c, const struct options *o)
{
    static const char *const lanes[] = {
        [OPTION_LANES_AUTO] = NULL,
        [OPTION_LANES_PLAIN] = "plain",
        [OPTION_LANES_AVX2] = "avx2",
        [OPTION_LANES_AVX512] = "avx512",
    };
    *c = (struct config){
        .capability = (int)o->cpu_capability,
        .devices = (unsigned)o->cpu_devices,
        .threads = o->cpu_threads ? (unsigned)o->cpu_threads : core_count(),
        .memory = (o->cpu_memory ? o->cpu_memory : usual_memory((unsigned)o->cpu_devices)) / LARGE_PAGE *
                  LARGE_PAGE,
        .lanes = lanes[o->cpu_lanes],
        .stats = o->stats,
        .times = o->times,
        .native = o->cpu_native,
        .skip = o->on_error == OPTION_ON_ERROR_SKIP,
    };
    if (o->cache && o->jit_ptx)
        ptx_store_use(o->cache_dir, o->cache_size);
}

void config_parse(struct config *c, const char *text, void (*complain)(void *ctx, const char *line),
                  void *ctx)
{
    struct option_set set;
    struct options options;
    if (option_read_variable(&set, &options, text, complain, ctx)) {
        *c = (struct config){.capability = 90,
                             .devices = 1,
                             .threads = core_count(),
                             .memory = usual_memory(1) / LARGE_PAGE * LARGE_PAGE};
        return;
    }
    take(c, &options);
    option_free(&set);
}

static void to_standard_error(void *ctx, const char *line)
{
    dprintf(STDERR_FILENO, "%s\n", line);
}

static struct config the_config;

static void read_environment_held(void)
{
    config_parse(&the_config, getenv(OPTION_VARIABLE), to_standard_error, NULL);
}

// Other threads wait for this one.
static void read_environment(void)
{
    mutex_hold();
    read_environment_held();
    mutex_release();
}

const struct config *config_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    return &the_config;
}
