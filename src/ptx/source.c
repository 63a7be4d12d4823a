// SPDX-License-Identifier: MIT
// From .loc to lines of source code.
#include "ptx/ptx.h"

static const struct ptx_source_file *find_file(const struct ptx_module *m, uint32_t number)
{
    uint32_t low = 0, high = m->nfiles;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->files[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->nfiles && m->files[low].number == number ? &m->files[low] : NULL;
}

bool ptx_loc_source(const struct ptx_module *m, const struct ptx_loc *loc, struct ptx_source *out)
{
    const struct ptx_source_file *file = find_file(m, loc->file);
    if (!file || loc->line == 0)
        return false;
    *out = (struct ptx_source){file->name, loc->line, loc->column};
    return true;
}
