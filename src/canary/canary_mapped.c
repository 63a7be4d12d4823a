// SPDX-License-Identifier: MIT
#include "canary/canary_mapped.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "canary/canary_regions.h"
#include "canary/canary_slab.h"
#include "core/lock.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "core/slab_pool.h"

enum {
    GRANULE = 2 << 20,    // granularity of device memory
    UNIT = CANARY_LEAD,   // lead before the first buffer behind a gap
    LARGE = 4 * GRANULE,  // a buffer of this size or more ends in a piece of its own
    SEVERAL = 8,          // room is mapped ahead for this many more buffers of the size
    PART = 8,             // or for 1/PART of all memory mapped so far, if that is more
    PIECE_PART = 2048,    // small pieces have 1/PIECE_PART of it: that much may be lost at their end
    MOST_AHEAD = 64 << 20,
    MOST_PIECE = 512 << 20,
    MOST_MAPS = 4096,  // most pieces on the CPU device, where each takes several of the mappings that Linux
                       // allows
    PARTS = 2048,      // of a reservation, to find pieces by address
};
static const uint64_t reserved_most = (uint64_t)64 << 30, reserved_least = (uint64_t)1 << 30;

// A range of reserved addresses.
struct reservation {
    uint64_t base, bytes;
    unsigned pieces;
    struct reservation *next;
    struct piece *in[PARTS];  // the first piece that reaches into each part; under the lock
};

struct piece {
    uint64_t base, bytes;
    uint32_t lead;  // first bytes, which are not for ranges
    CUmemGenericAllocationHandle handle;
    struct reservation *reservation;
    struct piece *next;
    uint64_t free;  // bytes that are not taken, the lead included
    bool open;      // nothing is taken at its start, so that the piece before it can be unmapped
    // the same under the assumption that some taken ranges are free
    uint64_t assumed_free;
    bool assumed_open, seen;
};

// The mapped memory of a context. `lock` protects the suballocator and the pieces; adding or removing pieces
// or reservations requires grow_lock too.
struct mapping {
    struct canary_suballoc suballoc;
    struct piece *first;               // by address
    struct piece *newest;              // ends where the next can start; NULL: there is a gap
    struct reservation *reservations;  // newest first
    uint64_t spare;                    // bytes in pieces that can be unmapped
    uint64_t next;                     // address in the newest reservation from which on nothing is mapped
    unsigned pieces;
    _Atomic(bool) disabled;  // relaxed: no other memory depends on it
};

static struct mapping mappings[CONTEXT_CONTEXTS];
static struct lock grow_lock = LOCK_INIT(CANARY_MAPPED_GROW);  // held over driver calls; before `lock`
static struct lock lock = LOCK_INIT(CANARY_MAPPED);            // a leaf but for pools
static struct slab_pool pieces = SLAB_POOL(struct piece);
static struct slab_pool reservations = SLAB_POOL(struct reservation);

void canary_mapped_after_fork(void)
{
    lock_after_fork(&grow_lock);
    lock_after_fork(&lock);
    slab_pool_after_fork(&pieces);
    slab_pool_after_fork(&reservations);
}

static struct mapping *mapping_of(const struct context *ctx)
{
    return &mappings[context_number(ctx)];
}

static uint64_t end_of(const struct piece *p)
{
    return p->base + p->bytes;
}

static bool is_disabled(const struct context *ctx)
{
    return atomic_load_explicit(&mapping_of(ctx)->disabled, memory_order_relaxed);
}

void canary_mapped_disable(const struct context *ctx, const char *why)
{
    if (!atomic_exchange_explicit(&mapping_of(ctx)->disabled, true, memory_order_relaxed))
        guard_report_note("canary: mapped memory: %s: a context gets plain memory from now on", why);
}

bool canary_mapped_usable(const struct context *ctx)
{
    const struct context_device *d = context_device_of(ctx->device);
    if (guard.options.canary_memory == OPTION_CANARY_MEMORY_PLAIN || is_disabled(ctx))
        return false;
    bool able = d && d->mappable && d->exportable && guard.real.cuMemAddressFree;
    // It is not known whether mapped memory can be copied to a device that is no peer.
    if (guard.options.canary_memory == OPTION_CANARY_MEMORY_AUTO)
        return able && d->alone;
    if (!able)
        canary_mapped_disable(ctx, "the device cannot map memory that other processes can open");
    return able;
}

// --- finding pieces, and how much of them is free; under the lock ------------------------------------------

static uint64_t part_size(const struct reservation *r)
{
    return (r->bytes + PARTS - 1) / PARTS;
}

static struct piece *find(const struct mapping *map, uint64_t address)
{
    const struct reservation *r = map->reservations;
    while (r && address - r->base >= r->bytes)
        r = r->next;
    struct piece *p = r ? r->in[(address - r->base) / part_size(r)] : NULL;
    while (p && end_of(p) <= address)
        p = p->next;
    return p && p->base <= address ? p : NULL;
}

static void index_piece(struct piece *p)
{
    struct reservation *r = p->reservation;
    uint64_t size = part_size(r);
    for (uint64_t i = (p->base - r->base) / size; i <= (end_of(p) - 1 - r->base) / size; i++)
        if (!r->in[i] || r->in[i]->base > p->base)
            r->in[i] = p;
}

// Removes a piece from its reservation's table; p->next must still be valid.
static void unindex_piece(const struct piece *p)
{
    struct reservation *r = p->reservation;
    uint64_t size = part_size(r);
    for (uint64_t i = (p->base - r->base) / size; i <= (end_of(p) - 1 - r->base) / size; i++)
        if (r->in[i] == p)
            r->in[i] = p->next && p->next->reservation == r && p->next->base < r->base + (i + 1) * size
                           ? p->next
                           : NULL;
}

// Returns the piece mapped right behind p whose first buffer has its head in p, or NULL if there is none.
static struct piece *depends(const struct piece *p)
{
    struct piece *next = p->next;
    return next && next->base == end_of(p) && !next->lead ? next : NULL;
}

static uint64_t spare_of(const struct piece *p)
{
    return p->free == p->bytes && (!depends(p) || p->next->open) ? p->bytes : 0;
}

// spare_of under the assumption in assumed_free and assumed_open.
static uint64_t spare_if_assumed(const struct piece *p)
{
    return p->free + p->assumed_free >= p->bytes && (!depends(p) || p->next->open || p->next->assumed_open)
               ? p->bytes
               : 0;
}

// Returns the first piece that a range at `base` affects: if the range starts with a piece, the one before
// it.
static struct piece *first_of(const struct mapping *map, uint64_t base, struct piece *at)
{
    struct piece *before = at && at->base == base ? find(map, base - 1) : NULL;
    return before ? before : at;
}

static uint64_t overlap(const struct piece *p, uint64_t base, uint64_t end)
{
    uint64_t from = p->base > base ? p->base : base, to = end_of(p) < end ? end_of(p) : end;
    return from < to ? to - from : 0;
}

// Updates the pieces after a range was taken or given back.
static void mark(struct mapping *map, uint64_t base, uint64_t bytes, bool taken)
{
    struct piece *at = find(map, base), *first = first_of(map, base, at);
    const uint64_t end = base + bytes;
    for (struct piece *p = first; p && p->base < end; p = p->next)
        map->spare -= spare_of(p);
    for (struct piece *p = at; p && p->base < end; p = p->next) {
        p->free += taken ? -overlap(p, base, end) : overlap(p, base, end);
        p->open = p->base < base ? p->open : !taken;
    }
    for (struct piece *p = first; p && p->base < end; p = p->next)
        map->spare += spare_of(p);
}

uint64_t canary_mapped_take(const struct context *ctx, uint64_t bytes)
{
    struct mapping *map = mapping_of(ctx);
    if (is_disabled(ctx))
        return 0;
    lock_take(&lock);
    uint64_t base = canary_suballoc_take(&map->suballoc, bytes);
    if (base)
        mark(map, base, bytes, true);
    lock_give(&lock);
    return base;
}

void canary_mapped_give(const struct context *ctx, uint64_t base, uint64_t bytes)
{
    struct mapping *map = mapping_of(ctx);
    lock_take(&lock);
    if (canary_suballoc_give(&map->suballoc, base, bytes))
        mark(map, base, bytes, false);
    lock_give(&lock);
}

// --- mapping pieces ----------------------------------------------------------------------------------------

// What is to be mapped: room for a range that ends `first` bytes behind base, and for `more` ranges of `need`
// bytes.
struct plan {
    uint64_t base, first, need;
    unsigned more;
    uint64_t small;  // size of pieces if ranges are small
    uint32_t lead;
};

// Returns the end of the granule in which a range ends; range 0 is the first.
static uint64_t range_end(const struct plan *plan, unsigned number)
{
    return canary_suballoc_round(plan->first + number * plan->need, GRANULE);
}

static uint64_t plan_end(const struct plan *plan)
{
    return range_end(plan, plan->more);
}

// Returns the size of the next piece after `done` bytes. A range shares the granule in which it ends with the
// next range, so that granule is a piece of its own, and the rest can be unmapped when the range is free.
static uint64_t piece_size(const struct plan *plan, uint64_t done)
{
    uint64_t left = plan_end(plan) - done;
    if (plan->need < LARGE)
        return left < plan->small ? left : plan->small;
    unsigned number = done < plan->first ? 0 : (unsigned)((done - plan->first) / plan->need + 1);
    uint64_t until = range_end(plan, number > plan->more ? plan->more : number);
    // `done` may be at the start of that granule, or behind it where two ranges end in one.
    uint64_t bytes = until > done + GRANULE ? until - GRANULE - done : GRANULE;
    return bytes < MOST_PIECE ? bytes : MOST_PIECE;
}

static struct plan make_plan(uint64_t need, uint64_t total)
{
    uint64_t few = SEVERAL * need < total / 2 ? SEVERAL * need : total / 2, ahead = total / PART;
    uint64_t small = total / PIECE_PART / GRANULE * GRANULE;
    ahead = ahead < few ? few : ahead;
    ahead = ahead < MOST_AHEAD ? ahead : MOST_AHEAD;
    return (struct plan){
        .need = need, .more = (unsigned)(ahead / need), .small = small < GRANULE ? GRANULE : small};
}

// Makes sure that `bytes` addresses follow t->next, if need be in a new reservation. Returns 0 or -ENOMEM.
static int find_addresses(struct mapping *map, uint64_t bytes)
{
    const struct reservation *newest = map->reservations;
    CUdeviceptr base = 0;
    if (newest && newest->base + newest->bytes - map->next >= bytes)
        return 0;
    struct reservation *r = slab_pool_get(&reservations);
    if (!r)
        return -ENOMEM;
    uint64_t most = bytes < reserved_most ? reserved_most : bytes;
    while (guard.real.cuMemAddressReserve(&base, most, GRANULE, 0, 0)) {
        most /= 2;
        if (most < bytes || most < reserved_least) {
            slab_pool_put(&reservations, r);
            return -ENOMEM;
        }
    }
    *r = (struct reservation){.base = base, .bytes = most / GRANULE * GRANULE, .next = map->reservations};
    lock_take(&lock);
    map->reservations = r;
    map->next = base;
    map->newest = NULL;
    lock_give(&lock);
    return 0;
}

static void dispose(struct piece *p)
{
    canary_regions_remove(p->base);
    guard.real.cuMemUnmap(p->base, p->bytes);
    guard.real.cuMemRelease(p->handle);
    slab_pool_put(&pieces, p);
}

static struct piece *map_piece(const struct context *ctx, uint64_t base, uint64_t bytes)
{
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, ctx->device},
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .allocFlags = {.gpuDirectRDMACapable = context_device_of(ctx->device)->rdma},
    };
    struct piece *p = slab_pool_get(&pieces);
    if (!p)
        return NULL;
    *p = (struct piece){.base = base, .bytes = bytes, .free = bytes, .open = true};
    if (guard.real.cuMemCreate(&p->handle, bytes, &prop, 0))
        goto none;
    if (guard.real.cuMemMap(base, bytes, 0, p->handle, 0))
        goto release;
    if (!canary_regions_add(ctx, base, bytes, true))
        return p;
    guard.real.cuMemUnmap(base, bytes);
release:
    guard.real.cuMemRelease(p->handle);
none:
    slab_pool_put(&pieces, p);
    return NULL;
}

// Maps as many pieces as the driver allows; *bytes is set to their total size.
static struct piece *map_pieces(const struct context *ctx, const struct plan *plan, uint64_t *bytes)
{
    struct piece *first = NULL, **end = &first;
    for (*bytes = 0; *bytes < plan_end(plan); end = &(*end)->next) {
        *end = map_piece(ctx, plan->base + *bytes, piece_size(plan, *bytes));
        if (!*end)
            break;
        *bytes += (*end)->bytes;
    }
    return first;
}

static CUresult allow(const struct context *ctx, uint64_t base, uint64_t bytes)
{
    CUmemAccessDesc access[CONTEXT_DEVICES];
    // Relaxed: a peer that is enabled meanwhile gets access from the call that enables it, or from this one.
    uint64_t peers = atomic_load_explicit(&ctx->peers, memory_order_relaxed) | (uint64_t)1 << ctx->device;
    size_t count = 0;
    for (int d = 0; d < CONTEXT_DEVICES; d++)
        if (peers >> d & 1)
            access[count++] =
                (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, d}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return guard.real.cuMemSetAccess(base, bytes, access, count);
}

// Adds adjacent pieces to the suballocator. Returns 0, or -ENOMEM with nothing changed.
static int add_pieces(struct mapping *map, struct piece *first, const struct plan *plan, uint64_t bytes)
{
    lock_take(&lock);
    int err = canary_suballoc_extend(&map->suballoc, plan->base + plan->lead, bytes - plan->lead);
    struct piece **at = &map->first, *last = first;
    while (!err && *at && (*at)->base < plan->base)
        at = &(*at)->next;
    for (; !err; last = last->next) {
        last->reservation = map->reservations;
        index_piece(last);
        map->reservations->pieces++;
        map->pieces++;
        map->spare += last->bytes;
        if (!last->next)
            break;
    }
    if (!err) {
        first->lead = plan->lead;
        last->next = *at;
        *at = first;
        map->newest = last;
        map->next = end_of(last);
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

// Returns whether the device has enough free memory for `wanted` bytes, and limits what is mapped ahead to
// the rest: pieces that cannot all be mapped would take memory from others for a moment.
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

// Requires grow_lock.
static int grow(const struct context *ctx, struct mapping *map, uint64_t need)
{
    lock_take(&lock);
    uint64_t tail = map->newest ? canary_suballoc_before(&map->suballoc, map->next) : 0,
             total = map->suballoc.bytes;
    bool full = guard.real_fault && map->pieces >= MOST_MAPS;
    lock_give(&lock);
    if (tail >= need)
        return 0;  // another thread has mapped enough
    struct plan plan = make_plan(need, total);
    plan.first = need + UNIT;
    // Room for the range wherever it comes to lie, and for what is mapped ahead.
    if (full || !cut_to_free(&plan, need - tail) || find_addresses(map, plan_end(&plan)))
        return -ENOMEM;
    plan.base = map->next;
    plan.lead = map->newest ? 0 : UNIT;
    plan.first = map->newest ? need - tail : need + UNIT;
    uint64_t bytes;
    struct piece *first = map_pieces(ctx, &plan, &bytes);
    if (bytes < range_end(&plan, 0) || allow(ctx, plan.base, bytes) || add_pieces(map, first, &plan, bytes)) {
        dispose_all(first);
        return -ENOMEM;
    }
    return 0;
}

int canary_mapped_grow(const struct context *ctx, uint64_t bytes)
{
    if (!canary_mapped_usable(ctx))
        return -ENOMEM;
    lock_take(&grow_lock);
    CUstreamCaptureMode mode = context_capture_relax();
    int err = grow(ctx, mapping_of(ctx), bytes);
    context_capture_restore(mode);
    lock_give(&grow_lock);
    return err;
}

// --- unmapping pieces --------------------------------------------------------------------------------------

// Returns how many more bytes could be unmapped if these ranges were free. Requires the lock.
static uint64_t count_more(struct mapping *map, const struct canary_extent *assumed, unsigned n)
{
    uint64_t more = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t base = assumed[i].base, end = base + assumed[i].bytes;
        for (struct piece *p = find(map, base); p && p->base < end; p = p->next) {
            p->assumed_free += overlap(p, base, end);
            p->assumed_open |= p->base >= base;
        }
    }
    // Count a piece once even if several of the ranges reach into it.
    for (int pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < n; i++) {
            struct piece *p = first_of(map, assumed[i].base, find(map, assumed[i].base));
            for (; p && p->base < assumed[i].base + assumed[i].bytes; p = p->next) {
                if (!pass && !p->seen)
                    more += spare_if_assumed(p) - spare_of(p);
                p->seen = !pass;
                if (pass)
                    p->assumed_free = p->assumed_open = 0;
            }
        }
    return more;
}

uint64_t canary_mapped_spare(const struct context *ctx, const struct canary_extent *assumed, unsigned n)
{
    struct mapping *map = mapping_of(ctx);
    lock_take(&lock);
    uint64_t bytes = map->spare + (map->first ? count_more(map, assumed, n) : 0);
    lock_give(&lock);
    return bytes;
}

// Takes a piece out of the suballocator and the lists. Returns false if a range in it is taken. Requires the
// lock.
static bool withdraw(struct mapping *map, struct piece **at, struct piece *before)
{
    struct piece *p = *at, *next = depends(p);
    if (!canary_suballoc_cut(&map->suballoc, p->base + p->lead, p->bytes - p->lead + (next ? UNIT : 0)))
        return false;
    if (next)
        next->lead = UNIT;
    unindex_piece(p);
    *at = p->next;
    map->spare -= p->bytes;
    map->pieces--;
    p->reservation->pieces--;
    if (map->newest != p)
        return true;
    // The next piece is mapped where this one was.
    map->next = p->base;
    map->newest =
        before && before->reservation == p->reservation && end_of(before) == p->base ? before : NULL;
    return true;
}

// Frees reservations in which nothing is mapped and nothing will be: all but the newest, or all. Requires
// grow_lock.
static void free_reservations(struct mapping *map, bool all)
{
    for (struct reservation **at = &map->reservations, *r; (r = *at);) {
        if (r->pieces || (!all && r == map->reservations)) {
            at = &r->next;
            continue;
        }
        lock_take(&lock);
        *at = r->next;
        lock_give(&lock);
        guard.real.cuMemAddressFree(r->base, r->bytes);
        slab_pool_put(&reservations, r);
    }
}

uint64_t canary_mapped_trim(const struct context *ctx, uint64_t want)
{
    struct mapping *map = mapping_of(ctx);
    struct piece *before = NULL, *gone = NULL;
    uint64_t given = 0;
    if (!canary_mapped_spare(ctx, NULL, 0))
        return 0;
    lock_take(&grow_lock);
    lock_take(&lock);
    for (struct piece **at = &map->first, *p; given < want && (p = *at);) {
        if (spare_of(p) && withdraw(map, at, before)) {
            given += p->bytes;
            p->next = gone;
            gone = p;
        } else {
            before = p;
            at = &p->next;
        }
    }
    lock_give(&lock);
    CUstreamCaptureMode mode = context_capture_relax();
    dispose_all(gone);
    free_reservations(map, false);
    context_capture_restore(mode);
    lock_give(&grow_lock);
    return given;
}

void canary_mapped_context_gone(const struct context *ctx)
{
    struct mapping *map = mapping_of(ctx);
    lock_take(&grow_lock);
    lock_take(&lock);
    struct piece *all = map->first;
    canary_suballoc_clear(&map->suballoc);
    map->first = map->newest = NULL;
    map->next = map->spare = map->pieces = 0;
    for (struct reservation *r = map->reservations; r; r = r->next) {
        r->pieces = 0;
        memset(r->in, 0, sizeof r->in);
    }
    lock_give(&lock);
    CUstreamCaptureMode mode = context_capture_relax();
    dispose_all(all);
    free_reservations(map, true);
    context_capture_restore(mode);
    atomic_store_explicit(&map->disabled, false, memory_order_relaxed);
    lock_give(&grow_lock);
}

// --- sharing, and access by peers --------------------------------------------------------------------------

// Requires grow_lock.
static bool export_pieces(const struct mapping *map, uint64_t buffer, uint64_t size, struct share_memory *m)
{
    const struct piece *p = map->first;
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

static const struct context *context_of_buffer(uint64_t buffer)
{
    CUcontext context;
    unsigned section = epoch_enter();
    bool mapped = canary_regions_is_mapped(buffer, &context);
    epoch_leave(section);
    return mapped ? context_find(context) : NULL;
}

bool canary_mapped_can_share(uint64_t buffer, uint64_t size)
{
    const struct context *ctx = context_of_buffer(buffer);
    unsigned count = 0;
    if (!ctx)
        return false;
    lock_take(&lock);
    for (const struct piece *p = find(mapping_of(ctx), buffer); p && p->base < buffer + size; p = p->next)
        count++;
    lock_give(&lock);
    return count && count <= 1 + SHARE_MORE;
}

bool canary_mapped_share(uint64_t buffer, uint64_t size, struct share_memory *memory)
{
    const struct context *ctx = context_of_buffer(buffer);
    *memory = (struct share_memory){.size = size, .fd = -1};
    if (!ctx)
        return false;
    lock_take(&grow_lock);
    bool done = export_pieces(mapping_of(ctx), buffer, size, memory);
    lock_give(&grow_lock);
    if (!done)
        share_close_fds(memory);
    return done;
}

void canary_mapped_set_access(CUcontext context, const CUmemAccessDesc *desc)
{
    const struct context *ctx = context_find(context);
    if (!ctx)
        return;
    lock_take(&grow_lock);
    for (const struct piece *p = mapping_of(ctx)->first; p; p = p->next)
        guard.real.cuMemSetAccess(p->base, p->bytes, desc, 1);
    lock_give(&grow_lock);
}
