// SPDX-License-Identifier: MIT
#include "cli/pools.h"

#include <errno.h>
#include <stdlib.h>

#include "base/out.h"
#include "cli/libdir.h"

// Sets a variable unless it is set.
static int set_default(const char *variable, const char *value)
{
    return setenv(variable, value, 0) ? -errno : 0;
}

static int set_default_and_close(const char *variable, struct out *o)
{
    out_char(o, 0);
    int err = o->error ? o->error : setenv(variable, o->buf, 0) ? -errno : 0;
    out_close(o);
    return err;
}

static int set_nvtx(const char *folder)
{
    struct out o;
    out_to_memory(&o);
    out_fmt(&o, "%s/" LIBDIR_GUARD, folder);
    return set_default_and_close("NVTX_INJECTION64_PATH", &o);
}

int pools_set(const char *folder, const struct options *options)
{
    int err = set_nvtx(folder);
    if (!err && options->unpool) {
#define POOL(framework, variable, value) err = err ? err : set_default(variable, value);
#include "base/pools.def"
#undef POOL
    }
    return err;
}
