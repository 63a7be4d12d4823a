// SPDX-License-Identifier: MIT
//
// Opens a libcuda and compares what it says about itself with src/driver. Prints each difference.
// Exit status: 0 all alike, 1 some difference, 77 no library to compare with.
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"

static int differences;

static void list_present(const struct driver *driver)
{
    for (int i = 0; i < DRIVER_CALLS; i++)
        if (driver->call[i])
            printf("%s\n", driver_calls[i].symbol);
}

static void compare_address(const struct driver *driver, const char *base, int version, int flags)
{
    bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const struct driver_call *call = driver_call_for_version(base, version, per_thread);
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    driver_function expected = call ? driver->call[call - driver_calls] : NULL, function;
    void *address = NULL;

    if (driver->cuGetProcAddress_v2(base, &address, version, (cuuint64_t)flags, &status))
        address = NULL;
    memcpy(&function, &address, sizeof function);
    if (function == expected)
        return;
    differences++;
    printf("%s, version %d, flags %d: not %s\n", base, version, flags, call ? call->symbol : "nothing");
}

// Every version in which some call changed, and the one before it.
static int collect_versions(int *versions)
{
    int count = 0;

    for (int i = 0; i < DRIVER_CALLS; i++) {
        int j = 0;

        while (j < count && versions[j] != driver_calls[i].since)
            j += 2;
        if (j == count && driver_calls[i].since) {
            versions[count++] = driver_calls[i].since;
            versions[count++] = driver_calls[i].since - 1;
        }
    }
    return count;
}

static int compare_addresses(const struct driver *driver, int newest)
{
    int versions[2 * DRIVER_CALLS], count = collect_versions(versions), compared = 0;

    if (!driver->cuGetProcAddress_v2)
        return 0;
    for (int i = 0; i < DRIVER_CALLS; i++) {
        const char *base = driver_calls[i].base;

        if (i && strcmp(base, driver_calls[i - 1].base) == 0)
            continue;
        for (int j = 0; j < count; j++)
            for (int flags = 0; flags < 3 && versions[j] <= newest; flags++, compared++)
                compare_address(driver, base, versions[j], flags);
    }
    return compared;
}

// Drivers of other versions know fewer results or more.
static void compare_results(const struct driver *driver, int newest)
{
    for (int value = -1; driver->cuGetErrorName && value < 1100; value++) {
        const char *ours = driver_result_name((CUresult)value), *theirs = NULL;

        if (driver->cuGetErrorName((CUresult)value, &theirs))
            theirs = NULL;
        if (ours && theirs ? !strcmp(ours, theirs) : ours == theirs || newest != CUDA_VERSION)
            continue;
        differences++;
        printf("result %d: %s, not %s\n", value, theirs ? theirs : "none", ours ? ours : "none");
    }
}

int main(int argc, char **argv)
{
    struct driver driver;
    char why[256];
    int present = 0, newest = 0, compared;

    if (driver_open(&driver, argc > 1 ? argv[1] : NULL, why, sizeof why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    if (argc > 2 && !strcmp(argv[2], "list")) {
        list_present(&driver);
        driver_close(&driver);
        return 0;
    }
    for (int i = 0; i < DRIVER_CALLS; i++) {
        present += driver.call[i] != NULL;
        if (!driver.call[i])
            printf("absent: %s\n", driver_calls[i].symbol);
    }
    if (driver.cuInit)
        driver.cuInit(0);
    if (driver.cuDriverGetVersion)
        driver.cuDriverGetVersion(&newest);
    compared = compare_addresses(&driver, newest);
    compare_results(&driver, newest);
    printf("compared: %d calls present of %d, %d answers of cuGetProcAddress, %d differences\n", present,
           DRIVER_CALLS, compared, differences);
    driver_close(&driver);
    return differences ? 1 : 0;
}
