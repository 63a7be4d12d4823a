// SPDX-License-Identifier: MIT
#include "exec/cp_async.h"

#include <string.h>

#include "exec/access.h"

const struct exec_insn *cp_async(struct exec_warp *w, const struct exec_insn *i)
{
    const struct cp_async_places *c = i->ptr;
    unsigned size = 1u << (i->flags & ACCESS_LOG);
    uint32_t ignore = i->c ? *(const uint32_t *)(w->regs + i->c) : 0;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        uint32_t have = i->b ? ((const uint32_t *)(w->regs + i->b))[lane] : size;
        have = ignore >> lane & 1 ? 0 : have < size ? have : size;
        char bytes[16] = {0};
        // Beyond what exists nothing is read, so it is read piece by piece.
        uint64_t from = access_address(w, &c->from, lane);
        if (have == size) {
            if (!access_read(w, &c->from, lane, from, bytes, size))
                return NULL;
        } else {
            for (unsigned k = 0; k < have; k++)
                if (!access_read(w, &c->from, lane, from + k, bytes + k, 1))
                    return NULL;
        }
        if (!access_write(w, &c->to, lane, access_address(w, &c->to, lane), bytes, size))
            return NULL;
    }
    return i + 1;
}
