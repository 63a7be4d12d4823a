// SPDX-License-Identifier: MIT
// The input is a name, as a program's module may have it: it is taken apart into buffers of two sizes, and
// what fits into both is the same. Its brief form is no longer than the name.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/kernel_name.h"
#include "report/brief_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = malloc(size + 1), *large = malloc(64 * size + 64), small[16];
    if (name && large) {
        memcpy(name, data, size);
        name[size] = 0;
        bool known = kernel_name_plain(name, large, 64 * size + 64);
        assert(kernel_name_plain(name, small, sizeof small) == known);
        assert(!strncmp(small, large, sizeof small - 1) && strlen(small) < sizeof small);
        assert(known || !strcmp(large, name));
        assert(strlen(brief_name(name, large, 64 * size + 64)) <= strlen(name));
    }
    free(name);
    free(large);
    return 0;
}
