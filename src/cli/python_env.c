// SPDX-License-Identifier: MIT
#include "cli/python_env.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/out.h"

static int set_and_close(const char *variable, struct out *o)
{
    out_char(o, 0);
    int err = o->error ? o->error : setenv(variable, o->buf, 1) ? -errno : 0;
    out_close(o);
    return err;
}

// Returns whether each tensor should be a buffer of its own: if the user says so, and in modes that would see
// only PyTorch's pool otherwise.
static bool wants_torch_alloc(const struct options *options)
{
    const struct option_set *set = options->set;
    bool sees_buffers =
        options->mode & (1 << OPTION_MODE_CANARY | 1 << OPTION_MODE_PAGES | 1 << OPTION_MODE_CHECK);
    for (size_t i = 0; sees_buffers && set && i < set->table->count; i++)
        if (set->table->rows[i].offset == offsetof(struct options, torch_alloc))
            return options->torch_alloc || set->sources[i].origin == OPTION_BY_DEFAULT;
    return options->torch_alloc;
}

// Returns whether a mode looks into kernels, so that what comes from a cache without its PTX must be compiled
// again.
static bool wants_all_ptx(const struct options *options)
{
    return options->mode & (1 << OPTION_MODE_CHECK | 1 << OPTION_MODE_COUNT | 1 << OPTION_MODE_EXPLAIN);
}

// Lists the words that sitecustomize.py knows.
static void add_words(struct out *o, const struct options *options, bool cpu)
{
    if (wants_torch_alloc(options))
        out_cstr(o, "torch-alloc ");
    if (options->unpool)
        out_cstr(o, "unpool ");
    if (options->jit_ptx)
        out_cstr(o, wants_all_ptx(options) ? "ptx ptx-anew " : "ptx ");
    if (cpu && options->jit_ptx) {  // without PTX no kernel of Triton's runs
        out_cstr(o, "launches ");
        out_cstr(o, options->autotune == OPTION_AUTOTUNE_ALL ? "autotune-all " : "autotune-first ");
    }
    if (cpu && options->torch_ops)
        out_cstr(o, "torch-ops ");
}

int python_env_set(const char *folder, const struct options *options, bool cpu)
{
    const char *old = getenv("PYTHONPATH");
    struct out o;
    out_to_memory(&o);
    add_words(&o, options, cpu);
    if (!o.len) {
        out_close(&o);
        return 0;
    }
    int err = set_and_close("MOAT_PYTHON", &o);
    out_to_memory(&o);
    out_fmt(&o, "%s/python", folder);
    if (old && *old)
        out_fmt(&o, ":%s", old);
    int err2 = set_and_close("PYTHONPATH", &o);
    return err ? err : err2;
}
