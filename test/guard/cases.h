// SPDX-License-Identifier: MIT
// Programs that consist of cases, each a function that is wrong or right: PROGRAM bad NAME, PROGRAM good
// NAME, PROGRAM list. They find a libcuda as programs do, and require only that the correct calls succeed.
#ifndef CASES_H
#define CASES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

static struct driver d;
static CUcontext context;

// Correct calls must succeed, with and without moat.
#define NEED(call) cases_need((call), #call, __FILE_NAME__, __LINE__)

// The call that may be wrong: only in the twin it must succeed.
#define TRY(call) (bad ? (void)(call) : NEED(call))

#ifndef __FILE_NAME__
#define __FILE_NAME__ (strrchr("/" __FILE__, '/') + 1)
#endif

static inline void cases_need(CUresult r, const char *call, const char *file, int line)
{
    if (!r)
        return;
    printf("%s:%d: %s gives %d\n", file, line, call, r);
    exit(r == CUDA_ERROR_NOT_SUPPORTED ? 77 : 2);
}

struct cases_row {
    const char *name;
    void (*run)(int bad);
    const char *type, *traits;
};
#define CASE(function, type, traits)      \
    {                                     \
#function, function, type, traits \
    }

static inline int cases_list(const struct cases_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%s %s%s%s\n", rows[i].name, rows[i].type, *rows[i].traits ? " " : "", rows[i].traits);
    return 0;
}

static inline int cases_main(int argc, char **argv, const struct cases_row *rows, size_t count)
{
    char why[300];
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return cases_list(rows, count);
    if (argc != 3)
        return 2;
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    for (size_t i = 0; i < count; i++)
        if (strcmp(argv[2], rows[i].name) == 0) {
            rows[i].run(strcmp(argv[1], "bad") == 0);
            return 0;
        }
    printf("no case %s\n", argv[2]);
    return 2;
}

#endif
