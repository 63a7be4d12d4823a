// SPDX-License-Identifier: MIT
// The input is what /proc/self/cmdline of a ptxas may hold: what is found lies inside of it and ends there.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guard/ptxas.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *found, const char *text, size_t size)
{
    assert(found >= text && found < text + size && memchr(found, '\0', size - (size_t)(found - text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *input, *output;
    char *text = malloc(size ? size : 1);
    if (text) {
        memcpy(text, data, size);
        if (ptxas_files((struct str){text, size}, &input, &output)) {
            check(input, text, size);
            check(output, text, size);
        }
    }
    free(text);
    return 0;
}
