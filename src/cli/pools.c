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

static int set_and_close(const char *variable, struct out *o, int overwrite)
{
    out_char(o, 0);
    int err = o->error ? o->error : setenv(variable, o->buf, overwrite) ? -errno : 0;
    out_close(o);
    return err;
}

static int set_nvtx(const char *folder)
{
    struct out o;
    out_to_memory(&o);
    out_fmt(&o, "%s/" LIBDIR_GUARD, folder);
    return set_and_close("NVTX_INJECTION64_PATH", &o, 0);
}

// Makes Python import our module at its start; ours imports the one that it hides.
static int set_python(const char *folder, const struct options *options)
{
    const char *old = getenv("PYTHONPATH");
    struct out o;
    out_to_memory(&o);
    out_fmt(&o, "%s/python", folder);
    if (old && *old)
        out_fmt(&o, ":%s", old);
    int err = set_and_close("PYTHONPATH", &o, 1);
    out_to_memory(&o);
    if (options->torch_alloc)
        out_cstr(&o, "torch-alloc ");
    if (options->unpool)
        out_cstr(&o, "unpool ");
    int err2 = set_and_close("MOAT_PYTHON", &o, 1);
    return err ? err : err2;
}

int pools_set(const char *folder, const struct options *options)
{
    int err = set_nvtx(folder);
    if (!err && options->unpool) {
#define POOL(framework, variable, value) err = err ? err : set_default(variable, value);
#include "base/pools.def"
#undef POOL
    }
    if (!err && (options->unpool || options->torch_alloc))
        err = set_python(folder, options);
    return err;
}
