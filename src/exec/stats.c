// SPDX-License-Identifier: MIT
#include "exec/stats.h"

#include "exec/access.h"
#include "exec/atomic.h"
#include "exec/bulk.h"
#include "exec/control.h"
#include "exec/cp_async.h"
#include "exec/matrix.h"
#include "exec/mbarrier.h"
#include "exec/tensor.h"

enum { SECTOR = 32, MAP = 128 };

// --- accesses ----------------------------------------------------------------------------------------------

// Instructions whose addresses are in the instructions that follow them, with a bit for each of those that is
// an access of the program; a copy's read of a tensor map is not.
enum { FIRST = 1, SECOND = 2, THIRD = 4, FOURTH = 8 };
static const struct carrier {
    exec_fn *fn;
    uint8_t accesses;
    bool converges;  // executed again until all lanes have arrived
} carriers[] = {
    {cp_async, FIRST | SECOND, false}, {matrix_ldmatrix, FIRST, true},
    {matrix_stmatrix, FIRST, true},    {matrix_load, FIRST, true},
    {matrix_store, FIRST, true},       {mbarrier_wait, FIRST, false},
    {mbarrier_arrive, FIRST, false},   {mbarrier_expect, FIRST, false},
    {mbarrier_complete, FIRST, false}, {mbarrier_init, FIRST, false},
    {mbarrier_inval, FIRST, false},    {bulk_copy, FIRST | SECOND, false},
    {bulk_signal, FIRST, false},       {tensor_copy, FIRST | THIRD, false},
    {tensor_replace, FIRST, false},    {tensor_copy_map, FIRST | SECOND, false},
};

// Returns one of 64 bits for each function: a filter that excludes most instructions from the search of the
// table.
static uint64_t bit_of(exec_fn *fn)
{
    return (uint64_t)1 << ((uintptr_t)fn >> 6 & 63);
}

static uint64_t carrier_bits(void)
{
    uint64_t bits = 0;
    for (size_t k = 0; k < sizeof carriers / sizeof *carriers; k++)
        bits |= bit_of(carriers[k].fn);
    return bits;
}

static const struct carrier *carrier_of(const struct exec_insn *i, uint64_t bits)
{
    if (!(bits & bit_of(i->fn)))
        return NULL;
    for (size_t k = 0; k < sizeof carriers / sizeof *carriers; k++)
        if (carriers[k].fn == i->fn)
            return &carriers[k];
    return NULL;
}

// Includes the mbarrier, if a copy signals one.
static unsigned accesses_of(const struct carrier *c, const struct exec_insn *i)
{
    if (i->fn == bulk_copy && i->flags & BULK_SIGNALS)
        return c->accesses | THIRD;
    if (i->fn == tensor_copy && ((const struct tensor_lane *)i->ptr)->signals)
        return c->accesses | FOURTH;
    return c->accesses;
}

static bool is_access(const struct exec_insn *i)
{
    // The flag means nothing in instructions that are not accesses.
    return (i->flags & ACCESS_ATOMIC && atomic_is(i)) || i->fn == access_fn(i->flags);
}

// --- sectors -----------------------------------------------------------------------------------------------

// 32-byte sectors of global memory. Each is compared only with the one before it, which is exact for
// ascending addresses and an upper bound otherwise.
struct sectors {
    uint64_t n, last;
};

static void touch(struct sectors *s, uint64_t at, uint64_t bytes)
{
    if (!bytes)
        return;
    uint64_t first = at / SECTOR, last = (at + bytes - 1) / SECTOR;
    s->n += last - first + (first != s->last);
    s->last = last;
}

// Returns the bytes that a lane's access by i touches; `at` carries the address.
static uint64_t bytes_of(const struct exec_warp *w, const struct exec_insn *i, const struct exec_insn *at,
                         unsigned lane)
{
    if (i->fn == bulk_copy)
        return ((const uint32_t *)(w->regs + i->b))[lane];
    if (i->fn == tensor_replace || i->fn == tensor_copy_map)
        return MAP;
    return access_count(at) << access_log(at);
}

static uint64_t count_sectors(const struct exec_warp *w, const struct exec_insn *i,
                              const struct exec_insn *at)
{
    struct sectors s = {.last = UINT64_MAX};
    unsigned where = access_spelled(at);
    // Only a tensor's map knows where its box lies.
    if ((where != ACCESS_GLOBAL && where != ACCESS_GENERIC) || i->fn == tensor_copy)
        return 0;
    if (i->fn == matrix_load || i->fn == matrix_store) {
        // All lanes have the same address.
        struct matrix_lines m = matrix_lines(w, i, (unsigned)__builtin_ctz(w->mask));
        for (uint32_t k = 0; k < m.lines; k++)
            touch(&s, m.start + k * m.stride, m.bytes);
        return s.n;
    }
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        touch(&s, access_address(w, at, lane), bytes_of(w, i, at, lane));
    }
    return s.n;
}

// --- counting ----------------------------------------------------------------------------------------------

static void add(uint64_t *to, uint64_t n)
{
    __atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

static void count_access(struct exec_stats *s, const struct exec_insn *at, uint64_t touched)
{
    unsigned where = access_spelled(at);
    if (!(at->flags & ACCESS_PART))
        add(at->flags & ACCESS_STORES ? &s->stores[where] : &s->loads[where], 1);
    if (touched)
        add(&s->transactions, touched);
}

static void count(struct exec_stats *s, const struct exec_warp *w, const struct exec_insn *i)
{
    unsigned lanes = (unsigned)__builtin_popcount(w->mask);
    if (i->fn == control_join || i->fn == control_guard)
        return;
    add(&s->warp_insns, 1);
    add(&s->thread_insns, lanes);
    if (i->fn == control_bra_if) {
        uint32_t p = *(const uint32_t *)(w->regs + i->a) & w->mask;
        add(&s->branches, 1);
        add(&s->divergent, p && p != w->mask);
    } else if (is_access(i)) {
        count_access(s, i, count_sectors(w, i, i));
    }
}

// Executes an instruction of the table. Its sectors are counted before it runs, because it may overwrite its
// address register. If it waits for other lanes it has not accessed anything yet, and is not counted.
static const struct exec_insn *run_carrier(struct exec_stats *s, struct exec_warp *w,
                                           const struct exec_insn *i, const struct carrier *c)
{
    uint64_t touched[4];
    unsigned accesses = accesses_of(c, i);
    for (unsigned k = 0; k < 4; k++)
        touched[k] = accesses >> k & 1 ? count_sectors(w, i, i + 1 + k) : 0;
    const struct exec_insn *next = i->fn(w, i);
    if (c->converges && next != i + 2 && w->state != WARP_FAULT)
        return next;
    for (unsigned k = 0; k < 4; k++)
        if (accesses >> k & 1)
            count_access(s, i + 1 + k, touched[k]);
    return next;
}

void stats_run(struct exec_warp *w, const struct exec_insn *i)
{
    struct exec_stats *s = w->block->grid->stats;
    const uint64_t bits = carrier_bits();
    while (i) {
        count(s, w, i);
        // The guarded instruction is counted with the lanes that the guard lets through.
        if (i->fn == control_guard) {
            uint32_t p = *(const uint32_t *)(w->regs + i->a), all = w->mask;
            w->mask = all & (i->flags & CONTROL_NEGATED ? ~p : p);
            if (w->mask)
                count(s, w, i + 1);
            w->mask = all;
        }
        const struct carrier *c = carrier_of(i, bits);
        i = c ? run_carrier(s, w, i, c) : i->fn(w, i);
    }
}
