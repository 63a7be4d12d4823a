// SPDX-License-Identifier: MIT
#include "cli/mps_limits.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/mps_control.h"

enum { DEVICES_MOST = 64 };

int mps_limits_devices(void)
{
    glob_t found;
    if (glob("/dev/nvidia[0-9]*", GLOB_NOSORT, NULL, &found))
        return 1;
    size_t n = found.gl_pathc;
    globfree(&found);
    return n > DEVICES_MOST ? DEVICES_MOST : (int)n;
}

static unsigned long long mib(const struct options *options)
{
    return (unsigned long long)options->share_memory >> 20;
}

int mps_limits_set(const struct options *options)
{
    static struct mps_answer a;
    int status = CLI_OK;
    if (options->share_percent)
        status = mps_control_ask(&a, MPS_SECONDS, "set_default_active_thread_percentage %d",
                                 (int)options->share_percent);
    for (int i = 0; options->share_memory && i < mps_limits_devices() && !status; i++)
        status =
            mps_control_ask(&a, MPS_SECONDS, "set_default_device_pinned_mem_limit %d %lluM", i, mib(options));
    return status;
}

int mps_limits_export(const struct options *options)
{
    char percent[16], memory[DEVICES_MOST * 32];
    snprintf(percent, sizeof percent, "%d", (int)options->share_percent);
    if (options->share_percent && setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, 1))
        return -errno;
    int n = 0;
    for (int i = 0; options->share_memory && i < mps_limits_devices(); i++)
        n += snprintf(memory + n, sizeof memory - (size_t)n, "%s%d=%lluM", i ? "," : "", i, mib(options));
    return n && setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", memory, 1) ? -errno : 0;
}
