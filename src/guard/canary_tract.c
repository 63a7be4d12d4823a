// SPDX-License-Identifier: MIT
#include "guard/canary_tract.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "guard/canary_ground.h"
#include "guard/canary_slab.h"
#include "guard/guard.h"
#include "guard/slab_pool.h"

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
};
static const uint64_t reserved_most = (uint64_t)64 << 30, reserved_least = (uint64_t)1 << 30;

// Addresses from one reservation.
struct run {
    uint64_t base, bytes;
    unsigned pieces;
    struct run *next;
};

struct piece {
    uint64_t base, bytes;
    uint32_t lead;  // of them, at their start, are not for ranges
    CUmemGenericAllocationHandle handle;
    struct run *run;
    struct piece *next;
    // while spare bytes are counted
    uint64_t free;
    bool open;  // nothing is taken at its start, so that the piece before can go
};

// Of a home. The lock is for the space and the pieces; who adds or removes pieces or runs has the builder's lock too.
struct tract {
    struct canary_space space;
    struct piece *first;   // by address
    struct piece *newest;  // ends where the next can start; NULL: there is a gap
    struct run *runs;      // the newest first
    uint64_t next;         // address in the newest run, from which on nothing is mapped
    unsigned pieces;
    _Atomic(bool) off;  // relaxed: a fact of its own
};

static struct tract tracts[HOME_CONTEXTS];
static pthread_mutex_t builder = PTHREAD_MUTEX_INITIALIZER;  // over calls of the driver's; before `lock`
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;     // a leaf but for pools
static struct slab_pool pieces = SLAB_POOL(struct piece);
static struct slab_pool runs = SLAB_POOL(struct run);

void canary_tract_after_fork(void)
{
    pthread_mutex_init(&builder, NULL);
    pthread_mutex_init(&lock, NULL);
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

bool canary_tract_usable(const struct home *home)
{
    const struct home_device *d = home_device(home->device);
    return guard.options.canary_memory == OPTION_CANARY_MEMORY_MAPPED && d && d->mappable && d->exportable &&
           guard.real.cuMemAddressFree && !atomic_load_explicit(&tract_of(home)->off, memory_order_relaxed);
}

void canary_tract_give_up(const struct home *home)
{
    atomic_store_explicit(&tract_of(home)->off, true, memory_order_relaxed);
}

uint64_t canary_tract_take(const struct home *home, uint64_t bytes)
{
    struct tract *t = tract_of(home);
    pthread_mutex_lock(&lock);
    uint64_t base = canary_space_take(&t->space, bytes);
    pthread_mutex_unlock(&lock);
    return base;
}

void canary_tract_give(const struct home *home, uint64_t base, uint64_t bytes)
{
    struct tract *t = tract_of(home);
    pthread_mutex_lock(&lock);
    canary_space_give(&t->space, base, bytes);
    pthread_mutex_unlock(&lock);
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
    t->runs = r;
    t->next = base;
    t->newest = NULL;
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
    *p = (struct piece){.base = base, .bytes = bytes};
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
    pthread_mutex_lock(&lock);
    int err = canary_space_extend(&t->space, plan->base + plan->lead, bytes - plan->lead);
    struct piece **at = &t->first, *last = first;
    while (!err && *at && (*at)->base < plan->base)
        at = &(*at)->next;
    for (; !err; last = last->next) {
        last->run = t->runs;
        t->runs->pieces++;
        t->pieces++;
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
    pthread_mutex_unlock(&lock);
    return err;
}

static void dispose_all(struct piece *p)
{
    for (struct piece *next; p; p = next) {
        next = p->next;
        dispose(p);
    }
}

// Under the builder's lock.
static int grow(const struct home *home, struct tract *t, uint64_t need)
{
    pthread_mutex_lock(&lock);
    uint64_t tail = t->newest ? canary_space_before(&t->space, t->next) : 0, total = t->space.bytes;
    bool full = guard.real_fault && t->pieces >= FEW_MAPS;
    pthread_mutex_unlock(&lock);
    if (tail >= need)
        return 0;  // another thread was here
    struct plan plan = make_plan(need, total);
    plan.first = need + UNIT;
    // Room for the range alone, wherever it comes to lie, and for what follows.
    if (full || find_addresses(t, plan_end(&plan)))
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
    pthread_mutex_lock(&builder);
    CUstreamCaptureMode mode = home_calm();
    int err = grow(home, tract_of(home), bytes);
    home_stir(mode);
    pthread_mutex_unlock(&builder);
    return err;
}

// --- pieces go ----------------------------------------------------------------------------------------------

// The one that is mapped right behind it, whose first buffer has its head in this one; NULL: none.
static struct piece *depends(const struct piece *p)
{
    struct piece *next = p->next;
    return next && next->base == end_of(p) && !next->lead ? next : NULL;
}

struct walk {
    struct piece *first, *at;
};

static void add_free(uint64_t base, uint64_t bytes, void *context)
{
    struct walk *w = context;
    uint64_t end = base + bytes;
    if (!w->at || base < w->at->base)
        w->at = w->first;
    while (w->at && end_of(w->at) <= base)
        w->at = w->at->next;
    for (struct piece *p = w->at; p && p->base < end; p = p->next) {
        uint64_t from = p->base > base ? p->base : base, to = end_of(p) < end ? end_of(p) : end;
        p->free += to - from;
        p->open |= base <= p->base && end >= p->base + UNIT;
    }
}

// Under the lock.
static uint64_t count_spare(struct tract *t, const struct canary_extent *but, unsigned n)
{
    struct walk walk = {.first = t->first};
    uint64_t bytes = 0;
    for (struct piece *p = t->first; p; p = p->next) {
        p->free = p->lead;
        p->open = false;
    }
    canary_space_each(&t->space, add_free, &walk);
    for (unsigned i = 0; i < n; i++)
        add_free(but[i].base, but[i].bytes, &walk);
    for (struct piece *p = t->first; p; p = p->next)
        bytes += p->free == p->bytes && (!depends(p) || p->next->open) ? p->bytes : 0;
    return bytes;
}

uint64_t canary_tract_free(const struct home *home)
{
    struct tract *t = tract_of(home);
    pthread_mutex_lock(&lock);
    uint64_t bytes = t->space.bytes - t->space.used;
    pthread_mutex_unlock(&lock);
    return bytes;
}

uint64_t canary_tract_spare(const struct home *home, const struct canary_extent *but, unsigned n)
{
    struct tract *t = tract_of(home);
    pthread_mutex_lock(&lock);
    uint64_t bytes = t->first ? count_spare(t, but, n) : 0;
    pthread_mutex_unlock(&lock);
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
    *at = p->next;
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
        *at = r->next;
        guard.real.cuMemAddressFree(r->base, r->bytes);
        slab_pool_put(&runs, r);
    }
}

uint64_t canary_tract_trim(const struct home *home, uint64_t want)
{
    struct tract *t = tract_of(home);
    struct piece *before = NULL, *gone = NULL;
    uint64_t given = 0;
    if (canary_tract_free(home) < GRAIN - UNIT)
        return 0;
    pthread_mutex_lock(&builder);
    pthread_mutex_lock(&lock);
    for (struct piece **at = &t->first, *p; given < want && (p = *at);) {
        if (withdraw(t, at, before)) {
            given += p->bytes;
            p->next = gone;
            gone = p;
        } else {
            before = p;
            at = &p->next;
        }
    }
    pthread_mutex_unlock(&lock);
    CUstreamCaptureMode mode = home_calm();
    dispose_all(gone);
    free_runs(t, false);
    home_stir(mode);
    pthread_mutex_unlock(&builder);
    return given;
}

void canary_tract_context_gone(const struct home *home)
{
    struct tract *t = tract_of(home);
    pthread_mutex_lock(&builder);
    pthread_mutex_lock(&lock);
    struct piece *all = t->first;
    canary_space_clear(&t->space);
    t->first = t->newest = NULL;
    t->next = t->pieces = 0;
    pthread_mutex_unlock(&lock);
    dispose_all(all);
    for (struct run *r = t->runs; r; r = r->next)
        r->pieces = 0;
    free_runs(t, true);
    atomic_store_explicit(&t->off, false, memory_order_relaxed);
    pthread_mutex_unlock(&builder);
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

bool canary_tract_share(uint64_t buffer, uint64_t size, struct share_memory *memory)
{
    CUcontext context;
    unsigned section = epoch_enter();
    bool mapped = canary_ground_is_mapped(buffer, &context);
    epoch_leave(section);
    const struct home *home = mapped ? home_find(context) : NULL;
    *memory = (struct share_memory){.size = size, .fd = -1};
    if (!home)
        return false;
    pthread_mutex_lock(&builder);
    bool done = export_pieces(tract_of(home), buffer, size, memory);
    pthread_mutex_unlock(&builder);
    if (!done)
        share_close_fds(memory);
    return done;
}

void canary_tract_let(CUcontext context, const CUmemAccessDesc *desc)
{
    const struct home *home = home_find(context);
    if (!home)
        return;
    pthread_mutex_lock(&builder);
    for (const struct piece *p = tract_of(home)->first; p; p = p->next)
        guard.real.cuMemSetAccess(p->base, p->bytes, desc, 1);
    pthread_mutex_unlock(&builder);
}
