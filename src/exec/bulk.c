// SPDX-License-Identifier: MIT
#include "exec/bulk.h"

#include <string.h>

#include "exec/access.h"
#include "exec/atomic.h"
#include "exec/cluster.h"
#include "exec/mbarrier.h"

enum { PIECE = 16 };  // divides all sizes and addresses

struct copy {
    uint64_t to, from, barrier;
    uint32_t bytes;
};

static void reduce(uint32_t what, char *to, const char *from)
{
    unsigned size = 1u << atomic_log(what);
    for (unsigned k = 0; k < PIECE; k += size)
        atomic_apply(to + k, what, from + k);
}

static bool copy(struct exec_warp *w, const struct exec_insn *i, unsigned lane, const struct copy *c)
{
    const struct exec_insn *end = i + (i->flags & BULK_SIGNALS ? 3 : 2);
    for (uint32_t k = 0; k < c->bytes; k += PIECE) {
        char bytes[PIECE];
        if (!access_read(w, i + 2, lane, c->from + k, bytes, PIECE))
            return false;
        if (!(i->flags & BULK_REDUCES)) {
            if (!access_write(w, i + 1, lane, c->to + k, bytes, PIECE))
                return false;
            continue;
        }
        char *to = access_host(w, i + 1, lane, c->to + k, PIECE, true);
        if (!to)
            return w->state != WARP_FAULT && fault_raise(w, i, EXEC_INVALID_ADDRESS_SPACE);
        reduce(i->e, to, bytes);
    }
    return !(i->flags & BULK_SIGNALS) || mbarrier_bytes(w, end, lane, c->barrier, c->bytes);
}

// Copies to the same offset in several blocks, and signals each block's barrier.
static bool copy_to_all(struct exec_warp *w, const struct exec_insn *i, unsigned lane, const struct copy *c)
{
    uint32_t blocks = ((const uint16_t *)(w->regs + i->c))[lane];
    if (blocks >> w->block->cluster->size)
        return fault_raise(w, i, EXEC_ILLEGAL_INSTRUCTION);
    for (; blocks; blocks &= blocks - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(blocks);
        struct copy one = *c;
        one.to = cluster_address(c->to, rank);
        one.barrier = cluster_address(c->barrier, rank);
        if (!copy(w, i, lane, &one))
            return false;
    }
    return true;
}

const struct exec_insn *bulk_copy(struct exec_warp *w, const struct exec_insn *i)
{
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        struct copy c = {
            .to = access_address(w, i + 1, lane),
            .from = access_address(w, i + 2, lane),
            .bytes = ((const uint32_t *)(w->regs + i->b))[lane],
        };
        if (c.bytes % PIECE)
            return fault_raise(w, i, EXEC_ILLEGAL_INSTRUCTION);
        if (i->flags & BULK_SIGNALS)
            c.barrier = access_address(w, i + 3, lane);
        if (!(i->flags & BULK_MULTICAST ? copy_to_all : copy)(w, i, lane, &c))
            return NULL;
    }
    return i + (i->flags & BULK_SIGNALS ? 4 : 3);
}

const struct exec_insn *bulk_signal(struct exec_warp *w, const struct exec_insn *i)
{
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        if (!mbarrier_bytes(w, i + 1, lane, access_address(w, i + 1, lane), i->flags >> BULK_SIZE_SHIFT))
            return NULL;
    }
    return i + 2;
}
