// SPDX-License-Identifier: MIT
#include "driver/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct driver_call driver_calls[DRIVER_CALLS] = {
#define CALL(symbol, base, since, flags, result, parameters) {#symbol, #base, since, flags},
#define BARE(symbol, base) {#symbol, #base, 0, DRIVER_BARE},
#include "driver/calls.def"
};

struct result {
    CUresult value;
    const char *name;
    const char *text;
};

static const struct result results[] = {
#define RESULT(name, value, text) {name, #name, text},
#include "driver/results.def"
};

_Static_assert(sizeof(struct driver) == sizeof(void *) + DRIVER_CALLS * sizeof(driver_function),
               "struct driver has a pointer for each call and nothing between them");

int driver_open(struct driver *driver, const char *path, char *why, size_t size)
{
    int found = 0;

    memset(driver, 0, sizeof *driver);
    if (!path)
        path = "libcuda.so.1";
    driver->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!driver->handle) {
        const char *error = dlerror();
        if (why)
            snprintf(why, size, "%s", error ? error : path);
        return -ENOENT;
    }
    for (int i = 0; i < DRIVER_CALLS; i++) {
        void *address = dlsym(driver->handle, driver_calls[i].symbol);
        // ISO C has no conversion from an object pointer to a function pointer.
        memcpy(&driver->call[i], &address, sizeof address);
        found += address != NULL;
    }
    if (!found) {
        if (why)
            snprintf(why, size, "%s: not a CUDA driver, it exports none of its calls", path);
        driver_close(driver);
        return -ENOSYS;
    }
    return 0;
}

void driver_close(struct driver *driver)
{
    if (driver->handle)
        dlclose(driver->handle);
    memset(driver, 0, sizeof *driver);
}

// Returns the index of the first row of a base, DRIVER_CALLS if there is none.
static int first_row(const char *base)
{
    int low = 0, high = DRIVER_CALLS;

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(base, driver_calls[middle].base) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < DRIVER_CALLS && strcmp(base, driver_calls[low].base) == 0 ? low : DRIVER_CALLS;
}

static bool same_base(int row, int first)
{
    return row < DRIVER_CALLS && strcmp(driver_calls[row].base, driver_calls[first].base) == 0;
}

const struct driver_call *driver_call_for_version(const char *base, int version, bool per_thread)
{
    const struct driver_call *best[2] = {NULL, NULL};
    bool variants = false;
    int first = first_row(base);

    for (int row = first; same_base(row, first); row++) {
        const struct driver_call *call = &driver_calls[row];
        bool variant = call->flags & (DRIVER_PTSZ | DRIVER_PTDS);

        variants |= variant;
        // Rows come in order of age, so the last that fits is the newest.
        if (call->since <= version && !(call->flags & DRIVER_BARE))
            best[variant] = call;
    }
    // Drivers do not fall back to the plain call in versions older than its per-thread variant.
    return best[per_thread && variants];
}

static const struct result *find_result(CUresult value)
{
    size_t low = 0, high = sizeof results / sizeof *results;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (results[middle].value == value)
            return &results[middle];
        if (results[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *driver_result_name(CUresult result)
{
    const struct result *found = find_result(result);
    return found ? found->name : NULL;
}

const char *driver_result_text(CUresult result)
{
    const struct result *found = find_result(result);
    return found ? found->text : NULL;
}

unsigned driver_format_bytes(CUarray_format format)
{
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    default: return 0;
    }
}
