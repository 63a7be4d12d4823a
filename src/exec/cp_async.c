// SPDX-License-Identifier: MIT
#include "exec/cp_async.h"

#include <string.h>

#include "exec/access.h"

// Returns the host address of an access that is simple and allowed; NULL: access.c must check it.
static char *direct(const struct exec_warp *w, const struct exec_insn *at, uint64_t address, unsigned size,
                    unsigned right)
{
    const struct exec_block *b = w->block;
    if (address & (size - 1))
        return NULL;
    if (access_space(at) == ACCESS_SHARED) {
        uint64_t own = address - b->shared_base;
        return own <= b->shared_size && size <= b->shared_size - own ? b->shared + own : NULL;
    }
    return access_space(at) == ACCESS_GLOBAL && space_access(address, size, right) ? space_host(address)
                                                                                   : NULL;
}

const struct exec_insn *cp_async(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *source = i + 1, *to = i + 2;
    unsigned size = 1u << (i->flags & ACCESS_LOG);
    uint32_t ignore = i->c ? *(const uint32_t *)(w->regs + i->c) : 0;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        uint32_t have = i->b ? ((const uint32_t *)(w->regs + i->b))[lane] : size;
        have = ignore >> lane & 1 ? 0 : have < size ? have : size;
        uint64_t from = access_address(w, source, lane), into = access_address(w, to, lane);
        const char *there = have == size ? direct(w, source, from, size, SPACE_READ) : NULL;
        char *here = there ? direct(w, to, into, size, SPACE_WRITE) : NULL;
        if (here) {
            memcpy(here, there, size);
            continue;
        }
        char bytes[16] = {0};
        // Bytes beyond `have` must not be read, so a partial source is read byte by byte.
        if (have == size) {
            if (!access_read(w, source, lane, from, bytes, size))
                return NULL;
        } else {
            for (unsigned k = 0; k < have; k++)
                if (!access_read(w, source, lane, from + k, bytes + k, 1))
                    return NULL;
        }
        if (!access_write(w, to, lane, into, bytes, size))
            return NULL;
    }
    return i + 3;
}
