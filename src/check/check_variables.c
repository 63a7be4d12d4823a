// SPDX-License-Identifier: MIT
#include "check/check_variables.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "context/context_copy.h"
#include "context/names.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "kcheck/kcheck.h"
#include "pass/pass_check.h"
#include "track/track.h"

enum {
    NAME = 4096,
    LEAST = 1 << 16,  // no variable lies in the first 64 KiB: such an address is not what was asked for
};

static bool is_known(uint64_t base, uint64_t size)
{
    unsigned section = epoch_enter();
    const struct track_block *b = track_live(base);
    bool known = b && b->range.base == base && b->range.size == size;
    epoch_leave(section);
    return known;
}

static void record(const struct modules_row *row, const struct pass_check_variable *v, uint64_t base)
{
    char name[NAME];
    if (base < LEAST || base >> KCHECK_ADDRESS_BITS || is_known(base, v->size) ||
        snprintf(name, sizeof name, STR_FMT, STR_ARG(v->name)) >= (int)sizeof name)
        return;
    track_made_for(TRACK_VARIABLE, row->library ? DRIVER_cuLibraryGetGlobal : DRIVER_cuModuleGetGlobal_v2,
                   base, v->size, row->handle, names_keep(name));
}

static CUresult find_symbol(const struct modules_row *row, const char *name, CUdeviceptr *at, size_t *size)
{
    const struct driver *d = &guard.real;
    return row->library ? d->cuLibraryGetGlobal(at, size, (CUlibrary)row->handle, name)
                        : d->cuModuleGetGlobal_v2(at, size, (CUmodule)row->handle, name);
}

// Finds the address of a variable of the program; 0 if the driver does not know it.
static CUresult find_variable(const struct modules_row *of, const struct pass_check_variable *v, uint64_t *to)
{
    CUdeviceptr at = 0;
    size_t size = 0;
    char name[NAME];
    *to = 0;
    if (snprintf(name, sizeof name, STR_FMT, STR_ARG(v->name)) >= (int)sizeof name)
        return CUDA_ERROR_NOT_FOUND;
    CUresult r = find_symbol(of, name, &at, &size);
    if (!r && size != v->size)
        r = CUDA_ERROR_NOT_FOUND;
    if (!r)
        *to = at;
    return r;
}

// Finds where a table is.
static CUresult find_table(const struct modules_row *row, const struct pass_check *c, CUdeviceptr *at)
{
    char name[NAME];
    size_t size = 0;
    if (snprintf(name, sizeof name, STR_FMT, STR_ARG(c->table)) >= (int)sizeof name)
        return CUDA_ERROR_NOT_FOUND;
    CUresult r = find_symbol(row, name, at, &size);
    return !r && size != c->nvariables * sizeof(uint64_t) ? CUDA_ERROR_NOT_FOUND : r;
}

static bool read_table(struct context *ctx, const struct modules_row *row, const struct pass_check *c,
                       uint64_t *addresses)
{
    CUdeviceptr at = 0;
    for (uint32_t i = 0; row->of && i < c->nvariables; i++)
        find_variable(row->of, &c->variables[i], &addresses[i]);
    if (row->of)
        return true;
    if (find_table(row, c, &at))
        return false;
    const struct context_copy copy = {at, addresses, (uint32_t)(c->nvariables * sizeof *addresses)};
    return !context_read(ctx, &copy, 1);
}

static void record_part(struct context *ctx, const struct modules_row *row, const struct pass_check *c)
{
    uint64_t *addresses = mem_alloc(c->nvariables * sizeof *addresses);
    if (addresses && read_table(ctx, row, c, addresses))
        for (uint32_t i = 0; i < c->nvariables; i++)
            record(row->of ? row->of : row, &c->variables[i], addresses[i]);
    mem_free(addresses);
}

void check_variables_record(struct context *ctx, const struct modules_row *row)
{
    for (unsigned i = 0; i < row->nparts; i++)
        if (row->parts[i]->check && row->parts[i]->check->nvariables)
            record_part(ctx, row, row->parts[i]->check);
}

CUresult check_variables_place(struct context *ctx, const struct modules_row *row)
{
    const struct pass_check *c = row->parts[0]->check;
    CUdeviceptr at = 0;
    if (!c->nvariables)
        return CUDA_SUCCESS;
    uint64_t *addresses = mem_alloc(c->nvariables * sizeof *addresses);
    CUresult r = addresses ? find_table(row, c, &at) : CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; !r && i < c->nvariables; i++) {
        CUresult found = find_variable(row->of, &c->variables[i], &addresses[i]);
        r = c->variables[i].needed ? found : r;
    }
    const struct context_copy copy = {at, addresses, (uint32_t)(c->nvariables * sizeof *addresses)};
    if (!r)
        r = context_write(ctx, &copy, 1);
    mem_free(addresses);
    return r;
}
