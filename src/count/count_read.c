// SPDX-License-Identifier: MIT
#include "count/count_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "count/count.h"
#include "rewrite/modules.h"
#include "context/context.h"
#include "context/green.h"
#include "core/lock.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "context/names.h"

enum {
    DEVICES = 64,
    PATIENCE_MS = 2000,  // for the work of a context, when it or the process ends
};

// A module's table in one context, and what it held when it was last read.
struct instance {
    struct instance *next;
    CUcontext context;
    bool sure;                      // the module is in that context; false: it may be
    bool seen;                      // by read_all
    struct pass_count_sums sums[];  // of all functions of all parts
};

// Our data of a row of the registry. Whoever has taken the row may change the instances; the rest does not
// change.
struct module {
    const struct modules_row *in;
    struct instance *instances;
    unsigned nfuncs;
    struct count_row **rows;  // by function, of all parts; entries may be NULL
};

static unsigned client;
static struct lock lock = LOCK_INIT(COUNT_READ);  // of what follows; a leaf
static pid_t owner;
static bool noted;

static void free_module(void *data)
{
    struct module *m = data;
    while (m->instances) {
        struct instance *i = m->instances;
        m->instances = i->next;
        mem_free(i);
    }
    mem_free(m->rows);
    mem_free(m);
}

void count_read_start(void)
{
    client = modules_client(free_module);
}

static struct module *module_of(const struct modules_row *row)
{
    return row->data[client];
}

// --- modules -----------------------------------------------------------------------------------------------

static void mark_lost(const struct module *m)
{
    for (unsigned i = 0; i < m->nfuncs; i++)
        if (m->rows[i])
            count_is_lost(m->rows[i]);
}

// Adds a context to a module, unless it is known. Returns NULL if out of memory; the module's counts are then
// lost.
static struct instance *add_instance(struct module *m, CUcontext context, bool sure)
{
    struct instance *i = m->instances;
    while (i && i->context != context)
        i = i->next;
    if (!i && (i = mem_zalloc(1, sizeof *i + m->nfuncs * sizeof *i->sums))) {
        i->context = context;
        i->next = m->instances;
        m->instances = i;
    }
    if (i)
        i->sure |= sure;
    else
        mark_lost(m);
    return i;
}

static struct count_row *make_row(const struct pass_func *f)
{
    char *name = mem_alloc(f->name.len + 1);
    if (!name)
        return NULL;
    memcpy(name, f->name.ptr, f->name.len);
    name[f->name.len] = 0;
    struct count_row *row = count_row(name, f->why == PASS_REWRITTEN);
    mem_free(name);
    if (row && f->why == PASS_REWRITTEN)
        count_is_rewritten(row, !f->is_entry, f->approximate);
    return row;
}

static bool make_rows(struct module *m)
{
    unsigned n = 0;
    for (unsigned i = 0; i < m->in->nparts; i++)
        m->nfuncs += m->in->parts[i]->nfuncs;
    m->rows = mem_zalloc(m->nfuncs + 1, sizeof(struct count_row *));
    for (unsigned i = 0; m->rows && i < m->in->nparts; i++)
        for (uint32_t f = 0; f < m->in->parts[i]->nfuncs; f++)
            m->rows[n++] = make_row(&m->in->parts[i]->funcs[f]);
    return m->rows;
}

static void read_at_exit(void);

// Registers the exit handler with the first module: the driver has registered its own before, so this one
// runs first.
static void read_before_the_driver_ends(void)
{
    static bool registered;
    lock_take(&lock);
    bool first = !registered;
    registered = true;
    owner = owner ? owner : getpid();
    lock_give(&lock);
    if (first && atexit(read_at_exit))
        guard_report_note("count: the counts of modules that are never unloaded are lost");
}

void count_read_add(struct modules_row *row)
{
    struct module *m = count_state.on && row ? mem_zalloc(1, sizeof *m) : NULL;
    if (!m)
        return;
    m->in = row;
    if (!make_rows(m)) {
        free_module(m);
        return;
    }
    CUcontext context = NULL;
    if (!guard.real.cuCtxGetCurrent(&context) && context)
        add_instance(m, green_owner(context), true);
    read_before_the_driver_ends();
    modules_set(row, client, m);
}

void count_read_used(const void *library)
{
    CUcontext context = NULL;
    if (!count_state.on || guard.real.cuCtxGetCurrent(&context) || !context)
        return;
    struct modules_row *row = modules_take(client, library);
    if (row)
        add_instance(module_of(row), green_owner(context), true);
    modules_give(client, row);
}

void count_read_found(const void *handle, const void *whose, const char *name)
{
    const char *kept = count_state.on ? names_keep(name) : NULL;
    struct count_row *found = NULL;
    if (!kept)
        return;
    struct modules_row *row = modules_hold(whose);
    const struct module *m = row ? module_of(row) : NULL;
    for (unsigned i = 0; m && !found && i < m->nfuncs; i++)
        if (m->rows[i] && m->rows[i]->name == kept)
            found = m->rows[i];
    modules_release(row);
    count_handle(handle, found ? found : count_row(kept, false));
}

// --- reading -----------------------------------------------------------------------------------------------

static CUresult find_table(const struct modules_row *in, const struct pass_symbol *s, CUdeviceptr *at)
{
    char name[128];
    size_t size = 0;
    snprintf(name, sizeof name, STR_FMT, STR_ARG(s->name));
    CUresult r = in->library ? guard.real.cuLibraryGetGlobal(at, &size, (CUlibrary)in->handle, name)
                             : guard.real.cuModuleGetGlobal_v2(at, &size, (CUmodule)in->handle, name);
    return r ? r : size < s->bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Reads the table of one part. Requires the instance's context to be current; its kernels may still run. The
// copy goes through a stream of our own, since the program's may be busy.
static CUresult read_part(struct module *m, struct instance *in, unsigned part, unsigned first,
                          CUstream stream)
{
    const struct pass_result *p = m->in->parts[part];
    const struct pass_symbol *s = pass_symbol_of(p, "count");
    CUdeviceptr at;
    if (!s || s->bytes < (uint64_t)p->nfuncs * PASS_COUNT_ROW * 8)
        return CUDA_SUCCESS;
    CUresult r = find_table(m->in, s, &at);
    if (r && !in->sure)
        return CUDA_SUCCESS;  // in a context that works, the table would be found if the library were there
    uint64_t *table = r ? NULL : mem_alloc(s->bytes);
    if (!table)
        return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
    r = guard.real.cuMemcpyDtoHAsync_v2(table, at, s->bytes, stream);
    if (!r)
        r = guard.real.cuStreamSynchronize(stream);
    for (uint32_t f = 0; !r && f < p->nfuncs; f++) {
        struct pass_count_sums now = {0};
        pass_count_add(table, f, &now);
        if (m->rows[first + f])
            count_add(m->rows[first + f], &now, &in->sums[first + f]);
        in->sums[first + f] = now;
        in->sure |= now.launches || now.threads;
    }
    mem_free(table);
    return r;
}

static CUresult read_parts(struct module *m, struct instance *in)
{
    CUstream stream;
    unsigned first = 0;
    CUresult r = guard.real.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (r)
        return r;
    for (unsigned i = 0; i < m->in->nparts; i++) {
        CUresult here = read_part(m, in, i, first, stream);
        r = r ? r : here;
        first += m->in->parts[i]->nfuncs;
    }
    guard.real.cuStreamDestroy_v2(stream);
    return r;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

// Records an event behind all work of the context. Without cuCtxRecordEvent it is recorded in the legacy
// stream, and misses streams that do not wait for that one.
static CUresult record(CUcontext context, CUevent event)
{
    CUresult r =
        guard.real.cuCtxRecordEvent ? guard.real.cuCtxRecordEvent(context, event) : CUDA_ERROR_NOT_SUPPORTED;
    return r ? guard.real.cuEventRecord(event, NULL) : r;
}

// Waits until the context, which is current, is idle. Returns CUDA_ERROR_NOT_READY if it is still busy after
// PATIENCE_MS.
static CUresult wait_for(CUcontext context)
{
    CUevent event;
    CUresult r = guard.real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (r)
        return r;
    r = record(context, event);
    int64_t deadline = now_ms() + PATIENCE_MS;
    struct timespec pause = {.tv_nsec = 20000};
    if (!r)
        while ((r = guard.real.cuEventQuery(event)) == CUDA_ERROR_NOT_READY && now_ms() < deadline) {
            nanosleep(&pause, NULL);
            pause.tv_nsec += pause.tv_nsec < 1000000 ? pause.tv_nsec / 2 : 0;
        }
    guard.real.cuEventDestroy_v2(event);
    return r;
}

static void note_lost(CUresult r)
{
    lock_take(&lock);
    bool again = noted;
    noted = true;
    lock_give(&lock);
    if (again)
        return;
    if (r == CUDA_ERROR_NOT_READY)
        guard_report_note("count: some kernels were still running when their counters were read");
    else
        guard_report_note("count: the counters could not be read: %s",
                          driver_result_name(r) ? driver_result_name(r) : "an unknown error");
}

static bool is_any_in(struct modules_row *all, CUcontext context)
{
    for (struct modules_row *row = all; row; row = row->more[client])
        for (const struct instance *i = module_of(row)->instances; i; i = i->next)
            if (i->context == context)
                return true;
    return false;
}

// Reads all modules of the list that are in the context, going on after failures. r: the state of the
// context; if it is CUDA_SUCCESS or CUDA_ERROR_NOT_READY the context is current. Returns the first failure.
static CUresult read_modules(struct modules_row *all, CUcontext context, CUresult r)
{
    CUresult first = CUDA_SUCCESS;
    for (struct modules_row *row = all; row; row = row->more[client])
        for (struct instance *i = module_of(row)->instances; i; i = i->next) {
            if (i->context != context)
                continue;
            CUresult here = !r || r == CUDA_ERROR_NOT_READY ? read_parts(module_of(row), i) : r;
            here = here ? here : r;
            i->seen = true;
            first = first ? first : here;
            if (here)
                mark_lost(module_of(row));
        }
    return first;
}

// Reads all modules of the list that are in the context, which need not be current.
static void read_context(struct modules_row *all, CUcontext context)
{
    if (!is_any_in(all, context))
        return;
    // Our calls must not break a capture of another thread. The program's own mode for this thread is
    // restored below.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool exchanged = !guard.real.cuThreadExchangeStreamCaptureMode(&mode);
    CUresult r = guard.real.cuCtxPushCurrent_v2(context);
    bool pushed = !r;
    r = read_modules(all, context, pushed ? wait_for(context) : r);
    if (pushed)
        guard.real.cuCtxPopCurrent_v2(&context);
    if (exchanged)
        guard.real.cuThreadExchangeStreamCaptureMode(&mode);
    if (r)
        note_lost(r);
}

// Reads each context that one of the modules is in, once.
static void read_all(struct modules_row *all)
{
    for (struct modules_row *row = all; row; row = row->more[client])
        for (struct instance *i = module_of(row)->instances; i; i = i->next)
            i->seen = false;
    for (struct modules_row *row = all; row; row = row->more[client])
        for (struct instance *i = module_of(row)->instances; i; i = i->next)
            if (!i->seen)
                read_context(all, i->context);
}

// Adds the active primary contexts: they may become active again without a call that retains them.
static void add_primaries(struct module *m)
{
    int n = 0;
    if (guard.real.cuDeviceGetCount(&n))
        return;
    for (int d = 0; d < n && d < DEVICES; d++) {
        unsigned flags;
        int active = 0;
        CUcontext context;
        if (guard.real.cuDevicePrimaryCtxGetState(d, &flags, &active) || !active ||
            guard.real.cuDevicePrimaryCtxRetain(&context, d))
            continue;
        add_instance(m, context, false);
        guard.real.cuDevicePrimaryCtxRelease_v2(d);
    }
}

// Adds all contexts to a library, which may have been loaded into any of them unnoticed, by a launch of its
// kernels.
static void add_contexts(struct module *m)
{
    CUcontext list[CONTEXT_ROWS];
    bool all;
    if (!m->in->library)
        return;
    add_primaries(m);
    unsigned n = context_list(list, &all);
    for (unsigned i = 0; i < n; i++)
        add_instance(m, list[i], false);
    if (!all)
        mark_lost(m);
}

static bool is_ours(void)
{
    return count_state.on && owner == getpid();
}

void count_read_ending(const void *handle)
{
    struct modules_row *row = is_ours() ? modules_take(client, handle) : NULL;
    if (!row)
        return;
    add_contexts(module_of(row));
    read_all(row);
    modules_give(client, row);
}

void count_read_context_ending(CUcontext context)
{
    if (!is_ours() || !context)
        return;
    struct modules_row *all = modules_take_all(client);
    bool lives = context_lives(context);
    for (struct modules_row *row = all; row; row = row->more[client])
        if (row->library && lives)
            add_instance(module_of(row), context, false);
    read_context(all, context);
    modules_give(client, all);
}

static void drop_instance(struct module *m, CUcontext context)
{
    struct instance **at = &m->instances;
    while (*at && (*at)->context != context)
        at = &(*at)->next;
    struct instance *i = *at;
    if (i) {
        *at = i->next;
        mem_free(i);
    }
}

// The modules of a destroyed context are gone with it; libraries live on.
void count_read_context_ended(CUcontext context)
{
    if (!is_ours() || !context)
        return;
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client])
        drop_instance(module_of(row), context);
    modules_give(client, all);
}

// Reads everything. The rows are not given back: whatever is unloaded from now on has been read.
static void read_at_exit(void)
{
    if (!is_ours())
        return;
    struct modules_row *all = modules_take_all(client);
    for (struct modules_row *row = all; row; row = row->more[client])
        add_contexts(module_of(row));
    read_all(all);
}

void count_read_after_fork(void)
{
    lock_after_fork(&lock);
    owner = getpid();
    noted = false;
}
