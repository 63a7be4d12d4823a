// SPDX-License-Identifier: MIT
// Queries by kernels about the device, themselves and errors.
#include <string.h>

#include "base/mutex.h"
#include "cpu/launch.h"
#include "driver/driver.h"
#include "exec/space.h"

int launch_query_ask(void *owner, enum exec_question question, int which, uint64_t *value)
{
    const struct CUctx_st *ctx = ((const struct launch_owner *)owner)->ctx;
    switch (question) {
    case EXEC_ASK_DEVICE: *value = (uint64_t)ctx->device; return CUDA_SUCCESS;
    case EXEC_ASK_DEVICES: *value = device_count(); return CUDA_SUCCESS;
    case EXEC_ASK_VERSION: {
        int version = 0;
        CUresult r = cuDriverGetVersion(&version);
        *value = (uint64_t)version;
        return (int)r;
    }
    case EXEC_ASK_LIMIT: return (int)cpu_context_limit(ctx, (CUlimit)which, value);
    case EXEC_ASK_CACHE_CONFIG: *value = (uint64_t)ctx->cache_config; return CUDA_SUCCESS;
    case EXEC_ASK_SHARED_CONFIG: *value = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE; return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

int launch_query_attribute(void *owner, int which, int device, int *value)
{
    return (int)cuDeviceGetAttribute(value, (CUdevice_attribute)which, device);
}

// Finds the function of a kernel of the caller's own program; a kernel knows the addresses of no others.
static CUresult find(const struct launch_owner *o, const struct exec_kernel *k, struct CUfunc_st **out)
{
    return k->program == o->module->program ? module_function(o->module, k, out) : CUDA_ERROR_INVALID_HANDLE;
}

int launch_query_function(void *owner, const struct exec_kernel *k, int which, int *value)
{
    struct CUfunc_st *f;
    CUresult r = find(owner, k, &f);
    return (int)(r ? r : function_attribute(k, f->settings, (CUfunction_attribute)which, value));
}

int launch_query_occupancy(void *owner, const struct exec_kernel *k, int threads, uint64_t shared,
                           int *blocks)
{
    struct CUfunc_st *f;
    CUresult r = find(owner, k, &f);
    if (r || threads <= 0)
        return (int)(r ? r : CUDA_ERROR_INVALID_VALUE);
    *blocks = (int)occupancy_blocks(k, f->settings, (uint64_t)threads, shared);
    return CUDA_SUCCESS;
}

// All errors of the runtime. Index ERRORS stands for every other number.
static const struct {
    int error;
    const char *name, *text;
} errors[] = {
#define ERROR(name, value, text) {value, #name, text},
#include "driver/cudart_errors.def"
};
enum { ERRORS = sizeof errors / sizeof *errors };

static const char unknown[] = "unrecognized error code";

static const char *text_of(unsigned which, bool name)
{
    if (which == ERRORS)
        return unknown;
    if (name || errors[which].text)
        return name ? errors[which].name : errors[which].text;
    const char *text = driver_result_text((CUresult)errors[which].error);
    return text ? text : unknown;
}

// Strings are never freed: a kernel may keep their addresses.
uint64_t launch_query_error(void *owner, int error, bool name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t texts[ERRORS + 1][2];
    unsigned which = 0;
    while (which < ERRORS && errors[which].error != error)
        which++;
    const char *text = text_of(which, name);
    mutex_lock(&lock);
    uint64_t *at = &texts[which][name];
    if (!*at && (*at = memory_internal_alloc(strlen(text) + 1, 1)))
        memcpy(space_host(*at), text, strlen(text) + 1);
    uint64_t found = *at;
    mutex_unlock(&lock);
    return found;
}
