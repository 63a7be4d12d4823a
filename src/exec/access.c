// SPDX-License-Identifier: MIT
// Accesses to memory lane by lane: slow, exact, for every space. lanes_mem.c has the fast paths.
#include "exec/access.h"

#include <string.h>

#include "exec/cluster.h"
#include "exec/lanes_mem.h"

enum { WORD = 4, ROW = EXEC_LANES * WORD, WIDE = 32 };

static const char *const names[ACCESS_SPACES] = {"generic", "global", "shared", "local", "param"};

uint64_t access_address(const struct exec_warp *w, const struct exec_insn *i, unsigned lane)
{
    if (i->flags & ACCESS_NO_BASE)
        return i->imm + (access_space(i) == ACCESS_LOCAL    ? w->frame->local_base
                         : access_space(i) == ACCESS_SHARED ? w->block->shared_base
                                                            : 0);
    if (i->flags & ACCESS_A32)
        return (uint32_t)(((const uint32_t *)(w->regs + i->a))[lane] + (uint32_t)i->imm);
    return ((const uint64_t *)(w->regs + i->a))[lane] + i->imm;
}

// Returns the space that an address is in; *address becomes an offset there.
static enum access_space resolve_space(enum access_space where, uint64_t *address)
{
    if (where != ACCESS_GENERIC)
        return where;
    if (*address - space.shared_window < SPACE_WINDOW) {
        *address -= space.shared_window;
        return ACCESS_SHARED;
    }
    if (*address - space.local_window < SPACE_WINDOW) {
        *address -= space.local_window;
        return ACCESS_LOCAL;
    }
    return ACCESS_GLOBAL;
}

// Returns whether the access is skipped; if not, w has faulted.
static bool raise_fault(struct exec_warp *w, const struct exec_insn *i, enum exec_fault_kind kind,
                        unsigned lane, uint64_t address, unsigned size, bool write, bool may_skip)
{
    enum access_space where = access_space(i);
    uint64_t offset = address;
    if (i->flags & ACCESS_WIDE)
        size = WIDE;
    if (where == ACCESS_SHARED)
        address += space.shared_window;
    else if (where == ACCESS_LOCAL)
        address += space.local_window;
    // An address in a window belongs to that space, whatever instruction has used it.
    enum access_space in = resolve_space(where, &offset);
    const char *name = names[in == ACCESS_GLOBAL ? where : in];
    if (may_skip && fault_skip(w, i, kind, lane, address, size, write, name))
        return true;
    fault_memory(w, i, kind, lane, address, size, write, name);
    return false;
}

void access_misaligned(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address,
                       unsigned size, bool write)
{
    raise_fault(w, i, EXEC_MISALIGNED_ADDRESS, lane, address, size, write, false);
}

// Returns the host address in the shared memory of another block of the cluster; NULL if out of bounds.
static __attribute__((noinline)) char *cluster_at(const struct exec_warp *w, uint64_t at, unsigned size)
{
    const struct exec_block *b = cluster_block(w, &at);
    return b && at <= b->shared_size && size <= b->shared_size - at ? b->shared + at : NULL;
}

// Returns the host address of an offset in the window of shared memory; NULL if `size` bytes there are out of
// bounds.
static inline char *shared_at(const struct exec_warp *w, uint64_t at, unsigned size)
{
    const struct exec_block *b = w->block;
    uint64_t own = at - b->shared_base;
    if (own <= b->shared_size && size <= b->shared_size - own)
        return b->shared + own;
    return cluster_rank(at) == b->rank ? NULL : cluster_at(w, at, size);
}

// Returns whether an access that may reach the block's own shared memory alone is to that of another block of
// the cluster. A GPU calls the instruction illegal.
static bool is_others(const struct exec_warp *w, const struct exec_insn *i, uint64_t at)
{
    uint32_t rank = cluster_rank(at);
    return i->flags & ACCESS_OWN && access_space(i) == ACCESS_SHARED && rank != w->block->rank &&
           rank < w->block->cluster->size;
}

static bool is_allowed(const struct exec_warp *w, enum access_space where, uint64_t at, unsigned size,
                       bool write)
{
    switch (where) {
    case ACCESS_SHARED: return shared_at(w, at, size);
    case ACCESS_LOCAL: return at <= w->block->grid->local_size && size <= w->block->grid->local_size - at;
    default: return space_access(at, size, write ? SPACE_WRITE : SPACE_READ);
    }
}

enum { SKIPPED = ACCESS_SPACES + 1 };

// Checks an access and makes *address an offset in the space that it returns. Returns ACCESS_SPACES after a
// fault of w, SKIPPED if the access is to have no effect.
static int check(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t *address,
                 unsigned size, bool write, bool may_skip)
{
    uint64_t original = *address;
    if (original & (size - 1)) {
        return raise_fault(w, i, EXEC_MISALIGNED_ADDRESS, lane, original, size, write, may_skip)
                   ? SKIPPED
                   : ACCESS_SPACES;
    }
    enum access_space where = resolve_space(access_space(i), address);
    bool others = is_others(w, i, original);
    if (!others && is_allowed(w, where, *address, size, write))
        return (int)where;
    enum exec_fault_kind kind = others ? EXEC_ILLEGAL_INSTRUCTION : EXEC_ILLEGAL_ADDRESS;
    return raise_fault(w, i, kind, lane, original, size, write, may_skip) ? SKIPPED : ACCESS_SPACES;
}

// The common case: all lanes are active and aligned. Returns false in other cases.
static bool quick_wide(struct exec_warp *w, const struct exec_insn *i)
{
    uint64_t *d = (uint64_t *)(w->regs + i->d), any = 0;
    const uint64_t *a = (const uint64_t *)(w->regs + i->a);
    if (w->mask != EXEC_ALL || i->flags & (ACCESS_NO_BASE | ACCESS_A32))
        return false;
    for (unsigned l = 0; l < EXEC_LANES; l++) {
        d[l] = a[l];
        any |= a[l] + i->imm;
    }
    return any % WIDE == 0;
}

const struct exec_insn *access_wide(struct exec_warp *w, const struct exec_insn *i)
{
    if (quick_wide(w, i))
        return i + 1;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        uint64_t at = access_address(w, i, lane);
        // Skipped, its parts are accesses of their own.
        if (at % WIDE &&
            !raise_fault(w, i, EXEC_MISALIGNED_ADDRESS, lane, at, WIDE, i->flags & ACCESS_STORES, true))
            return NULL;
        if (i->flags & ACCESS_NO_BASE)
            continue;
        if (i->flags & ACCESS_A32)
            ((uint32_t *)(w->regs + i->d))[lane] = ((const uint32_t *)(w->regs + i->a))[lane];
        else
            ((uint64_t *)(w->regs + i->d))[lane] = ((const uint64_t *)(w->regs + i->a))[lane];
    }
    return i + 1;
}

static char *word(const struct exec_warp *w, unsigned lane, uint32_t at)
{
    return w->local + (size_t)(at / WORD) * ROW + lane * WORD + at % WORD;
}

void access_local_read(const struct exec_warp *w, unsigned lane, uint32_t at, void *to, unsigned size)
{
    for (unsigned k = 0, n; k < size; k += n) {
        n = WORD - (at + k) % WORD;
        n = n < size - k ? n : size - k;
        memcpy((char *)to + k, word(w, lane, at + k), n);
    }
}

void access_local_write(struct exec_warp *w, unsigned lane, uint32_t at, const void *from, unsigned size)
{
    for (unsigned k = 0, n; k < size; k += n) {
        n = WORD - (at + k) % WORD;
        n = n < size - k ? n : size - k;
        memcpy(word(w, lane, at + k), (const char *)from + k, n);
    }
}

void access_local_copy(struct exec_warp *w, uint32_t to, uint32_t from, uint32_t size, uint32_t mask)
{
    for (uint32_t k = 0; k < size; k += WORD) {
        uint32_t *d = (uint32_t *)word(w, 0, to + k);
        const uint32_t *s = (const uint32_t *)word(w, 0, from + k);
        if (mask == EXEC_ALL)
            memcpy(d, s, ROW);
        else
            for (uint32_t left = mask; left; left &= left - 1)
                d[__builtin_ctz(left)] = s[__builtin_ctz(left)];
    }
}

bool access_read(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address, void *to,
                 unsigned size)
{
    switch (check(w, i, lane, &address, size, false, true)) {
    case ACCESS_SPACES: return false;
    case SKIPPED: memset(to, 0, size); return true;
    case ACCESS_SHARED: memcpy(to, shared_at(w, address, size), size); return true;
    case ACCESS_LOCAL: access_local_read(w, lane, (uint32_t)address, to, size); return true;
    default: access_load_whole(to, space_host(address), size); return true;
    }
}

bool access_write(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address,
                  const void *from, unsigned size)
{
    switch (check(w, i, lane, &address, size, true, true)) {
    case ACCESS_SPACES: return false;
    case SKIPPED: return true;
    case ACCESS_SHARED: memcpy(shared_at(w, address, size), from, size); return true;
    case ACCESS_LOCAL: access_local_write(w, lane, (uint32_t)address, from, size); return true;
    default: access_store_whole(space_host(address), from, size); return true;
    }
}

static char *host(struct exec_warp *w, unsigned lane, int where, uint64_t address, unsigned size)
{
    switch (where) {
    case ACCESS_SPACES: return NULL;
    case ACCESS_SHARED: return shared_at(w, address, size);
    case ACCESS_LOCAL: return size <= WORD ? word(w, lane, (uint32_t)address) : NULL;
    default: return space_host(address);
    }
}

char *access_host(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address,
                  unsigned size, bool write)
{
    int where = check(w, i, lane, &address, size, write, false);
    return host(w, lane, where, address, size);
}

char *access_atomic(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address,
                    unsigned size)
{
    static _Thread_local _Alignas(16) char nowhere[16];
    int where = check(w, i, lane, &address, size, true, true);
    return where == SKIPPED ? memset(nowhere, 0, sizeof nowhere) : host(w, lane, where, address, size);
}

bool access_string(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address, char *to,
                   unsigned size)
{
    for (unsigned k = 0; k + 1 < size; k++) {
        if (!access_read(w, i, lane, address + k, &to[k], 1))
            return false;
        if (!to[k])
            return true;
    }
    to[size - 1] = 0;
    return true;
}

static const struct lanes_mem *chosen(void)
{
    static const struct {
        const char *name;
        const struct lanes_mem *rows;
    } sets[] = {
#ifdef LANES_HAVE_avx512
        {"avx512", &lanes_mem_avx512},
#endif
#ifdef LANES_HAVE_avx2
        {"avx2", &lanes_mem_avx2},
#endif
    };
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
        if (!strcmp(sets[k].name, exec_lanes_name()))
            return sets[k].rows;
    return &lanes_mem_plain;
}

exec_fn *access_fn(uint32_t flags)
{
    const struct lanes_mem *rows = chosen();
    unsigned where = flags >> ACCESS_SPACE_SHIFT & 7, log = flags & ACCESS_LOG;
    if (where >= ACCESS_SPACES || log > 4)
        return NULL;
    return flags & ACCESS_STORES ? rows->store[where][log] : rows->load[where][log];
}
