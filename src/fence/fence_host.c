// SPDX-License-Identifier: MIT
#include "fence/fence_host.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "context/context_copy.h"
#include "context/green.h"
#include "core/guard.h"
#include "core/lock.h"
#include "fence/fence_handles.h"
#include "fence/fence_memory.h"
#include "fence/fence_objects.h"
#include "fence/fence_ranges.h"
#include "fence/fence_stack.h"
#include "track/guard_report.h"
#include "track/track.h"

enum { NAME = 4096 };

// Our data of a module's row.
struct module {
    uint64_t number;
    const struct pass_check *sites;
    uint64_t set_in[CONTEXT_CONTEXTS];  // generation of the partition that its variable was set for; 0: never
    bool listed[CONTEXT_CONTEXTS];      // its other variables are in the list
    bool ending;
};

_Atomic(bool) fence_host_on;
void (*fence_host_first)(void);

// Held over driver calls: whoever allocates, frees or launches waits for the driver anyway.
static struct lock lock = LOCK_INIT(FENCE);
static struct fence_device devices[CONTEXT_CONTEXTS];
static unsigned used;  // devices[i] has never been made for i >= used
static unsigned client;
static uint64_t numbers;  // of modules so far
static bool any_ready;
static struct fence_ranges ranges;
static _Atomic bool has_ranges;     // relaxed: a launch follows the call that made the range
static struct kfence_table *image;  // the table as it is copied
static bool unlisted;               // a range could not be listed
// The context of the last launch, if its modules' variables are up to date. Acquire and release: who finds
// the context here sees what was set.
static _Atomic(CUcontext) ready_in;

static void forget_ready(void)
{
    atomic_store_explicit(&ready_in, NULL, memory_order_relaxed);
}

void fence_host_changed(void)
{
    forget_ready();
}

bool fence_host_has_ranges(void)
{
    return atomic_load_explicit(&has_ranges, memory_order_relaxed);
}

// --- contexts ----------------------------------------------------------------------------------------------

static void each(void (*f)(struct fence_device *d, struct context *ctx, void *argument), void *argument)
{
    for (unsigned i = 0; i < used; i++) {
        struct context *ctx = context_of_number(i);
        bool pushed;
        if (!ctx || !devices[i].ready || devices[i].ending ||
            !context_enter(atomic_load_explicit(&ctx->handle, memory_order_relaxed), &pushed))
            continue;
        f(&devices[i], ctx, argument);
        context_leave(pushed);
    }
}

void fence_host_each(void (*f)(struct fence_device *d, struct context *ctx, void *argument), void *argument)
{
    lock_take(&lock);
    each(f, argument);
    lock_give(&lock);
}

void fence_host_locked(void (*f)(void *argument), void *argument)
{
    lock_take(&lock);
    f(argument);
    lock_give(&lock);
}

struct fence_device *fence_host_device(unsigned context)
{
    return devices[context].ready && !devices[context].ending ? &devices[context] : NULL;
}

bool fence_host_is_range(uint64_t base, uint64_t bytes, uint64_t *range)
{
    for (uint64_t i = 0; i < image->count; i++)
        if (image->ranges[i].base <= base && base + bytes <= image->ranges[i].end && base + bytes >= base) {
            *range = image->ranges[i].base;
            return true;
        }
    return false;
}

bool fence_host_rings(void (*f)(struct fence_device *d, struct context *ctx, void *argument), void *argument,
                      bool wait)
{
    if (wait)
        lock_take(&lock);
    else if (!lock_try(&lock))
        return false;
    for (unsigned i = 0; i < used; i++) {
        struct context *ctx = context_of_number(i);
        if (ctx && devices[i].ready && !devices[i].ending)
            f(&devices[i], ctx, argument);
    }
    lock_give(&lock);
    return true;
}

void fence_host_close(void)
{
    lock_take(&lock);
    for (unsigned i = 0; i < CONTEXT_CONTEXTS; i++)
        devices[i].ready = false;
    fence_host_on = false;
    lock_give(&lock);
}

CUresult fence_host_wait_all(struct context *ctx)
{
    CUresult r = context_wait_as_free(ctx);
    for (unsigned i = 0; i < CONTEXT_CONTEXTS && !r; i++) {
        struct context *other = context_of_number(i);
        bool pushed;
        if (!other || other == ctx || other->device != ctx->device ||
            !context_enter(atomic_load_explicit(&other->handle, memory_order_relaxed), &pushed))
            continue;
        r = context_wait_as_free(other);
        context_leave(pushed);
    }
    return r;
}

// --- the table ---------------------------------------------------------------------------------------------

#define TABLE(d, n, field)                                                                    \
    ((d)->state + offsetof(struct kfence_state, tables) + (n) * sizeof(struct kfence_table) + \
     offsetof(struct kfence_table, field))

static CUresult write_at(struct context *ctx, CUdeviceptr at, const void *bytes, size_t size)
{
    const struct context_copy copy = {at, (void *)bytes, (uint32_t)size};
    return context_write(ctx, &copy, 1);
}

// Writes the table that does not hold, and makes it hold. Each copy is complete before the next one.
static void write_table(struct fence_device *d, struct context *ctx, void *unused)
{
    unsigned n = 1 - d->table;
    CUdeviceptr at = TABLE(d, n, version);
    uint64_t odd = d->version + 1, even = d->version + 2;
    CUresult r = write_at(ctx, at, &odd, sizeof odd);
    if (!r)
        r = write_at(ctx, TABLE(d, n, count), &image->count,
                     sizeof image->count + image->count * sizeof *image->ranges);
    if (!r)
        r = write_at(ctx, at, &even, sizeof even);
    if (!r)
        r = write_at(ctx, d->state + offsetof(struct kfence_state, current), &at, sizeof at);
    if (r)
        return;  // its context has ended, or ends
    d->table = n;
    d->version = even;
}

static void make_image(void)
{
    image->count = fence_ranges_list(&ranges, image->ranges, KFENCE_RANGES);
    atomic_store_explicit(&has_ranges, image->count != 0, memory_order_relaxed);
}

static void ranges_changed(void)
{
    make_image();
    each(write_table, NULL);
}

static void add_range(uint64_t base, uint64_t size, const void *owner)
{
    if (fence_ranges_add(&ranges, base, base + size, owner) && ranges.count <= KFENCE_RANGES)
        return;
    guard_count(GUARD_FENCE_UNLISTED);
    if (!unlisted)
        guard_report_note("fence: memory at 0x%llx could not be listed: accesses of it count as stray",
                          (unsigned long long)base);
    unlisted = true;
}

static bool has_address(enum track_family family)
{
    return family != TRACK_ARRAY && family != TRACK_ANNOUNCED && family != TRACK_VARIABLE;
}

static void made(const struct track_copy *b)
{
    if (!fence_host_on || !has_address(b->facts.family) || fence_memory_has(b->base))
        return;
    int saved = errno;
    lock_take(&lock);
    add_range(b->base, b->size, NULL);
    ranges_changed();
    lock_give(&lock);
    errno = saved;
}

static void freed(uint64_t base, uint64_t serial)
{
    if (!fence_host_on || fence_memory_has(base))
        return;
    int saved = errno;
    lock_take(&lock);
    if (fence_ranges_remove(&ranges, base)) {
        ranges_changed();
        fence_handles_range_ends(base);
    }
    lock_give(&lock);
    errno = saved;
}

static void withdrawn(uint64_t base, uint64_t end)
{
}

static void divided(uint64_t base, uint64_t bytes, uint64_t stride)
{
}

// --- a context's state -------------------------------------------------------------------------------------

static CUresult make_state(struct fence_device *d, struct context *ctx)
{
    const struct driver *real = &guard.real;
    void *p = NULL;
    CUdeviceptr ring = 0;
    struct error_ring_writer writer;
    const struct kfence_object *objects = fence_objects_table(context_number(ctx));
    uint64_t silent = guard.options.fence_silent, low = UINT64_MAX;
    const size_t bytes = error_ring_bytes(KFENCE_RING), all = bytes + KFENCE_NOTES * sizeof *d->notes;
    CUresult r = real->cuMemHostAlloc(&p, all, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (r)
        return r;
    d->ring = p;
    memset(p, 0, all);
    d->notes = (uint32_t *)((char *)p + bytes);
    error_ring_reader_start(&d->reader, d->ring, KFENCE_RING);
    r = real->cuMemHostGetDevicePointer_v2(&ring, p, 0);
    if (!r)
        r = real->cuMemAlloc_v2(&d->state, sizeof(struct kfence_state));
    if (!r)
        r = context_fill(ctx, d->state, 0, sizeof(struct kfence_state));
    d->notes_at = ring + bytes;
    error_ring_writer_start(&writer, ring, KFENCE_RING);
    const struct context_copy copies[] = {
        {d->state + offsetof(struct kfence_state, errors), &writer, sizeof writer},
        {d->state + offsetof(struct kfence_state, silent), &silent, sizeof silent},
        {d->state + offsetof(struct kfence_state, heap_low), &low, sizeof low},
        {d->state + offsetof(struct kfence_state, objects), (void *)(uintptr_t)objects,
         sizeof *objects * KFENCE_OBJECTS},
    };
    return r ? r : context_write(ctx, copies, objects ? 4 : 3);
}

static void make(struct fence_device *d, struct context *ctx)
{
    CUresult r = fence_memory_partition(ctx) ? make_state(d, ctx) : CUDA_ERROR_NOT_SUPPORTED;
    if (!r) {
        used = used > context_number(ctx) ? used : context_number(ctx) + 1;
        d->ready = true;
        write_table(d, ctx, NULL);
        return;
    }
    const char *name = driver_result_name(r);
    if (d->ring)
        guard.real.cuMemFreeHost(d->ring);
    if (d->state)
        guard.real.cuMemFree_v2(d->state);
    *d = (struct fence_device){.failed = true};
    guard_report_note("fence: a context cannot be fenced (%s): its launches are refused",
                      name ? name : "an unknown error");
}

// --- modules -----------------------------------------------------------------------------------------------

static CUresult find_variable(const struct modules_row *row, struct str name, CUdeviceptr *at, size_t *size)
{
    char text[NAME];
    const struct driver *d = &guard.real;
    if (name.len >= sizeof text)
        return CUDA_ERROR_NOT_FOUND;
    memcpy(text, name.ptr, name.len);
    text[name.len] = 0;
    return row->library ? d->cuLibraryGetGlobal(at, size, (CUlibrary)row->handle, text)
                        : d->cuModuleGetGlobal_v2(at, size, (CUmodule)row->handle, text);
}

static bool is_listed(const struct pass_symbol *s)
{
    return !strncmp(s->pass, "fence", 5) && !str_eq(s->name, STR(KFENCE_VARIABLE)) &&
           !str_eq(s->name, STR(KFENCE_STACK));
}

// Lists the module's variables. Those of a library are at other addresses in each context.
static bool list_variables(const struct modules_row *row)
{
    bool any = false;
    for (unsigned i = 0; i < row->nparts; i++)
        for (uint32_t k = 0; k < row->parts[i]->nsymbols; k++) {
            const struct pass_symbol *s = &row->parts[i]->symbols[k];
            CUdeviceptr at = 0;
            size_t size = 0;
            if (!is_listed(s))
                continue;
            if (find_variable(row, s->name, &at, &size) || !size) {
                guard_count(GUARD_FENCE_UNLISTED);
                continue;
            }
            add_range(at, size, row->handle);
            any = true;
        }
    return any;
}

// Finds the module's window (struct kfence_module) in the current context.
static void find_window(const struct modules_row *row, struct kfence_module *value)
{
    struct fence_ranges found = {NULL, 0, 0};
    for (unsigned i = 0; i < row->nparts; i++)
        for (uint32_t k = 0; k < row->parts[i]->nsymbols; k++) {
            CUdeviceptr at = 0;
            size_t size = 0;
            if (is_listed(&row->parts[i]->symbols[k]) &&
                !find_variable(row, row->parts[i]->symbols[k].name, &at, &size))
                fence_ranges_add(&found, at, at + size, NULL);
        }
    const struct kfence_range widest = fence_ranges_widest(&found, KFENCE_GAP);
    uint64_t base = (widest.base + KFENCE_GRANULE - 1) / KFENCE_GRANULE * KFENCE_GRANULE,
             end = widest.end / KFENCE_GRANULE * KFENCE_GRANULE;
    value->window = base;
    value->window_bytes = end > base ? end - base : 0;
    fence_ranges_free(&found);
}

static bool is_recursive(const struct modules_row *row)
{
    for (unsigned i = 0; i < row->nparts; i++)
        for (uint32_t k = 0; k < row->parts[i]->nsymbols; k++)
            if (str_eq(row->parts[i]->symbols[k].name, STR(KFENCE_STACK)))
                return true;
    return false;
}

static CUresult set_stack(struct context *ctx, const struct modules_row *row)
{
    CUdeviceptr at = 0;
    size_t size = 0;
    if (!is_recursive(row))
        return CUDA_SUCCESS;
    CUresult r = find_variable(row, STR(KFENCE_STACK), &at, &size);
    uint32_t room = r ? 0 : fence_stack_room(ctx);
    return r ? r : write_at(ctx, at, &room, sizeof room);
}

// Requires ctx to be current.
static CUresult set_variable(struct context *ctx, const struct modules_row *row,
                             const struct kfence_module *value)
{
    CUdeviceptr at = 0;
    size_t size = 0;
    CUresult r = find_variable(row, STR(KFENCE_VARIABLE), &at, &size);
    if (!r && size != sizeof *value)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        r = write_at(ctx, at, value, sizeof *value);
    return r ? r : set_stack(ctx, row);
}

// Sets the variables of all modules in a context. Returns false if one could not be set.
static bool set_variables(struct context *ctx, CUcontext context, struct fence_device *d,
                          const struct fence_partition *p)
{
    unsigned number = context_number(ctx);
    struct modules_row *all = modules_take_all(client);
    bool good = true, listed = false;
    for (struct modules_row *row = all; row; row = row->more[client]) {
        struct module *m = row->data[client];
        if (m->ending)
            m->set_in[number] = 0;  // it is set if the module stays
        if (m->ending || (row->context && row->context != context) || m->set_in[number] == p->generation)
            continue;
        struct kfence_module value = {.state = d->state,
                                      .number = m->number,
                                      .notes = d->notes_at,
                                      .tag = KFENCE_TAG(m->number),
                                      .longest = (uint64_t)guard.options.fence_watchdog * 1000000000u};
        fence_partition_describe(p, &value);
        find_window(row, &value);
        CUresult r = set_variable(ctx, row, &value);
        if (!m->listed[number])
            listed |= list_variables(row);
        m->listed[number] = true;
        m->set_in[number] = r ? 0 : p->generation;
        good &= !r;
    }
    modules_give(client, all);
    if (listed)
        ranges_changed();
    return good;
}

static bool prepare(CUcontext context)
{
    bool pushed;
    struct context *ctx = context_enter(context, &pushed);
    if (!ctx)
        return false;
    int saved = errno;
    CUstreamCaptureMode mode = context_capture_relax();
    lock_take(&lock);
    struct fence_device *d = &devices[context_number(ctx)];
    if (!d->ready && !d->failed && !d->ending)
        make(d, ctx);
    bool ready = d->ready && !d->ending, first = ready && !any_ready;
    any_ready |= ready;
    const struct fence_partition *p = ready ? fence_memory_partition(ctx) : NULL;
    uint64_t generation = p ? p->generation : 0;
    ready = p && set_variables(ctx, context, d, p);
    // A partition that has grown meanwhile is set at the next launch.
    if (ready && p->generation == generation)
        atomic_store_explicit(&ready_in, context, memory_order_release);
    lock_give(&lock);
    context_capture_restore(mode);
    context_leave(pushed);
    if (first && fence_host_first)
        fence_host_first();
    errno = saved;
    return ready;
}

bool fence_host_launch(void)
{
    CUcontext context = NULL;
    if (!fence_host_on || guard.real.cuCtxGetCurrent(&context) || !context)
        return false;
    context = green_owner(context);
    return atomic_load_explicit(&ready_in, memory_order_acquire) == context || prepare(context);
}

void fence_host_module(const struct rewrite_module *module)
{
    struct module *m = module->row ? mem_zalloc(1, sizeof *m) : NULL;
    if (!m)
        return;
    lock_take(&lock);
    m->number = ++numbers;
    for (unsigned i = 0; i < module->nparts && !m->sites; i++)
        m->sites = module->parts[i]->check;
    modules_set(module->row, client, m);
    forget_ready();
    lock_give(&lock);
}

void fence_host_module_ends(const void *handle, bool ending)
{
    if (!fence_host_on)
        return;
    lock_take(&lock);
    struct modules_row *row = modules_take(client, handle);
    if (row) {
        ((struct module *)row->data[client])->ending = ending;
        forget_ready();
    }
    modules_give(client, row);
    lock_give(&lock);
}

void fence_host_module_gone(const void *handle)
{
    if (!fence_host_on)
        return;
    lock_take(&lock);
    if (fence_ranges_remove_owner(&ranges, handle))
        ranges_changed();
    lock_give(&lock);
}

const struct pass_check *fence_host_sites(uint64_t number)
{
    const struct pass_check *found = NULL;
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client]) {
        const struct module *m = row->data[client];
        found = m->number == number ? m->sites : found;
    }
    modules_give(client, all);
    return found;
}

uint64_t fence_host_tagged(uint32_t note)
{
    uint64_t found = 0;
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client]) {
        uint64_t number = ((const struct module *)row->data[client])->number;
        if (KFENCE_TAG(number) == (note & KFENCE_TAG(UINT64_MAX)) && number > found)
            found = number;
    }
    modules_give(client, all);
    return found;
}

// --- the end of contexts -----------------------------------------------------------------------------------

static void set_ending(CUcontext context, bool ending)
{
    struct context *ctx = context_find(context);
    if (!ctx)
        return;
    lock_take(&lock);
    devices[context_number(ctx)].ending = ending;
    forget_ready();
    lock_give(&lock);
}

void fence_host_context_ends(CUcontext context, enum driver_id call)
{
    set_ending(context, true);
}

void fence_host_context_stays(CUcontext context)
{
    set_ending(context, false);
}

// The variables of all modules are set anew in a context.
static void forget_set(unsigned context, bool listed)
{
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client]) {
        struct module *m = row->data[client];
        m->set_in[context] = 0;
        m->listed[context] &= !listed;
    }
    modules_give(client, all);
    forget_ready();
}

void fence_host_context_gone(CUcontext context)
{
    struct context *ctx = context_find(context);
    if (!ctx)
        return;
    lock_take(&lock);
    unsigned number = context_number(ctx);
    // Its memory has ended with it; the ring is the process's, and the driver has freed it too.
    devices[number] = (struct fence_device){.ready = false};
    fence_stack_forget(ctx);
    fence_objects_forget(number);
    forget_set(number, true);
    lock_give(&lock);
}

void fence_host_limit_set(CUlimit limit)
{
    CUcontext context = NULL;
    struct context *ctx = limit == CU_LIMIT_STACK_SIZE && !guard.real.cuCtxGetCurrent(&context)
                              ? context_find(green_owner(context))
                              : NULL;
    if (!ctx)
        return;
    lock_take(&lock);
    fence_stack_set(ctx);
    forget_set(context_number(ctx), false);
    lock_give(&lock);
}

bool fence_host_limit(CUlimit limit, size_t *value)
{
    CUcontext context = NULL;
    struct context *ctx = limit == CU_LIMIT_STACK_SIZE && !guard.real.cuCtxGetCurrent(&context)
                              ? context_find(green_owner(context))
                              : NULL;
    if (!ctx)
        return false;
    lock_take(&lock);
    bool other = fence_stack_limit(ctx, value);
    lock_give(&lock);
    return other;
}

// --- start -------------------------------------------------------------------------------------------------

static const struct track_listener listener = {made, freed, withdrawn, divided, NULL};

int fence_host_start(void)
{
    image = mem_zalloc(1, sizeof *image);
    if (!image)
        return -ENOMEM;
    client = modules_client(mem_free);
    track_listen(&listener);
    fence_host_on = true;
    return 0;
}

// The driver does not work in the child.
void fence_host_after_fork(void)
{
    lock_after_fork(&lock);
    memset(devices, 0, sizeof devices);
    used = 0;
    any_ready = false;
    fence_ranges_free(&ranges);
    make_image();
    forget_ready();
}
