// SPDX-License-Identifier: MIT
#include "canary/canary_tract.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "canary/canary_ground.h"
#include "canary/canary_slab.h"
#include "core/lock.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "core/slab_pool.h"

enum {
    GRAIN = 2 << 20,     // in which devices give memory
    UNIT = CANARY_LEAD,  // before the first buffer behind a gap
    LARGE = 4 * GRAIN,   // from there on a buffer's end is a piece of its own
    SEVERAL = 8,         // buffers that may follow for which there is room ahead
    PART = 8,            // of all there is so far, what is ahead is a part like this
    PIECE_PART = 2048,   // and a small piece one like this: so much may be lost at its end
    MOST_AHEAD = 64 << 20,
    MOST_PIECE = 512 << 20,
    FEW_MAPS = 4096,  // on the CPU device, where each takes several of the mappings that Linux allows
    PARTS = 2048,     // of a run, in which pieces are found
};
static const uint64_t reserved_most = (uint64_t)64 << 30, reserved_least = (uint64_t)1 << 30;

// Addresses from one reservation.
struct run {
    uint64_t base, bytes;
    unsigned pieces;
    struct run *next;
    struct piece *in[PARTS];  // the first that reaches into each part, under the lock
};

struct piece {
    uint64_t base, bytes;
    uint32_t lead;  // of them, at their start, are not for ranges
    CUmemGenericAllocationHandle handle;
    struct run *run;
    struct piece *next;
    uint64_t free;  // bytes of which nothing is taken, with the lead
    bool open;      // nothing is taken at its start, so that the piece before can go
    // while ranges count as free that are not
    uint64_t also_free;
    bool also_open, seen;
};

// Of a home. The lock is for the space and the pieces; who adds or removes pieces or runs has the builder's lock too.
struct tract {
    struct canary_space space;
    struct piece *first;   // by address
    struct piece *newest;  // ends where the next can start; NULL: there is a gap
    struct run *runs;      // the newest first
    uint64_t spare;        // bytes of pieces that can go
    uint64_t next;         // address in the newest run, from which on nothing is mapped
    unsigned pieces;
    _Atomic(bool) off;  // relaxed: a fact of its own
};

static struct tract tracts[HOME_CONTEXTS];
static struct lock builder = LOCK_INIT(TRACT_BUILDER);  // over calls of the driver's; before `lock`
static struct lock lock = LOCK_INIT(CANARY_TRACT);      // a leaf but for pools
static struct slab_pool pieces = SLAB_POOL(struct piece);
static struct slab_pool runs = SLAB_POOL(struct run);

void canary_tract_after_fork(void)
{
    lock_after_fork(&builder);
    lock_after_fork(&lock);
    slab_pool_after_fork(&pieces);
    slab_pool_after_fork(&runs);
}

static struct tract *tract_of(const struct home *home)
{
    return &tracts[home_number(home)];
}

static uint64_t end_of(const struct piece *p)
{
    return p->base + p->bytes;
}

static bool is_off(const struct home *home)
{
    return atomic_load_explicit(&tract_of(home)->off, memory_order_relaxed);
}

void canary_tract_give_up(const struct home *home, const char *why)
{
    if (!atomic_exchange_explicit(&tract_of(home)->off, true, memory_order_relaxed))
        guard_report_note("canary: mapped memory: %s: a context gets plain memory from now on", why);
}

bool canary_tract_usable(const struct home *home)
{
    const struct home_device *d = home_device(home->device);
    if (guard.options.canary_memory == OPTION_CANARY_MEMORY_PLAIN || is_off(home))
        return false;
    bool able = d && d->mappable && d->exportable && guard.real.cuMemAddressFree;
    // Whether mapped memory can be copied to a device that is no peer is not known.
    if (guard.options.canary_memory == OPTION_CANARY_MEMORY_AUTO)
        return able && d->alone;
    if (!able)
        canary_tract_give_up(home, "the device cannot map memory that other processes can open");
    return able;
}

// --- where pieces are, and what of them is free; under the lock ------------------------------------------------

static uint64_t part_size(const struct run *r)
{
    return (r->bytes + PARTS - 1) / PARTS;
}

static struct piece *find(const struct tract *t, uint64_t address)
{
    const struct run *r = t->runs;
    while (r && address - r->base >= r->bytes)
        r = r->next;
    struct piece *p = r ? r->in[(address - r->base) / part_size(r)] : NULL;
    while (p && end_of(p) <= address)
        p = p->next;
    return p && p->base <= address ? p : NULL;
}

static void enlist(struct piece *p)
{
    struct run *r = p->run;
    uint64_t size = part_size(r);
    for (uint64_t i = (p->base - r->base) / size; i <= (end_of(p) - 1 - r->base) / size; i++)
        if (!r->in[i] || r->in[i]->base > p->base)
            r->in[i] = p;
}

// Its successor is still known.
static void strike(const struct piece *p)
{
    struct run *r = p->run;
    uint64_t size = part_size(r);
    for (uint64_t i = (p->base - r->base) / size; i <= (end_of(p) - 1 - r->base) / size; i++)
        if (r->in[i] == p)
            r->in[i] =
                p->next && p->next->run == r && p->next->base < r->base + (i + 1) * size ? p->next : NULL;
}

// The one that is mapped right behind it, whose first buffer has its head in this one; NULL: none.
static struct piece *depends(const struct piece *p)
{
    struct piece *next = p->next;
    return next && next->base == end_of(p) && !next->lead ? next : NULL;
}

static uint64_t spare_of(const struct piece *p)
{
    return p->free == p->bytes && (!depends(p) || p->next->open) ? p->bytes : 0;
}

// The same if what counts as free were so.
static uint64_t also_spare_of(const struct piece *p)
{
    return p->free + p->also_free >= p->bytes && (!depends(p) || p->next->open || p->next->also_open)
               ? p->bytes
               : 0;
}

// The first piece to which a range matters: the one before too, where it begins with a piece.
static struct piece *first_of(const struct tract *t, uint64_t base, struct piece *at)
{
    struct piece *before = at && at->base == base ? find(t, base - 1) : NULL;
    return before ? before : at;
}

static uint64_t overlap(const struct piece *p, uint64_t base, uint64_t end)
{
    uint64_t from = p->base > base ? p->base : base, to = end_of(p) < end ? end_of(p) : end;
    return from < to ? to - from : 0;
}

// A range is taken, or free again.
static void mark(struct tract *t, uint64_t base, uint64_t bytes, bool taken)
{
    struct piece *at = find(t, base), *first = first_of(t, base, at);
    const uint64_t end = base + bytes;
    for (struct piece *p = first; p && p->base < end; p = p->next)
        t->spare -= spare_of(p);
    for (struct piece *p = at; p && p->base < end; p = p->next) {
        p->free += taken ? -overlap(p, base, end) : overlap(p, base, end);
        p->open = p->base < base ? p->open : !taken;
    }
    for (struct piece *p = first; p && p->base < end; p = p->next)
        t->spare += spare_of(p);
}

uint64_t canary_tract_take(const struct home *home, uint64_t bytes)
{
    struct tract *t = tract_of(home);
    if (is_off(home))
        return 0;
    lock_take(&lock);
    uint64_t base = canary_space_take(&t->space, bytes);
    if (base)
        mark(t, base, bytes, true);
    lock_give(&lock);
    return base;
}

void canary_tract_give(const struct home *home, uint64_t base, uint64_t bytes)
{
    struct tract *t = tract_of(home);
    lock_take(&lock);
    if (canary_space_give(&t->space, base, bytes))
        mark(t, base, bytes, false);
    lock_give(&lock);
}

// --- pieces come --------------------------------------------------------------------------------------------

// What is to be mapped: room for a range, which ends after so many bytes, and for some more of its size.
struct plan {
    uint64_t base, first, need;
    unsigned more;
    uint64_t small;  // size of pieces where ranges are small
    uint32_t lead;
};

// Where the grain ends in which a range ends; number 0: the first.
static uint64_t range_end(const struct plan *plan, unsigned number)
{
    return canary_space_round(plan->first + number * plan->need, GRAIN);
}

static uint64_t plan_end(const struct plan *plan)
{
    return range_end(plan, plan->more);
}

// The piece that comes next, after so many bytes. The grain in which a range ends it shares with the next one: so that is a piece
// of its own, and the rest can go back when the range is free.
static uint64_t piece_size(const struct plan *plan, uint64_t done)
{
    uint64_t left = plan_end(plan) - done;
    if (plan->need < LARGE)
        return left < plan->small ? left : plan->small;
    unsigned number = done < plan->first ? 0 : (unsigned)((done - plan->first) / plan->need + 1);
    uint64_t until = range_end(plan, number > plan->more ? plan->more : number);
    // The start of that grain may have been reached, or passed where two ranges end in one.
    uint64_t bytes = until > done + GRAIN ? until - GRAIN - done : GRAIN;
    return bytes < MOST_PIECE ? bytes : MOST_PIECE;
}

static struct plan make_plan(uint64_t need, uint64_t total)
{
    uint64_t few = SEVERAL * need < total / 2 ? SEVERAL * need : total / 2, ahead = total / PART;
    uint64_t small = total / PIECE_PART / GRAIN * GRAIN;
    ahead = ahead < few ? few : ahead;
    ahead = ahead < MOST_AHEAD ? ahead : MOST_AHEAD;
    return (struct plan){
        .need = need, .more = (unsigned)(ahead / need), .small = small < GRAIN ? GRAIN : small};
}

// Addresses for so many bytes behind the last, or in a new run. 0, or -ENOMEM.
static int find_addresses(struct tract *t, uint64_t bytes)
{
    const struct run *newest = t->runs;
    CUdeviceptr base = 0;
    if (newest && newest->base + newest->bytes - t->next >= bytes)
        return 0;
    struct run *r = slab_pool_get(&runs);
    if (!r)
        return -ENOMEM;
    uint64_t most = bytes < reserved_most ? reserved_most : bytes;
    while (guard.real.cuMemAddressReserve(&base, most, GRAIN, 0, 0)) {
        most /= 2;
        if (most < bytes || most < reserved_least) {
            slab_pool_put(&runs, r);
            return -ENOMEM;
        }
    }
    *r = (struct run){.base = base, .bytes = most / GRAIN * GRAIN, .next = t->runs};
    lock_take(&lock);
    t->runs = r;
    t->next = base;
    t->newest = NULL;
    lock_give(&lock);
    return 0;
}

static void dispose(struct piece *p)
{
    canary_ground_forget(p->base);
    guard.real.cuMemUnmap(p->base, p->bytes);
    guard.real.cuMemRelease(p->handle);
    slab_pool_put(&pieces, p);
}

static struct piece *map_piece(const struct home *home, uint64_t base, uint64_t bytes)
{
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, home->device},
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .allocFlags = {.gpuDirectRDMACapable = home_device(home->device)->rdma},
    };
    struct piece *p = slab_pool_get(&pieces);
    if (!p)
        return NULL;
    *p = (struct piece){.base = base, .bytes = bytes, .free = bytes, .open = true};
    if (guard.real.cuMemCreate(&p->handle, bytes, &prop, 0))
        goto none;
    if (guard.real.cuMemMap(base, bytes, 0, p->handle, 0))
        goto release;
    if (!canary_ground_claim(home, base, bytes, true))
        return p;
    guard.real.cuMemUnmap(base, bytes);
release:
    guard.real.cuMemRelease(p->handle);
none:
    slab_pool_put(&pieces, p);
    return NULL;
}

// As many pieces as can be had; *bytes: of them all.
static struct piece *map_pieces(const struct home *home, const struct plan *plan, uint64_t *bytes)
{
    struct piece *first = NULL, **end = &first;
    for (*bytes = 0; *bytes < plan_end(plan); end = &(*end)->next) {
        *end = map_piece(home, plan->base + *bytes, piece_size(plan, *bytes));
        if (!*end)
            break;
        *bytes += (*end)->bytes;
    }
    return first;
}

static CUresult allow(const struct home *home, uint64_t base, uint64_t bytes)
{
    CUmemAccessDesc access[HOME_DEVICES];
    // Relaxed: a peer that is enabled meanwhile is let in by the call that enables it, or by this one.
    uint64_t peers = atomic_load_explicit(&home->peers, memory_order_relaxed) | (uint64_t)1 << home->device;
    size_t count = 0;
    for (int d = 0; d < HOME_DEVICES; d++)
        if (peers >> d & 1)
            access[count++] =
                (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, d}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return guard.real.cuMemSetAccess(base, bytes, access, count);
}

// Pieces that lie behind each other become ranges. 0, or -ENOMEM with nothing changed.
static int add_pieces(struct tract *t, struct piece *first, const struct plan *plan, uint64_t bytes)
{
    lock_take(&lock);
    int err = canary_space_extend(&t->space, plan->base + plan->lead, bytes - plan->lead);
    struct piece **at = &t->first, *last = first;
    while (!err && *at && (*at)->base < plan->base)
        at = &(*at)->next;
    for (; !err; last = last->next) {
        last->run = t->runs;
        enlist(last);
        t->runs->pieces++;
        t->pieces++;
        t->spare += last->bytes;
        if (!last->next)
            break;
    }
    if (!err) {
        first->lead = plan->lead;
        last->next = *at;
        *at = first;
        t->newest = last;
        t->next = end_of(last);
    }
    lock_give(&lock);
    return err;
}

static void dispose_all(struct piece *p)
{
    for (struct piece *next; p; p = next) {
        next = p->next;
        dispose(p);
    }
}

// What the device has left is enough, and what is ahead is cut to it: pieces that are of no use would be missing elsewhere for a
// moment. False: it is not.
static bool cut_to_free(struct plan *plan, uint64_t wanted)
{
    size_t left, all;
    if (!guard.real.cuMemGetInfo_v2 || guard.real.cuMemGetInfo_v2(&left, &all))
        return true;
    if (wanted > left)
        return false;
    plan->more =
        plan->more < (left - wanted) / plan->need ? plan->more : (unsigned)((left - wanted) / plan->need);
    return true;
}

// Under the builder's lock.
static int grow(const struct home *home, struct tract *t, uint64_t need)
{
    lock_take(&lock);
    uint64_t tail = t->newest ? canary_space_before(&t->space, t->next) : 0, total = t->space.bytes;
    bool full = guard.real_fault && t->pieces >= FEW_MAPS;
    lock_give(&lock);
    if (tail >= need)
        return 0;  // another thread was here
    struct plan plan = make_plan(need, total);
    plan.first = need + UNIT;
    // Room for the range alone, wherever it comes to lie, and for what follows.
    if (full || !cut_to_free(&plan, need - tail) || find_addresses(t, plan_end(&plan)))
        return -ENOMEM;
    plan.base = t->next;
    plan.lead = t->newest ? 0 : UNIT;
    plan.first = t->newest ? need - tail : need + UNIT;
    uint64_t bytes;
    struct piece *first = map_pieces(home, &plan, &bytes);
    if (bytes < range_end(&plan, 0) || allow(home, plan.base, bytes) || add_pieces(t, first, &plan, bytes)) {
        dispose_all(first);
        return -ENOMEM;
    }
    return 0;
}

int canary_tract_grow(const struct home *home, uint64_t bytes)
{
    if (!canary_tract_usable(home))
        return -ENOMEM;
    lock_take(&builder);
    CUstreamCaptureMode mode = home_calm();
    int err = grow(home, tract_of(home), bytes);
    home_stir(mode);
    lock_give(&builder);
    return err;
}

// --- pieces go ----------------------------------------------------------------------------------------------

// Under the lock: what pieces would have more to spare if these ranges were free.
static uint64_t count_more(struct tract *t, const struct canary_extent *but, unsigned n)
{
    uint64_t more = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t base = but[i].base, end = base + but[i].bytes;
        for (struct piece *p = find(t, base); p && p->base < end; p = p->next) {
            p->also_free += overlap(p, base, end);
            p->also_open |= p->base >= base;
        }
    }
    // Pieces that several of them reach into count once.
    for (int pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < n; i++) {
            struct piece *p = first_of(t, but[i].base, find(t, but[i].base));
            for (; p && p->base < but[i].base + but[i].bytes; p = p->next) {
                if (!pass && !p->seen)
                    more += also_spare_of(p) - spare_of(p);
                p->seen = !pass;
                if (pass)
                    p->also_free = p->also_open = 0;
            }
        }
    return more;
}

uint64_t canary_tract_spare(const struct home *home, const struct canary_extent *but, unsigned n)
{
    struct tract *t = tract_of(home);
    lock_take(&lock);
    uint64_t bytes = t->spare + (t->first ? count_more(t, but, n) : 0);
    lock_give(&lock);
    return bytes;
}

// Under the lock: nobody takes anything of the piece any more. False: something is taken.
static bool withdraw(struct tract *t, struct piece **at, struct piece *before)
{
    struct piece *p = *at, *next = depends(p);
    if (!canary_space_cut(&t->space, p->base + p->lead, p->bytes - p->lead + (next ? UNIT : 0)))
        return false;
    if (next)
        next->lead = UNIT;
    strike(p);
    *at = p->next;
    t->spare -= p->bytes;
    t->pieces--;
    p->run->pieces--;
    if (t->newest != p)
        return true;
    // What comes next lies where this one did.
    t->next = p->base;
    t->newest = before && before->run == p->run && end_of(before) == p->base ? before : NULL;
    return true;
}

// Under the builder's lock: addresses of which nothing is mapped and nothing will be.
static void free_runs(struct tract *t, bool all)
{
    for (struct run **at = &t->runs, *r; (r = *at);) {
        if (r->pieces || (!all && r == t->runs)) {
            at = &r->next;
            continue;
        }
        lock_take(&lock);
        *at = r->next;
        lock_give(&lock);
        guard.real.cuMemAddressFree(r->base, r->bytes);
        slab_pool_put(&runs, r);
    }
}

uint64_t canary_tract_trim(const struct home *home, uint64_t want)
{
    struct tract *t = tract_of(home);
    struct piece *before = NULL, *gone = NULL;
    uint64_t given = 0;
    if (!canary_tract_spare(home, NULL, 0))
        return 0;
    lock_take(&builder);
    lock_take(&lock);
    for (struct piece **at = &t->first, *p; given < want && (p = *at);) {
        if (spare_of(p) && withdraw(t, at, before)) {
            given += p->bytes;
            p->next = gone;
            gone = p;
        } else {
            before = p;
            at = &p->next;
        }
    }
    lock_give(&lock);
    CUstreamCaptureMode mode = home_calm();
    dispose_all(gone);
    free_runs(t, false);
    home_stir(mode);
    lock_give(&builder);
    return given;
}

void canary_tract_context_gone(const struct home *home)
{
    struct tract *t = tract_of(home);
    lock_take(&builder);
    lock_take(&lock);
    struct piece *all = t->first;
    canary_space_clear(&t->space);
    t->first = t->newest = NULL;
    t->next = t->spare = t->pieces = 0;
    for (struct run *r = t->runs; r; r = r->next) {
        r->pieces = 0;
        memset(r->in, 0, sizeof r->in);
    }
    lock_give(&lock);
    CUstreamCaptureMode mode = home_calm();
    dispose_all(all);
    free_runs(t, true);
    home_stir(mode);
    atomic_store_explicit(&t->off, false, memory_order_relaxed);
    lock_give(&builder);
}

// --- for others ---------------------------------------------------------------------------------------------

// Under the builder's lock.
static bool export_pieces(const struct tract *t, uint64_t buffer, uint64_t size, struct share_memory *m)
{
    const struct piece *p = t->first;
    while (p && end_of(p) <= buffer)
        p = p->next;
    m->offset = p ? buffer - p->base : 0;
    for (; p && p->base < buffer + size; p = p->next) {
        int fd = -1;
        if ((m->fd >= 0 && m->more == SHARE_MORE) ||
            guard.real.cuMemExportToShareableHandle(&fd, p->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                    0))
            return false;
        m->bytes += p->bytes;
        if (m->fd < 0) {
            m->fd = fd;
        } else {
            m->fds[m->more] = fd;
            m->parts[m->more++] = p->bytes;
        }
    }
    return m->fd >= 0;
}

static const struct home *home_of_buffer(uint64_t buffer)
{
    CUcontext context;
    unsigned section = epoch_enter();
    bool mapped = canary_ground_is_mapped(buffer, &context);
    epoch_leave(section);
    return mapped ? home_find(context) : NULL;
}

bool canary_tract_can_share(uint64_t buffer, uint64_t size)
{
    const struct home *home = home_of_buffer(buffer);
    unsigned count = 0;
    if (!home)
        return false;
    lock_take(&lock);
    for (const struct piece *p = find(tract_of(home), buffer); p && p->base < buffer + size; p = p->next)
        count++;
    lock_give(&lock);
    return count && count <= 1 + SHARE_MORE;
}

bool canary_tract_share(uint64_t buffer, uint64_t size, struct share_memory *memory)
{
    const struct home *home = home_of_buffer(buffer);
    *memory = (struct share_memory){.size = size, .fd = -1};
    if (!home)
        return false;
    lock_take(&builder);
    bool done = export_pieces(tract_of(home), buffer, size, memory);
    lock_give(&builder);
    if (!done)
        share_close_fds(memory);
    return done;
}

void canary_tract_let(CUcontext context, const CUmemAccessDesc *desc)
{
    const struct home *home = home_find(context);
    if (!home)
        return;
    lock_take(&builder);
    for (const struct piece *p = tract_of(home)->first; p; p = p->next)
        guard.real.cuMemSetAccess(p->base, p->bytes, desc, 1);
    lock_give(&builder);
}
