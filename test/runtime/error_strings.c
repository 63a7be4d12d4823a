// SPDX-License-Identifier: MIT
//
// Prints every error code that a runtime and a driver know, with its name and text: "R
// CODE<tab>NAME<tab>TEXT" of the runtime, "D CODE<tab>STATUS NAME<tab>STATUS TEXT" of the driver. They are
// those that the loader finds: with NVIDIA's in LD_LIBRARY_PATH this records error_strings.expected.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

static const char unknown[] = "unrecognized error code";

typedef const char *runtime_text(int);
typedef CUresult driver_text(CUresult, const char **);

static void *find(const char *library, const char *symbol)
{
    void *handle = dlopen(library, RTLD_NOW), *found = handle ? dlsym(handle, symbol) : NULL;
    if (!found) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return found;
}

static void ask_runtime(runtime_text *name, runtime_text *text, int code)
{
    if (strcmp(name(code), unknown) != 0 || strcmp(text(code), unknown) != 0)
        printf("R %d\t%s\t%s\n", code, name(code), text(code));
}

// What an unknown code gives is NULL, with an error.
static void ask_driver(driver_text *name, driver_text *text, int code)
{
    const char *its_name = unknown, *its_text = unknown;
    CUresult named = name((CUresult)code, &its_name), told = text((CUresult)code, &its_text);
    if (!named || !told || its_name || its_text)
        printf("D %d\t%d %s\t%d %s\n", code, named, its_name ? its_name : "NULL", told,
               its_text ? its_text : "NULL");
}

int main(void)
{
    static const int far[] = {9999, 10000, 10001, 100000, INT32_MAX};
    runtime_text *name, *text;
    driver_text *driver_name, *driver_string;
    *(void **)&name = find("libcudart.so.13", "cudaGetErrorName");
    *(void **)&text = find("libcudart.so.13", "cudaGetErrorString");
    *(void **)&driver_name = find("libcuda.so.1", "cuGetErrorName");
    *(void **)&driver_string = find("libcuda.so.1", "cuGetErrorString");
    for (int code = -1; code < 1100; code++)
        ask_runtime(name, text, code);
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        ask_runtime(name, text, far[i]);
    for (int code = -1; code < 1100; code++)
        ask_driver(driver_name, driver_string, code);
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        ask_driver(driver_name, driver_string, far[i]);
    return 0;
}
