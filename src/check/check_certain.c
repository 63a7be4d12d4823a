// SPDX-License-Identifier: MIT
#include "check/check_certain.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "check/check_host.h"
#include "check/check_kernel.h"
#include "check/check_launch.h"
#include "check/check_report.h"
#include "context/context.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "flow/access_words.h"
#include "flow/access_witness.h"
#include "ring/error_ring.h"
#include "track/track.h"

enum {
    NOTED = 1024,         // errors that were reported; a power of two
    SOMEWHERE = 1 << 30,  // stands for the address of a variable, which the host does not know
    AFTER = 0,
    BEFORE = 1  // ends of a buffer
};

// Relaxed: a number says all.
static _Atomic uint64_t noted[NOTED];

// An error on its way to a report.
struct foreseen {
    const struct launch_call *l;
    const struct check_kernel *kernel;
    const struct check_certain_row *row;
    const struct pass_check *checks;
    struct proof_launch launch;
    uint64_t number, module;
    bool done;
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

// Returns whether the error is to be reported: a program may make the same launch a million times.
static bool is_new(const struct foreseen *f, unsigned end)
{
    enum driver_id call;
    uint64_t key = mix(mix(check_launch_stack(f->number, &call), f->row->site), end);
    key = mix(mix(mix(key, (uintptr_t)f->kernel->checks), f->row->base), f->row->kind) | 1;
    return atomic_exchange_explicit(&noted[key & (NOTED - 1)], key, memory_order_relaxed) != key;
}

// Returns whether nothing makes the access right after all.
static bool is_certain(const struct check_certain_row *row, unsigned end)
{
    unsigned section = epoch_enter();
    const struct track_block *b = row->kind == KCHECK_LEFT ? track_announced(row->pointer) : NULL;
    b = b || row->kind != KCHECK_LEFT ? b : track_live(row->pointer);
    bool same = row->kind != KCHECK_LEFT || (b && b->range.base == row->base && b->range.size == row->size);
    bool certain = same && (!b || check_prove_has_end(b->facts.family)) &&
                   !(end == BEFORE && b && row->pointer == row->base && track_live(row->pointer - 1));
    epoch_leave(section);
    return certain;
}

// --- the thread --------------------------------------------------------------------------------------------

// Returns the wrong address of one end that is nearest to the buffer, for accesses that lie `step` apart.
static int64_t nearest(const struct foreseen *f, unsigned end, uint64_t step)
{
    const struct check_certain_row *row = f->row;
    uint64_t into = row->base ? row->pointer - row->base : 0;
    int64_t width = f->checks->sites[row->site].width;
    int64_t first = row->bound.lowest + (int64_t)into, last = row->bound.highest - width + 1 + (int64_t)into;
    int64_t right = (int64_t)row->size - width;  // the last place that is right
    if (row->kind == KCHECK_USE_FREED || row->kind == KCHECK_NULL)
        return first;
    if (end == BEFORE)
        return step ? first + (-1 - first) / (int64_t)step * (int64_t)step : first;
    // All of the bound may lie behind the buffer.
    if (first > right)
        return first;
    return step ? last - (last - right - 1) / (int64_t)step * (int64_t)step : last;
}

// Finds a thread that makes the access at this end, and its address. Returns false if none was found; then
// the address is one that some thread accesses.
static bool find_thread(struct foreseen *f, unsigned end, struct error_ring_record *r)
{
    static struct access_words words;  // under the lock of check_host.c
    const struct check_certain_row *row = f->row;
    const struct proof *proof = check_prove_proof(f->kernel->prove);
    uint64_t base = row->kind == KCHECK_OUTSIDE_VARIABLE ? SOMEWHERE : row->base;
    struct access_thread t = {.p = proof, .l = &f->launch, .base = SOMEWHERE, .loop = PROOF_NONE};
    bool known = access_words_open(&words, proof, row->access, row->bound.root, NULL, 0);
    uint64_t step = known ? access_witness_step(&t, words.access) : 0;
    bool found = false;
    for (unsigned any = 0; any < 2 && !found; any++) {
        r->address = base + (uint64_t)nearest(f, end, any ? 0 : step);
        found = known && access_witness(&t, words.access, r->address);
    }
    if (found) {
        memcpy(r->block, t.block, sizeof r->block);
        memcpy(r->thread, t.thread, sizeof r->thread);
    }
    return found;
}

// --- the report --------------------------------------------------------------------------------------------

// Requires the lock of check_host.c. Makes the record that the kernel would write.
static void report(struct foreseen *f, struct context *ctx, unsigned end)
{
    const struct check_certain_row *row = f->row;
    const struct pass_check_site *site = &f->checks->sites[row->site];
    bool variable = row->kind == KCHECK_OUTSIDE_VARIABLE, freed = row->kind == KCHECK_USE_FREED;
    uint32_t number = KCHECK_SITE(f->checks->tag, row->site);
    struct error_ring_record r = {.client = ERROR_RING_CHECK, .kind = (uint16_t)row->kind, .site = number};
    r.payload[0] = KCHECK_WHAT(number, site->width, site->flags | KCHECK_ROOT);
    r.payload[1] = variable ? SOMEWHERE : row->pointer;
    r.payload[2] = variable ? 0 : row->base;
    r.payload[3] = row->size | (freed ? KCHECK_FREED : 0);
    r.payload[4] = f->number;
    r.payload[5] = f->module;
    bool known = find_thread(f, end, &r);
    check_report_before(&r, ctx, known, variable);
}

// An access whose site says less than its row of the proof is the kernel's to report, as is one of a variable
// in global memory, whose address only the driver knows.
static bool is_plain(const struct foreseen *f)
{
    const struct check_certain_row *row = f->row;
    const struct pass_check_site *site = &f->checks->sites[row->site];
    const struct proof_access *access = &check_prove_proof(f->kernel->prove)->accesses[row->access];
    bool variable = row->kind == KCHECK_OUTSIDE_VARIABLE;
    return site->width && site->width == access->bytes && !access->more && !access->upto &&
           site->root == (variable ? PASS_CHECK_VARIABLE : PASS_CHECK_PARAM) &&
           (!variable || site->space != PASS_CHECK_IN_GLOBAL);
}

static void report_row(struct check_device *d, struct context *ctx, void *argument)
{
    struct foreseen *f = argument;
    const struct check_certain_row *row = f->row;
    if (f->done || ctx != context_current())
        return;
    f->done = true;
    const struct kernel *own = kernels_find(f->l->function);
    const void *owner = own ? atomic_load_explicit(&own->owner, memory_order_acquire) : NULL;
    f->checks = check_host_part(owner, f->kernel->checks, &f->module);
    if (!f->checks || row->site >= f->checks->nsites || !is_plain(f))
        return;
    for (unsigned end = AFTER; end <= BEFORE; end++) {
        bool wrong = end == AFTER ? row->needs || !row->before : row->before;
        if (wrong && is_certain(row, end) && is_new(f, end))
            report(f, ctx, end);
    }
}

static void report_all(const struct launch_call *l, const struct check_kernel *k,
                       const struct check_certain *c, uint64_t number, const void *bytes, size_t size)
{
    int saved = errno;
    // Redzones decide what --mode=shadow reports.
    for (uint32_t i = 0; i < c->n && !check_host_shadow; i++) {
        struct foreseen f = {.l = l,
                             .kernel = k,
                             .row = &c->at[i],
                             .number = number,
                             .launch = {.grid = {l->grid[0], l->grid[1], l->grid[2]},
                                        .block = {l->block[0], l->block[1], l->block[2]},
                                        .dynamic_shared = l->shared,
                                        .params_size = (uint32_t)size,
                                        .params = bytes}};
        if (c->at[i].access != PROOF_NONE)
            check_host_rings(report_row, &f, true);
    }
    errno = saved;
}

void check_certain_start(void)
{
    check_launch_foretells = report_all;
}
