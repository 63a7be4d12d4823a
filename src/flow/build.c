// SPDX-License-Identifier: MIT
#include "flow/build.h"

#include <errno.h>

int build_run(build_fn *fn, void *result, const void *input, struct arena *keep)
{
    struct arena scratch;
    jmp_buf no_memory;
    int err;

    arena_init(keep, 0);
    arena_init(&scratch, 0);
    keep->on_fail = scratch.on_fail = &no_memory;
    if (setjmp(no_memory))
        err = -ENOMEM;
    else
        err = fn(result, input, keep, &scratch);
    arena_free(&scratch);
    if (err)
        arena_free(keep);
    keep->on_fail = NULL;
    return err;
}
