// SPDX-License-Identifier: MIT
#include "check/check_host.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "check/check_variables.h"
#include "context/context_copy.h"
#include "context/green.h"
#include "core/guard.h"
#include "core/lock.h"
#include "kcheck/kcheck.h"
#include "kwatch/kheap_host.h"
#include "launch/kernel_fault.h"
#include "launch/launch_ring.h"
#include "track/guard_report.h"
#include "track/stack.h"
#include "track/track.h"

// Our data of a module's row.
struct module {
    uint64_t number;
    unsigned
        set_in[CONTEXT_CONTEXTS];  // version of the context's directory that the variable leads to; 0: none
    bool ending;                   // the driver is about to unload it
    struct module *next;
};

_Atomic(bool) check_host_on;
const struct check_shadow *check_host_shadow;
void (*check_host_first)(void);

// Held over driver calls: whoever allocates, frees or launches waits for the driver anyway.
static struct lock lock = LOCK_INIT(CHECK);
static struct check_table *table;
static struct check_device devices[CONTEXT_CONTEXTS];
static unsigned used;  // devices[i] has never been made for i >= used; protected by the lock
static unsigned client;
static uint64_t numbers;  // of modules so far
static bool any_ready;    // a context has had a copy
static bool broken;       // no memory for the table: nothing is checked any more
// The context of the last launch, if its copy and all variables are up to date. Acquire and release: who
// finds the context here sees what was set.
static _Atomic(CUcontext) ready_in;

// The stream of an allocation that the calling thread is making.
static __thread struct {
    CUstream stream;
    bool per_thread, valid;
} order __attribute__((tls_model("initial-exec")));

// --- the table ---------------------------------------------------------------------------------------------

// Nothing is certain any more: kernels go on unchecked, since without a state every access is performed.
static void give_up(const char *why)
{
    if (!broken)
        guard_report_note("check: %s: kernels are no longer checked", why);
    broken = true;
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
}

static enum check_device_stage stage_of(const struct check_device *d)
{
    return atomic_load_explicit(&d->stage, memory_order_relaxed);
}

static void set_stage(struct check_device *d, enum check_device_stage stage)
{
    atomic_store_explicit(&d->stage, stage, memory_order_relaxed);
}

static struct check_device *device_of(const struct context *ctx)
{
    struct check_device *d = &devices[context_number(ctx)];
    return stage_of(d) == CHECK_DEVICE_READY ? d : NULL;
}

struct change {
    bool ordered;  // in the stream below, in the context that is current
    CUstream stream;
    bool per_thread;
    bool freed;  // other contexts do not need it
    const struct context *current;
    struct check_shadow_change shadow;
};

// Describes the change of a block for the shadow.
static void change_block(struct change *c, uint64_t base, uint64_t size, bool live)
{
    c->shadow = (struct check_shadow_change){.base = base,
                                             .size = size,
                                             .live = live,
                                             .ordered = c->ordered && !live,
                                             .stream = c->stream,
                                             .per_thread = c->per_thread};
}

static CUresult flush_shadow(struct check_device *d, struct context *ctx,
                             const struct check_shadow_change *change)
{
    if (!check_host_shadow || !d->shadow || !change->size)
        return CUDA_SUCCESS;
    CUresult r = check_host_shadow->change(context_number(ctx), ctx, change);
    CUdeviceptr at = check_host_shadow->at(context_number(ctx));
    d->version += at != d->shadow;
    d->shadow = at;
    return r;
}

static void flush_one(struct check_device *d, struct context *ctx, void *argument)
{
    const struct change *c = argument;
    unsigned version = d->version;
    if (c->ordered && c->freed && ctx != c->current)
        return;
    CUresult r = flush_shadow(d, ctx, &c->shadow);
    if (d->version != version)
        atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
    if (!r && c->ordered && ctx == c->current && check_device_flush_in(d, table, c->stream, c->per_thread))
        return;
    if (!r)
        r = check_device_flush(d, ctx, table);
    if (r && kernel_fault_ended(r)) {  // no kernel runs in the context any more
        set_stage(d, CHECK_DEVICE_FAILED);
    } else if (r) {
        const char *name = driver_result_name(r);
        guard_report_note("check: the table of buffers could not be updated (%s)", name ? name : "unknown");
        give_up("the table of buffers is not right");
    }
    if (d->version != version)
        atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
}

static void each(void (*f)(struct check_device *d, struct context *ctx, void *argument), void *argument)
{
    for (unsigned i = 0; i < used; i++) {
        struct context *ctx = context_of_number(i);
        bool pushed;
        if (!ctx || !device_of(ctx) ||
            !context_enter(atomic_load_explicit(&ctx->handle, memory_order_relaxed), &pushed))
            continue;
        f(&devices[i], ctx, argument);
        context_leave(pushed);
    }
}

void check_host_each(void (*f)(struct check_device *d, struct context *ctx, void *argument), void *argument)
{
    lock_take(&lock);
    each(f, argument);
    lock_give(&lock);
}

void check_host_rings(void (*f)(struct check_device *d, struct context *ctx, void *argument), void *argument,
                      bool wait)
{
    if (wait)
        lock_take(&lock);
    else if (!lock_try(&lock))
        return;
    for (unsigned i = 0; i < used; i++) {
        struct context *ctx = context_of_number(i);
        if (ctx && device_of(ctx))
            f(&devices[i], ctx, argument);
    }
    lock_give(&lock);
}

void check_host_close(void)
{
    lock_take(&lock);
    for (unsigned i = 0; i < CONTEXT_CONTEXTS; i++)
        if (stage_of(&devices[i]) == CHECK_DEVICE_READY)
            set_stage(&devices[i], CHECK_DEVICE_FAILED);
    check_host_on = false;
    lock_give(&lock);
}

// Requires the lock.
static void flush(struct change *c)
{
    c->current = context_current();
    for (unsigned i = 0; i < CONTEXT_CONTEXTS; i++)
        if (stage_of(&devices[i]) == CHECK_DEVICE_ENDING_READY)
            set_stage(&devices[i], CHECK_DEVICE_ENDING_MISSED);
    if (check_table_failed(table))
        give_up("no memory for the table of buffers");
    else
        each(flush_one, c);
    check_table_clean(table);
}

void check_host_shadow_change(const struct check_shadow_change *change)
{
    struct change c = {.shadow = *change};
    if (!check_host_on)
        return;
    lock_take(&lock);
    if (!broken)
        flush(&c);
    lock_give(&lock);
}

// Memory of graphs. When it is valid is not known, and blocks of one graph, or of one after the other, may
// share addresses: then they are one block. It stays live until other memory is there, since a graph that
// is launched again allocates the same addresses again.
struct graph_block {
    uint64_t base, end;
};
static VEC(struct graph_block) graph_blocks;  // disjoint; protected by the lock

// Takes blocks out of the list that overlap another one, which grows to cover them if `join`.
static void take_graph_blocks(uint64_t *base, uint64_t *end, bool join)
{
    for (size_t i = 0; i < graph_blocks.len;) {
        struct graph_block b = graph_blocks.items[i];
        if (b.end <= *base || b.base >= *end) {
            i++;
            continue;
        }
        graph_blocks.items[i] = graph_blocks.items[--graph_blocks.len];
        if (join) {
            *base = b.base < *base ? b.base : *base;
            *end = b.end > *end ? b.end : *end;
            i = 0;
        }
    }
}

// Requires the lock. Returns what is to be added to the table for a block of a graph: no serial, so that no
// free marks it.
static struct check_table_block add_graph_block(uint64_t base, uint64_t size)
{
    uint64_t end = base + size;
    take_graph_blocks(&base, &end, true);
    if (vec_push(&graph_blocks, (struct graph_block){base, end}))
        return (struct check_table_block){0};
    return (struct check_table_block){base, end - base, 0, 0};
}

static unsigned flags_of(enum track_family family)
{
    switch (family) {
    case TRACK_ANNOUNCED: return CHECK_TABLE_INNER;
    case TRACK_MAPPED: return CHECK_TABLE_LOOSE;
    case TRACK_REGISTERED: return CHECK_TABLE_SHARES;
    case TRACK_POOL: return CHECK_TABLE_ORDERED;
    case TRACK_VARIABLE: return CHECK_TABLE_FORGOTTEN;
    default: return 0;
    }
}

// Makes the shadow of what kernels that have ended by now could use. Requires the lock.
static void flush_due(void)
{
    struct change c = {.ordered = false};
    while (check_host_shadow && !broken && check_host_shadow->due(&c.shadow))
        flush(&c);
}

// A block may have become a pool. Requires the lock.
static void note_pool(int err, uint64_t pool)
{
    if (err)
        give_up("no memory for announced blocks");
    if (pool)
        check_table_pool(table, pool);
}

static void add_piece(const struct track_copy *b, struct change *c)
{
    uint64_t pool = 0;
    int err = check_host_shadow->piece(b, &c->shadow, &pool);
    note_pool(err, pool);
}

static void pool_changed(uint64_t base, uint64_t end, bool is_one)
{
    struct change c = {.ordered = false};
    uint64_t pool = 0;
    if (!check_host_on || !check_host_shadow)
        return;
    int saved = errno;
    lock_take(&lock);
    if (!broken) {
        int err = check_host_shadow->pool(base, end, is_one, &c.shadow, &pool);
        note_pool(err, pool);
        flush(&c);
        flush_due();
    }
    lock_give(&lock);
    errno = saved;
}

static void made(const struct track_copy *b)
{
    struct check_table_block add = {b->base, b->size, b->facts.serial, flags_of(b->facts.family)};
    struct change c = {.ordered = b->facts.family == TRACK_POOL && order.valid,
                       .stream = order.stream,
                       .per_thread = order.per_thread};
    order.valid = false;
    if (!check_host_on)
        return;
    int saved = errno;
    bool piece = b->facts.family == TRACK_ANNOUNCED;
    change_block(&c, b->base, piece ? 0 : b->size, true);
    lock_take(&lock);
    if (check_host_shadow && !broken && piece)
        add_piece(b, &c);
    else if (check_host_shadow && b->facts.family != TRACK_REGISTERED)
        check_host_shadow->replaced(b->base, b->base + b->size);
    if (b->facts.family == TRACK_GRAPH) {
        add = add_graph_block(b->base, b->size);
    } else if (graph_blocks.len && b->facts.family != TRACK_ANNOUNCED) {
        uint64_t base = b->base, end = base + b->size;
        take_graph_blocks(&base, &end, false);
    }
    if (!broken && check_table_add(table, &add) != -EINVAL)
        flush(&c);
    flush_due();
    lock_give(&lock);
    errno = saved;
}

// Of a freed block that was a pool nothing is left to be taken back.
static void forget_pools(const struct change *c)
{
    if (check_host_shadow && c->shadow.size)
        check_host_shadow->replaced(c->shadow.base, c->shadow.base + c->shadow.size);
}

static void freed(uint64_t base, uint64_t serial)
{
    struct change c = {.ordered = false};
    if (!check_host_on)
        return;
    int saved = errno;
    if (check_host_shadow) {
        unsigned section = epoch_enter();
        const struct track_block *b = track_freed(base);
        if (b && b->range.base == base && b->facts.serial == serial && b->facts.family != TRACK_ANNOUNCED)
            change_block(&c, base, b->range.size, false);
        epoch_leave(section);
    }
    lock_take(&lock);
    if (!broken && check_table_mark(table, base, serial)) {
        forget_pools(&c);
        flush(&c);
    }
    lock_give(&lock);
    errno = saved;
}

static void withdrawn(uint64_t base, uint64_t end)
{
    struct change c = {.ordered = false};
    if (!check_host_on)
        return;
    int saved = errno;
    uint32_t stack = check_host_shadow ? stack_capture(NULL, (unsigned)guard.options.stack_depth) : 0;
    lock_take(&lock);
    if (!broken) {
        check_table_withdraw(table, base, end);
        note_pool(check_host_shadow ? check_host_shadow->taken_back(base, end, stack) : 0, 0);
        flush(&c);
        flush_due();
    }
    lock_give(&lock);
    errno = saved;
}

// No block is there yet: what changes goes to the contexts with the first block.
static void divided(uint64_t base, uint64_t bytes, uint64_t stride)
{
    if (!check_host_on)
        return;
    int saved = errno;
    lock_take(&lock);
    if (!broken)
        check_table_divide(table, base, bytes, stride);
    lock_give(&lock);
    errno = saved;
}

void check_host_alloc_in_order(CUstream stream, bool per_thread)
{
    order.stream = stream;
    order.per_thread = per_thread;
    order.valid = true;
}

void check_host_free_in_order(uint64_t base, CUstream stream, bool per_thread)
{
    struct change c = {.ordered = true, .stream = stream, .per_thread = per_thread, .freed = true};
    unsigned section = epoch_enter();
    const struct track_block *b = track_freed(base);
    uint64_t serial = b && b->range.base == base ? b->facts.serial : 0;
    if (serial)
        change_block(&c, base, b->range.size, false);
    epoch_leave(section);
    if (!check_host_on || !serial)
        return;
    int saved = errno;
    lock_take(&lock);
    if (!broken && check_table_mark(table, base, serial)) {
        forget_pools(&c);
        flush(&c);
    }
    lock_give(&lock);
    errno = saved;
}

void check_host_waited(uint64_t ended)
{
    if (!ended || !check_host_on)
        return;
    lock_take(&lock);
    check_table_launches(table, atomic_load_explicit(&launch_ring.count, memory_order_relaxed), ended);
    if (check_host_shadow)
        check_host_shadow->ended(ended);
    flush_due();
    lock_give(&lock);
}

// --- contexts ----------------------------------------------------------------------------------------------

// Finds out where the heap of malloc in kernels is; if it has moved, all variables are set again. In a shadow
// it is forbidden: so all accesses of it are judged, by the heap's own lists.
static void find_heap(struct context *ctx, struct check_device *d)
{
    uint64_t bytes, heap = kheap_host_found(ctx, &bytes);
    if (heap == d->heap && bytes == d->heap_bytes)
        return;
    struct check_shadow_change former = {
        .base = d->heap, .size = d->heap ? d->heap_bytes : 0, .what = CHECK_SHADOW_RANGE, .live = true};
    struct check_shadow_change now = {
        .base = heap, .size = heap ? bytes : 0, .what = CHECK_SHADOW_RANGE, .live = false};
    CUresult r = flush_shadow(d, ctx, &former);
    if (!r)
        r = flush_shadow(d, ctx, &now);
    if (r)
        give_up("the shadow of malloc in kernels could not be set");
    d->heap = heap;
    d->heap_bytes = bytes;
    d->version++;
}

static void make(struct check_device *d, struct context *ctx)
{
    CUresult r = check_device_make(d, ctx, table, guard.options.on_error == OPTION_ON_ERROR_TRAP);
    if (!r)
        find_heap(ctx, d);
    if (!r && check_host_shadow)
        r = check_host_shadow->make(context_number(ctx), ctx, d->heap, d->heap ? d->heap_bytes : 0,
                                    &d->shadow);
    if (!r) {
        used = used > context_number(ctx) ? used : context_number(ctx) + 1;
        set_stage(d, CHECK_DEVICE_READY);
        return;
    }
    const char *name = driver_result_name(r);
    check_device_unmake(d);
    if (check_host_shadow)
        check_host_shadow->gone(context_number(ctx));
    guard_count(GUARD_CHECK_NONE);
    guard_report_note("check: no table of buffers in a context (%s): its kernels are not checked",
                      name ? name : "an unknown error");
}

// Between these calls the driver may end the context: nobody reads its ring, writes its table or makes one.
void check_host_context_ends(CUcontext context, enum driver_id call)
{
    struct context *ctx = context_find(context);
    if (!ctx)
        return;
    lock_take(&lock);
    struct check_device *d = &devices[context_number(ctx)];
    if (stage_of(d) == CHECK_DEVICE_READY)
        set_stage(d, CHECK_DEVICE_ENDING_READY);
    else if (stage_of(d) == CHECK_DEVICE_NONE)
        set_stage(d, CHECK_DEVICE_ENDING);
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
    lock_give(&lock);
}

void check_host_context_stays(CUcontext context)
{
    struct context *ctx = context_find(context);
    if (!ctx)
        return;
    lock_take(&lock);
    struct check_device *d = &devices[context_number(ctx)];
    enum check_device_stage stage = stage_of(d);
    if (stage == CHECK_DEVICE_ENDING_MISSED)
        give_up("the table of buffers changed while a context was to end");
    if (stage == CHECK_DEVICE_ENDING)
        set_stage(d, CHECK_DEVICE_NONE);
    else if (stage == CHECK_DEVICE_ENDING_READY || stage == CHECK_DEVICE_ENDING_MISSED)
        set_stage(d, CHECK_DEVICE_READY);
    lock_give(&lock);
}

void check_host_context_gone(CUcontext context)
{
    struct context *ctx = context_find(context);
    if (!ctx)
        return;
    lock_take(&lock);
    struct check_device *d = &devices[context_number(ctx)];
    // Its plain memory has ended with it; the ring is the process's, and the driver has freed it too.
    check_device_drop(d);
    if (check_host_shadow)
        check_host_shadow->gone(context_number(ctx));
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
    unsigned number = context_number(ctx);
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client])
        ((struct module *)row->data[client])->set_in[number] = 0;
    modules_give(client, all);
    lock_give(&lock);
}

// --- modules -----------------------------------------------------------------------------------------------

// Requires ctx to be current. Without a device, the module's kernels perform every access.
static CUresult set_variable(struct context *ctx, const struct modules_row *row, struct kcheck_module value)
{
    const struct driver *d = &guard.real;
    CUdeviceptr at = 0;
    size_t size = 0;
    CUresult r = row->library ? d->cuLibraryGetGlobal(&at, &size, (CUlibrary)row->handle, KCHECK_VARIABLE)
                              : d->cuModuleGetGlobal_v2(&at, &size, (CUmodule)row->handle, KCHECK_VARIABLE);
    const struct context_copy copy = {at, &value, sizeof value};
    if (!r && size != sizeof value)
        r = CUDA_ERROR_INVALID_VALUE;
    return r ? r : context_write(ctx, &copy, 1);
}

// Modules that are new in a context.
struct fresh {
    VEC(struct modules_row *) rows;  // held
};

static void note_fresh(struct fresh *f, const struct modules_row *row)
{
    struct modules_row *held = modules_hold(row->handle);
    if (held && vec_push(&f->rows, held))
        modules_release(held);
}

static void record_fresh(struct fresh *f, struct context *ctx)
{
    for (size_t i = 0; i < f->rows.len; i++) {
        check_variables_record(ctx, f->rows.items[i]);
        modules_release(f->rows.items[i]);
    }
    vec_free(&f->rows);
}

// Sets the variables of all modules in a context. Requires the lock.
static void set_variables(struct context *ctx, CUcontext context, const struct check_device *d,
                          struct fresh *fresh)
{
    static bool noted;
    unsigned number = context_number(ctx);
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client]) {
        struct module *m = row->data[client];
        if (m->ending)
            m->set_in[number] = 0;  // it is set if the module stays
        if (m->ending || (row->context && row->context != context) || m->set_in[number] == d->version)
            continue;
        if (!m->set_in[number])
            note_fresh(fresh, row);
        struct kcheck_module value = {.directory = d->directory,
                                      .records = d->records,
                                      .state = d->state,
                                      .number = m->number,
                                      .heap = d->heap,
                                      .heap_bytes = d->heap_bytes,
                                      .shadow = d->shadow,
                                      .shift = check_host_shadow ? check_host_shadow->shift : 0};
        // Kernels load the shadow whatever happens; without a state they perform every access.
        struct kcheck_module nothing = {.shadow = value.shadow, .shift = value.shift};
        CUresult r = row->of && !m->set_in[number] ? check_variables_place(ctx, row) : CUDA_SUCCESS;
        if (!r)
            r = set_variable(ctx, row, broken ? nothing : value);
        m->set_in[number] = broken ? 0 : d->version;
        if (r && !noted) {
            const char *name = driver_result_name(r);
            noted = true;
            guard_count(GUARD_CHECK_NONE);
            guard_report_note("check: the address of the table of buffers could not be set in a module "
                              "(%s): its accesses are not judged",
                              name ? name : "an unknown error");
        }
    }
    modules_give(client, all);
}

uint64_t check_host_heap(uint64_t *bytes)
{
    const struct context *ctx = kheap_host_any() ? context_current() : NULL;
    return ctx ? kheap_host_found(ctx, bytes) : 0;
}

void check_host_limit_set(void)
{
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
}

// Sets the variables once more if what was recorded has moved the table: the launch that is being made would
// be judged by the old one.
static void set_again(struct context *ctx, CUcontext context, const struct check_device *d)
{
    struct fresh none = {.rows = {0}};
    if (atomic_load_explicit(&ready_in, memory_order_relaxed) == context)
        return;
    lock_take(&lock);
    if (stage_of(d) == CHECK_DEVICE_READY)
        set_variables(ctx, context, d, &none);
    lock_give(&lock);
    record_fresh(&none, ctx);
}

static bool prepare(CUcontext context)
{
    bool pushed;
    struct context *ctx = context_enter(context, &pushed);
    if (!ctx)
        return false;
    int saved = errno;
    struct fresh fresh = {.rows = {0}};
    CUstreamCaptureMode mode = context_capture_relax();
    lock_take(&lock);
    struct check_device *d = &devices[context_number(ctx)];
    if (stage_of(d) == CHECK_DEVICE_NONE && !broken)
        make(d, ctx);
    bool ready = stage_of(d) == CHECK_DEVICE_READY;
    bool first = ready && !any_ready;
    any_ready |= ready;
    if (ready)
        find_heap(ctx, d);
    if (ready)
        set_variables(ctx, context, d, &fresh);
    if (ready && !broken)
        atomic_store_explicit(&ready_in, context, memory_order_release);
    ready = ready && !broken;
    lock_give(&lock);
    bool recorded = fresh.rows.len;
    record_fresh(&fresh, ctx);
    if (ready && recorded)
        set_again(ctx, context, d);
    context_capture_restore(mode);
    context_leave(pushed);
    if (first && check_host_first)
        check_host_first();
    errno = saved;
    return ready;
}

// The heap of malloc in kernels is one block of the table, once the CPU device has made it: its blocks have
// no bounds of their own, but are not judged one access at a time. It stays in the table when its context
// ends: an access there would be performed without it too, and new blocks take its place. Requires the
// context to be current, and the lock.
static void add_kernel_heap(struct check_device *d, struct context *ctx, void *found)
{
    struct check_table_block heap = {0};
    if (d->heap_known || broken || !guard.real_kernel_heap(&heap.base, &heap.size))
        return;
    d->heap_known = true;
    *(bool *)found |= check_table_add(table, &heap) != -EINVAL;
}

void check_host_find_heaps(void)
{
    struct change c = {.ordered = false};
    bool found = false, wanted = false;
    if (!check_host_on || !guard.real_kernel_heap)
        return;
    int saved = errno;
    lock_take(&lock);
    for (unsigned i = 0; i < used; i++)
        wanted |= !devices[i].heap_known && stage_of(&devices[i]) == CHECK_DEVICE_READY;
    if (wanted)
        each(add_kernel_heap, &found);
    if (found)
        flush(&c);
    lock_give(&lock);
    errno = saved;
}

bool check_host_launch(void)
{
    CUcontext context = NULL;
    if (!check_host_on || guard.real.cuCtxGetCurrent(&context) || !context)
        return false;
    context = green_owner(context);
    kheap_host_launch();
    return atomic_load_explicit(&ready_in, memory_order_acquire) == context || prepare(context);
}

static bool has_checks(const struct modules_row *row)
{
    for (unsigned i = 0; i < row->nparts; i++)
        if (row->parts[i]->check)
            return true;
    return false;
}

void check_host_module(struct modules_row *row)
{
    struct module *m =
        row && (row->library || row->context) && has_checks(row) ? mem_zalloc(1, sizeof *m) : NULL;
    if (!m) {
        guard_count(GUARD_CHECK_NONE);
        return;
    }
    lock_take(&lock);
    m->number = ++numbers;
    modules_set(row, client, m);
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
    lock_give(&lock);
}

void check_host_module_ends(const void *handle, bool ending)
{
    if (!check_host_on)
        return;
    lock_take(&lock);
    struct modules_row *row = modules_take(client, handle);
    if (row) {
        ((struct module *)row->data[client])->ending = ending;
        atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
    }
    modules_give(client, row);
    lock_give(&lock);
}

// Finds the text of a site among those that a module was linked from.
static const struct pass_check *find_part(const struct modules_row *row, uint32_t site)
{
    const struct pass_check *found = NULL;
    for (unsigned i = 0; i < row->nparts; i++) {
        const struct pass_check *c = row->parts[i]->check;
        if (!c || c->tag != site >> KCHECK_SITE_BITS || (site & ((1u << KCHECK_SITE_BITS) - 1)) >= c->nsites)
            continue;
        if (found)  // two texts with one tag
            return NULL;
        found = c;
    }
    return found;
}

const struct pass_check *check_host_sites(uint64_t number, uint32_t site)
{
    const struct pass_check *found = NULL;
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client]) {
        const struct module *m = row->data[client];
        found = m->number == number ? find_part(row, site) : found;
    }
    modules_give(client, all);
    return found;
}

static const struct pass_check_kernel *find_kernel(const struct pass_check *checks, const char *name,
                                                   size_t length)
{
    for (uint32_t i = 0; checks && i < checks->nkernels; i++)
        if (checks->kernels[i].name.len == length && !memcmp(checks->kernels[i].name.ptr, name, length))
            return &checks->kernels[i];
    return NULL;
}

const struct pass_check_kernel *check_host_kernel(const void *handle, const char *name)
{
    struct modules_row *row = handle ? modules_hold(handle) : NULL;
    const struct pass_check_kernel *found = NULL;
    for (unsigned i = 0; row && i < row->nparts && !found; i++)
        found = find_kernel(row->parts[i]->check, name, strlen(name));
    modules_release(row);
    return found;
}

const struct pass_check *check_host_part(const void *handle, const struct pass_check_kernel *kernel,
                                         uint64_t *number)
{
    struct modules_row *all = handle ? modules_take_all(client) : NULL;
    const struct pass_check *found = NULL;
    *number = 0;
    for (struct modules_row *row = all; row && !found; row = row->more[client]) {
        if (row->handle != handle && (!row->of || row->of->handle != handle))
            continue;
        *number = ((struct module *)row->data[client])->number;
        for (unsigned i = 0; i < row->nparts && !found; i++) {
            const struct pass_check *c = row->parts[i]->check;
            found = c && kernel >= c->kernels && kernel < c->kernels + c->nkernels ? c : NULL;
        }
    }
    modules_give(client, all);
    return found;
}

bool check_host_is_checked(const void *handle)
{
    struct modules_row *row = handle ? modules_hold(handle) : NULL;
    bool checked = row && has_checks(row);
    modules_release(row);
    return checked;
}

// --- start -------------------------------------------------------------------------------------------------

static const struct track_listener listener = {made, freed, withdrawn, divided, pool_changed};

int check_host_start(void)
{
    table = check_table_new();
    if (!table)
        return -ENOMEM;
    client = modules_client(mem_free);
    track_listen(&listener);
    check_host_on = true;
    return 0;
}

// The driver does not work in the child.
void check_host_after_fork(void)
{
    lock_after_fork(&lock);
    check_host_on = false;
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
}
