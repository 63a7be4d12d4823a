// SPDX-License-Identifier: MIT
#include "exec/mbarrier.h"

#include "exec/access.h"

enum { COUNT_BITS = 20, EXPECTED_AT = 20, BYTES_AT = 40, BYTES_BITS = 22, PHASE_AT = 63 };

struct barrier {
    uint32_t pending, expected;
    int32_t bytes;
    uint32_t phase;
};

static uint64_t cut(uint64_t x, unsigned bits)
{
    return x & (((uint64_t)1 << bits) - 1);
}

static struct barrier unpack(uint64_t word)
{
    uint32_t bytes = (uint32_t)cut(word >> BYTES_AT, BYTES_BITS);
    return (struct barrier){
        .pending = (uint32_t)cut(word, COUNT_BITS),
        .expected = (uint32_t)cut(word >> EXPECTED_AT, COUNT_BITS),
        .bytes = (int32_t)(bytes << (32 - BYTES_BITS)) >> (32 - BYTES_BITS),
        .phase = (uint32_t)(word >> PHASE_AT),
    };
}

static uint64_t pack(struct barrier b)
{
    return cut(b.pending, COUNT_BITS) | cut(b.expected, COUNT_BITS) << EXPECTED_AT |
           cut((uint64_t)b.bytes, BYTES_BITS) << BYTES_AT | (uint64_t)(b.phase & 1) << PHASE_AT;
}

static void complete(struct barrier *b)
{
    if (b->pending || b->bytes)
        return;
    b->phase ^= 1;
    b->pending = b->expected;
}

// Returns the barrier's host address; NULL after a fault of w.
static uint64_t *place_at(struct exec_warp *w, const struct exec_insn *at, unsigned lane, uint64_t address)
{
    char *host = access_host(w, at, lane, address, 8, true);
    if (!host && w->state != WARP_FAULT)
        fault_raise(w, at, EXEC_INVALID_ADDRESS_SPACE);
    return (uint64_t *)host;
}

static uint64_t *place(struct exec_warp *w, const struct exec_insn *i, unsigned lane)
{
    return place_at(w, i + 1, lane, access_address(w, i + 1, lane));
}

static uint32_t value(const struct exec_warp *w, uint32_t slot, unsigned lane)
{
    return ((const uint32_t *)(w->regs + slot))[lane];
}

#define FOR_LANES(w)                                                                                   \
    for (uint32_t left_ = (w)->mask, lane = 0; left_ && (lane = (uint32_t)__builtin_ctz(left_), true); \
         left_ &= left_ - 1)

const struct exec_insn *mbarrier_init(struct exec_warp *w, const struct exec_insn *i)
{
    FOR_LANES(w)
    {
        uint64_t *to = place(w, i, lane);
        uint32_t count = value(w, i->b, lane);
        if (!to)
            return NULL;
        if (!count || count > MBARRIER_MOST)
            return fault_raise(w, i, EXEC_ILLEGAL_INSTRUCTION);
        *to = pack((struct barrier){.pending = count, .expected = count});
    }
    return i + 2;
}

const struct exec_insn *mbarrier_inval(struct exec_warp *w, const struct exec_insn *i)
{
    FOR_LANES(w)
    {
        uint64_t *to = place(w, i, lane);
        if (!to)
            return NULL;
        *to = 0;
    }
    return i + 2;
}

const struct exec_insn *mbarrier_arrive(struct exec_warp *w, const struct exec_insn *i)
{
    FOR_LANES(w)
    {
        uint64_t *at = place(w, i, lane);
        if (!at)
            return NULL;
        uint64_t before = *at;
        uint32_t count = i->b ? value(w, i->b, lane) : 1;
        struct barrier b = unpack(before);
        if (i->flags & MBARRIER_EXPECT)
            b.bytes += (int32_t)value(w, i->c, lane);
        if (i->flags & MBARRIER_DROP)
            b.expected -= count;
        b.pending -= count;
        complete(&b);
        *at = pack(b);
        if (i->d)
            ((uint64_t *)(w->regs + i->d))[lane] = before;
    }
    return i + 2;
}

static const struct exec_insn *change_bytes(struct exec_warp *w, const struct exec_insn *i, bool expect)
{
    FOR_LANES(w)
    {
        uint64_t *at = place(w, i, lane);
        if (!at)
            return NULL;
        struct barrier b = unpack(*at);
        int32_t bytes = (int32_t)value(w, i->b, lane);
        b.bytes += expect ? bytes : -bytes;
        if (!expect)
            complete(&b);
        *at = pack(b);
    }
    return i + 2;
}

const struct exec_insn *mbarrier_expect(struct exec_warp *w, const struct exec_insn *i)
{
    return change_bytes(w, i, true);
}

const struct exec_insn *mbarrier_complete(struct exec_warp *w, const struct exec_insn *i)
{
    return change_bytes(w, i, false);
}

bool mbarrier_bytes(struct exec_warp *w, const struct exec_insn *at, unsigned lane, uint64_t address,
                    uint32_t bytes)
{
    uint64_t *to = place_at(w, at, lane, address);
    if (!to)
        return false;
    struct barrier b = unpack(*to);
    b.bytes -= (int32_t)bytes;
    complete(&b);
    *to = pack(b);
    return true;
}

// The phase of a state has ended if the barrier is in another phase.
const struct exec_insn *mbarrier_wait(struct exec_warp *w, const struct exec_insn *i)
{
    uint32_t done = 0;
    FOR_LANES(w)
    {
        const uint64_t *at = place(w, i, lane);
        if (!at)
            return NULL;
        uint32_t phase = i->flags & MBARRIER_PARITY
                             ? value(w, i->b, lane) & 1
                             : unpack(((const uint64_t *)(w->regs + i->b))[lane]).phase;
        done |= (uint32_t)(unpack(*at).phase != phase) << lane;
    }
    uint32_t *p = (uint32_t *)(w->regs + i->d);
    *p = (*p & ~w->mask) | done;
    if (done == w->mask || !(i->flags & MBARRIER_TRY))
        return i + 2;
    // try_wait may wait a while before it returns false: here, for a turn.
    w->spins = true;
    return sched_yield_turn(w, i + 2);
}

const struct exec_insn *mbarrier_pending(struct exec_warp *w, const struct exec_insn *i)
{
    FOR_LANES(w)
    ((uint32_t *)(w->regs + i->d))[lane] = unpack(((const uint64_t *)(w->regs + i->a))[lane]).pending;
    return i + 1;
}
