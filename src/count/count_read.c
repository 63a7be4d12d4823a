// SPDX-License-Identifier: MIT
#include "count/count_read.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "count/count.h"
#include "context/home.h"
#include "context/green.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "context/names.h"

enum {
    BUCKETS = 256,
    GONE = 64,
    DEVICES = 64,
    PATIENCE_MS = 2000,  // for the work of a context, when it or the process ends
};

// A module's table in one context, and what it held when it was last read.
struct instance {
    struct instance *next;
    CUcontext context;
    const void *as;                 // the library as a module of the context; NULL: nobody asked
    bool sure;                      // it is there; else it may be
    bool seen;                      // by read_all
    struct pass_count_sums sums[];  // of all functions of all parts
};

struct module {
    struct module *next;
    const void *handle;
    bool library;
    struct instance *instances;
    unsigned nfuncs, nparts;
    struct count_row **rows;  // by function of all parts; may be NULL
    struct pass_result **parts;
};

// A leaf but for count.c's. Whoever reads a table takes the module out first, so that nobody frees it meanwhile and no
// lock is held while the driver is asked.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *buckets[BUCKETS];
static unsigned out;  // how many have taken some
// What was unloaded while somebody had it out: it must not come back.
static const void *gone[GONE];
static unsigned ngone;
static pid_t owner;
static bool told;

static struct module **bucket_of(const void *handle)
{
    return &buckets[(uintptr_t)handle * 0x9e3779b97f4a7c15u >> 56];
}

// Under the lock.
static void put(struct module *m)
{
    struct module **to = bucket_of(m->handle);
    m->next = *to;
    *to = m;
}

// Under the lock.
static struct module *take_locked(const void *handle)
{
    struct module **at = bucket_of(handle);
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    struct module *m = *at;
    if (m) {
        *at = m->next;
        m->next = NULL;
    }
    return m;
}

// give_back must follow.
static struct module *take(const void *handle)
{
    pthread_mutex_lock(&lock);
    out++;
    struct module *m = take_locked(handle);
    pthread_mutex_unlock(&lock);
    return m;
}

static struct module *take_all(void)
{
    struct module *all = NULL;
    pthread_mutex_lock(&lock);
    out++;
    for (unsigned i = 0; i < BUCKETS; i++)
        while (buckets[i]) {
            struct module *m = buckets[i];
            buckets[i] = m->next;
            m->next = all;
            all = m;
        }
    pthread_mutex_unlock(&lock);
    return all;
}

static void free_module(struct module *m);

// Under the lock.
static bool is_gone(const void *handle)
{
    for (unsigned i = 0; i < ngone; i++)
        if (gone[i] == handle)
            return true;
    return false;
}

static void give_back(struct module *all)
{
    pthread_mutex_lock(&lock);
    while (all) {
        struct module *m = all;
        all = m->next;
        if (is_gone(m->handle))
            free_module(m);
        else
            put(m);
    }
    if (!--out)
        ngone = 0;
    pthread_mutex_unlock(&lock);
}

static void free_parts(struct pass_result **parts, unsigned nparts)
{
    for (unsigned i = 0; i < nparts; i++)
        pass_result_free(parts[i]);
    mem_free(parts);
}

static void free_module(struct module *m)
{
    while (m->instances) {
        struct instance *i = m->instances;
        m->instances = i->next;
        mem_free(i);
    }
    free_parts(m->parts, m->nparts);
    mem_free(m->rows);
    mem_free(m);
}

// --- coming -------------------------------------------------------------------------------------------------

static void lose(const struct module *m)
{
    for (unsigned i = 0; i < m->nfuncs; i++)
        if (m->rows[i])
            count_is_lost(m->rows[i]);
}

// NULL: out of memory.
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
        lose(m);
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
    for (unsigned i = 0; i < m->nparts; i++)
        m->nfuncs += m->parts[i]->nfuncs;
    m->rows = mem_zalloc(m->nfuncs + 1, sizeof(struct count_row *));
    for (unsigned i = 0; m->rows && i < m->nparts; i++)
        for (uint32_t f = 0; f < m->parts[i]->nfuncs; f++)
            m->rows[n++] = make_row(&m->parts[i]->funcs[f]);
    return m->rows;
}

static void read_at_exit(void);

// Registered with the first module: the driver has registered its own end before, so this comes first.
static void read_before_the_driver_ends(void)
{
    static bool registered;
    pthread_mutex_lock(&lock);
    bool first = !registered;
    registered = true;
    owner = owner ? owner : getpid();
    pthread_mutex_unlock(&lock);
    if (first && atexit(read_at_exit))
        guard_report_note("what modules count is lost where they are not unloaded");
}

void count_read_add(const void *handle, bool library, struct pass_result **parts, unsigned nparts)
{
    struct module *m = count_state.on ? mem_zalloc(1, sizeof *m) : NULL;
    if (!m) {
        free_parts(parts, nparts);
        return;
    }
    *m = (struct module){.handle = handle, .library = library, .nparts = nparts, .parts = parts};
    if (!make_rows(m)) {
        free_module(m);
        return;
    }
    CUcontext context = NULL;
    if (!guard.real.cuCtxGetCurrent(&context) && context)
        add_instance(m, green_owner(context), true);
    read_before_the_driver_ends();
    pthread_mutex_lock(&lock);
    put(m);
    pthread_mutex_unlock(&lock);
}

void count_read_module(const void *library, CUmodule module)
{
    CUcontext context = NULL;
    if (!count_state.on || guard.real.cuCtxGetCurrent(&context) || !context)
        return;
    struct module *m = take(library);
    struct instance *i = m ? add_instance(m, green_owner(context), true) : NULL;
    if (i && module)
        i->as = module;
    give_back(m);
}

static bool is_known_as(const struct module *m, const void *whose)
{
    for (const struct instance *i = m->instances; i; i = i->next)
        if (i->as == whose)
            return true;
    return false;
}

// Under the lock.
static const struct module *find_owner(const void *whose)
{
    for (const struct module *m = *bucket_of(whose); m; m = m->next)
        if (m->handle == whose)
            return m;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (const struct module *m = buckets[i]; m; m = m->next)
            if (m->library && is_known_as(m, whose))
                return m;
    return NULL;
}

void count_read_found(const void *handle, const void *whose, const char *name)
{
    const char *kept = count_state.on ? names_keep(name) : NULL;
    struct count_row *row = NULL;
    if (!kept)
        return;
    pthread_mutex_lock(&lock);
    const struct module *m = find_owner(whose);
    bool hidden = !m && out;  // somebody may have it out just now
    for (unsigned i = 0; m && !row && i < m->nfuncs; i++)
        if (m->rows[i] && m->rows[i]->name == kept)
            row = m->rows[i];
    pthread_mutex_unlock(&lock);
    if (!row)
        row = hidden ? count_row_likely(kept) : count_row(kept, false);
    count_handle(handle, row);
}

// --- reading ------------------------------------------------------------------------------------------------

static CUresult find_table(const struct module *m, const struct pass_symbol *s, CUdeviceptr *at)
{
    char name[128];
    size_t size = 0;
    snprintf(name, sizeof name, STR_FMT, STR_ARG(s->name));
    CUresult r = m->library ? guard.real.cuLibraryGetGlobal(at, &size, (CUlibrary)m->handle, name)
                            : guard.real.cuModuleGetGlobal_v2(at, &size, (CUmodule)m->handle, name);
    return r ? r : size < s->bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// With the instance's context current and idle. Copies by a stream of ours: the others may be at work still.
static CUresult read_part(struct module *m, struct instance *in, unsigned part, unsigned first,
                          CUstream stream)
{
    const struct pass_result *p = m->parts[part];
    const struct pass_symbol *s = pass_symbol_of(p, "count");
    CUdeviceptr at;
    if (!s || s->bytes < (uint64_t)p->nfuncs * PASS_COUNT_ROW * 8)
        return CUDA_SUCCESS;
    CUresult r = find_table(m, s, &at);
    if (r && !in->sure)
        return CUDA_SUCCESS;  // where it is, it would be found: in a context that works
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
    for (unsigned i = 0; i < m->nparts; i++) {
        CUresult here = read_part(m, in, i, first, stream);
        r = r ? r : here;
        first += m->parts[i]->nfuncs;
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

// All work that the context has; an event that only its legacy stream records misses streams that do not wait for it.
static CUresult record(CUcontext context, CUevent event)
{
    CUresult r =
        guard.real.cuCtxRecordEvent ? guard.real.cuCtxRecordEvent(context, event) : CUDA_ERROR_NOT_SUPPORTED;
    return r ? guard.real.cuEventRecord(event, NULL) : r;
}

// Until the context, which is current, is idle or patience ends. CUDA_ERROR_NOT_READY: it is at work still.
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

static void tell_lost(CUresult r)
{
    pthread_mutex_lock(&lock);
    bool again = told;
    told = true;
    pthread_mutex_unlock(&lock);
    if (again)
        return;
    if (r == CUDA_ERROR_NOT_READY)
        guard_report_note("kernels were running still when --mode=count read what they had counted");
    else
        guard_report_note("what --mode=count counted could not be read: %s",
                          driver_result_name(r) ? driver_result_name(r) : "an unknown error");
}

static bool is_any_in(const struct module *all, CUcontext context)
{
    for (; all; all = all->next)
        for (const struct instance *i = all->instances; i; i = i->next)
            if (i->context == context)
                return true;
    return false;
}

// All modules of the list that are in the context; one that cannot be read says nothing of the next. r: how the context is;
// if it is good it is current. The first result that is not good.
static CUresult read_modules(struct module *all, CUcontext context, CUresult r)
{
    CUresult first = CUDA_SUCCESS;
    for (struct module *m = all; m; m = m->next)
        for (struct instance *i = m->instances; i; i = i->next) {
            if (i->context != context)
                continue;
            CUresult here = !r || r == CUDA_ERROR_NOT_READY ? read_parts(m, i) : r;
            here = here ? here : r;
            i->seen = true;
            first = first ? first : here;
            if (here)
                lose(m);
        }
    return first;
}

// All modules of the list that are in the context, which need not be current.
static void read_context(struct module *all, CUcontext context)
{
    if (!is_any_in(all, context))
        return;
    // Another thread's capture must not fail for what we do; see also what the program has set for this one.
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
        tell_lost(r);
}

// Each context that one of them is in, once.
static void read_all(struct module *all)
{
    for (struct module *m = all; m; m = m->next)
        for (struct instance *i = m->instances; i; i = i->next)
            i->seen = false;
    for (struct module *m = all; m; m = m->next)
        for (struct instance *i = m->instances; i; i = i->next)
            if (!i->seen)
                read_context(all, i->context);
}

// Those that come alive again without being retained.
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

// A library may have come into any context without our notice: by a launch of its kernels there.
static void add_contexts(struct module *m)
{
    CUcontext list[HOME_ROWS];
    bool all;
    if (!m->library)
        return;
    add_primaries(m);
    unsigned n = home_list(list, &all);
    for (unsigned i = 0; i < n; i++)
        add_instance(m, list[i], false);
    if (!all)
        lose(m);
}

static bool is_ours(void)
{
    return count_state.on && owner == getpid();
}

void count_read_ending(const void *handle)
{
    if (!is_ours())
        return;
    struct module *m = take(handle);
    if (m) {
        add_contexts(m);
        read_all(m);
    }
    give_back(m);
}

void count_read_ended(const void *handle)
{
    if (!count_state.on)
        return;
    pthread_mutex_lock(&lock);
    struct module *m = take_locked(handle);
    if (!m && out && ngone < GONE)
        gone[ngone++] = handle;
    pthread_mutex_unlock(&lock);
    if (m)
        free_module(m);
}

void count_read_context_ending(CUcontext context)
{
    if (!is_ours() || !context)
        return;
    struct module *all = take_all();
    bool lives = home_lives(context);
    for (struct module *m = all; m; m = m->next)
        if (m->library && lives)
            add_instance(m, context, false);
    read_context(all, context);
    give_back(all);
}

// Its modules went with it; libraries live on.
void count_read_context_ended(CUcontext context)
{
    if (!is_ours() || !context)
        return;
    struct module *all = take_all(), *kept = NULL;
    while (all) {
        struct module *m = all;
        all = m->next;
        bool has = false;
        for (struct instance **i = &m->instances; *i;) {
            struct instance *in = *i;
            if (in->context != context) {
                i = &in->next;
                continue;
            }
            has = true;
            *i = in->next;
            mem_free(in);
        }
        if (has && !m->library) {
            free_module(m);
            continue;
        }
        m->next = kept;
        kept = m;
    }
    give_back(kept);
}

// The modules stay out: whatever is unloaded from now on was read.
static void read_at_exit(void)
{
    if (!is_ours())
        return;
    struct module *all = take_all();
    for (struct module *m = all; m; m = m->next)
        add_contexts(m);
    read_all(all);
}

// The parent's modules are not the child's: no driver works across a fork.
void count_read_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    for (unsigned i = 0; i < BUCKETS; i++)
        while (buckets[i]) {
            struct module *m = buckets[i];
            buckets[i] = m->next;
            free_module(m);
        }
    out = ngone = 0;
    owner = getpid();
    told = false;
}
