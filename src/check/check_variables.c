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

static void record_part(struct context *ctx, const struct modules_row *row, const struct pass_check *c)
{
    const struct driver *d = &guard.real;
    CUdeviceptr at = 0;
    size_t size = 0, bytes = c->nvariables * sizeof(uint64_t);
    char table[NAME];
    uint64_t *addresses = mem_alloc(bytes);
    if (!addresses || snprintf(table, sizeof table, STR_FMT, STR_ARG(c->table)) >= (int)sizeof table) {
        mem_free(addresses);
        return;
    }
    CUresult r = row->library ? d->cuLibraryGetGlobal(&at, &size, (CUlibrary)row->handle, table)
                              : d->cuModuleGetGlobal_v2(&at, &size, (CUmodule)row->handle, table);
    const struct context_copy copy = {at, addresses, (uint32_t)bytes};
    if (!r && size == bytes && !context_read(ctx, &copy, 1))
        for (uint32_t i = 0; i < c->nvariables; i++)
            record(row, &c->variables[i], addresses[i]);
    mem_free(addresses);
}

void check_variables_record(struct context *ctx, const struct modules_row *row)
{
    for (unsigned i = 0; i < row->nparts; i++)
        if (row->parts[i]->check && row->parts[i]->check->nvariables)
            record_part(ctx, row, row->parts[i]->check);
}
