// SPDX-License-Identifier: MIT
// What a program asks the driver about the driver itself: entry points, versions, names of errors.
#include <dlfcn.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/logs.h"
#include "cpu/say.h"
#include "cpu/whole.h"

#define CALL(symbol, ...)
#define BARE(symbol, base) CUresult symbol(void);
#include "driver/calls.def"

const driver_function api_functions[DRIVER_CALLS] = {
#define CALL(symbol, ...) (driver_function) symbol,
#define BARE(symbol, base) (driver_function) symbol,
#include "driver/calls.def"
};

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = driver_result_name(error);
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = driver_result_text(error);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Returns whether the name exists in some version, though perhaps not in the one asked for.
static bool known(const char *base)
{
    return driver_call_for_version(base, CUDA_VERSION, false) ||
           driver_call_for_version(base, CUDA_VERSION, true);
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    if (!name || !function || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    const struct driver_call *call = NULL;
    if (version <= CUDA_VERSION)
        call = driver_call_for_version(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    *function = NULL;
    if (call)
        memcpy(function, &api_functions[call - driver_calls], sizeof *function);
    CUdriverProcAddressQueryResult found = call          ? CU_GET_PROC_ADDRESS_SUCCESS
                                           : known(name) ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                                         : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (status)
        *status = found;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    CUresult r = cuGetProcAddress_v2(name, function, version, flags, NULL);
    // This version of the call has no status to report a missing function by.
    return r || *function ? r : CUDA_ERROR_NOT_FOUND;
}

// Returns the name of the file that has the code at `address`, without its folders.
static const char *file_of(const void *address)
{
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return "this program";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

// NVRTC and nvJitLink ask for a table too, and do without.
static bool is_compiler(const char *file)
{
    return !strncmp(file, "libnvrtc", 8) || !strncmp(file, "libnvJitLink", 12);
}

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    const char *file = file_of(__builtin_return_address(0));
    if (!is_compiler(file) && !atomic_flag_test_and_set(&said))
        say("%s carries NVIDIA's own CUDA runtime, which works only with NVIDIA's driver, so that its calls "
            "fail: if it is yours, link it again with the flags that `moat link-flags` prints, or build it "
            "with -cudart shared",
            file);
    logs_notify();
    return CUDA_ERROR_INVALID_VALUE;  // as for every table that a driver does not have
}
