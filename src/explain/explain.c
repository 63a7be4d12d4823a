// SPDX-License-Identifier: MIT
#include "explain/explain.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "context/kernels.h"
#include "context/names.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "core/lock.h"
#include "core/slab_pool.h"
#include "explain/explain_text.h"
#include "flow/launch_bind.h"
#include "track/guard_report.h"

enum { MOST_FOUND = 4 };  // errors of one launch that are reported

static struct lock lock = LOCK_INIT(EXPLAIN);
static struct slab_pool pool = SLAB_POOL(struct explain_row);
static struct explain_row *rows;
static unsigned number;  // of the kernels' word

bool explain_start(void)
{
    int n = kernels_take_number();
    number = n < 0 ? 0 : (unsigned)n;
    return n >= 0;
}

static void forget(struct explain_row *row)
{
    row->launches = row->unevaluated = 0;
    row->times = (struct explain_times){0};
    for (uint32_t i = 0; row->ranges && i < row->ranges->proof.head->naccesses; i++)
        row->tallies[i] = (struct explain_tally){.root = PROOF_NONE};
}

// A forked child has its parent's handles, but has launched nothing yet.
void explain_after_fork(void)
{
    lock_after_fork(&lock);
    slab_pool_after_fork(&pool);
    for (struct explain_row *row = rows; row; row = row->next)
        forget(row);
}

// --- rows
// --------------------------------------------------------------------------------------------------

// Frees what was built of a row that cannot be evaluated.
static void leave_unread(struct explain_row *row)
{
    ranges_free(row->ranges);
    mem_free(row->work);
    mem_free(row->memory);
    mem_free(row->tallies);
    mem_free(row->buffers);
    row->ranges = NULL;
}

// Builds the kernel's proof and the memory that evaluating it needs, so that a launch takes none.
static void build(struct explain_row *row)
{
    struct flow flow = {.m = row->m, .f = row->f};
    int err = ranges_build(&flow, &row->ranges);
    flow_drop(&flow);
    if (err) {
        row->ranges = NULL;
        return;
    }
    const struct proof *p = &row->ranges->proof;
    row->work = mem_alloc(proof_work_size(p));
    row->memory = mem_alloc(proof_memo_size(p));
    row->tallies = mem_zalloc(p->head->naccesses + 1, sizeof *row->tallies);
    row->buffers = mem_zalloc(p->head->nroots + 1, sizeof *row->buffers);
    if (!row->work || !row->memory || !row->tallies || !row->buffers) {
        leave_unread(row);
        return;
    }
    row->memo = proof_memo_init(p, row->memory, row->work);
    forget(row);
}

// Returns the row of a kernel, by its text and its name; made if there is none. Requires the lock.
static struct explain_row *find_row(const char *kept, const struct ptx_module *m, const struct ptx_func *f)
{
    struct explain_row *row = rows;
    while (row && (row->name != kept || row->f != f))
        row = row->next;
    if (row || !(row = slab_pool_get(&pool)))
        return row;
    memset(row, 0, sizeof *row);
    row->name = kept;
    row->m = m;
    row->f = f;
    if (f)
        build(row);
    row->next = rows;
    return rows = row;
}

static void set_row(const void *handle, struct explain_row *row)
{
    struct kernel *k = row ? kernels_get(handle) : NULL;
    // Release pairs with the acquire in row_of, after the row was filled.
    if (k)
        atomic_store_explicit(&k->data[number], row, memory_order_release);
}

static struct explain_row *row_of(const void *handle)
{
    struct kernel *k = kernels_find(handle);
    return k ? atomic_load_explicit(&k->data[number], memory_order_acquire) : NULL;
}

// Sets the layout of the kernel's parameters from its PTX: drivers before CUDA 12.4 cannot be asked.
static void set_layout(const void *handle, const struct ptx_func *f)
{
    struct kernels_parameter parameters[64];
    struct kernel *k = f->nparams <= 64 ? kernels_get(handle) : NULL;
    uint32_t at = 0;
    for (uint32_t i = 0; k && i < f->nparams; i++) {
        struct launch_bind_slot s = launch_bind_slot(&f->params[i], at);
        if (s.offset > UINT16_MAX || s.size > UINT16_MAX)
            return;
        parameters[i] = (struct kernels_parameter){(uint16_t)s.offset, (uint16_t)s.size};
        at = s.offset + s.size;
    }
    if (k)
        kernels_set_layout(k, parameters, f->nparams);
}

void explain_function_found(const void *handle, const void *owner, const char *name)
{
    const char *kept = names_keep(name);
    const struct ptx_module *m = NULL;
    if (!kept)
        return;
    lock_take(&lock);
    const struct ptx_func *f = explain_text_find(owner, kept, &m);
    struct explain_row *row = find_row(kept, m, f);
    lock_give(&lock);
    set_row(handle, row);
    if (f)
        set_layout(handle, f);
}

void explain_function_of(CUfunction function, CUkernel kernel)
{
    struct explain_row *row = row_of(kernel);
    set_row(function, row);
    if (row && row->f)
        set_layout(function, row->f);
}

void explain_made(const void *handle)
{
    lock_take(&lock);
    explain_text_made(handle);
    lock_give(&lock);
}

void explain_alias(const void *library, CUmodule module)
{
    lock_take(&lock);
    if (module)
        explain_text_alias(library, module);
    lock_give(&lock);
}

void explain_gone(const void *handle)
{
    lock_take(&lock);
    explain_text_gone(handle);
    lock_give(&lock);
}

// --- buffers
// -----------------------------------------------------------------------------------------------

// Returns where the memory from b on ends: neighbouring mapped blocks count as one.
static uint64_t reach(const struct track_block *b)
{
    uint64_t to = track_end(b);
    while (b && b->facts.family == TRACK_MAPPED) {
        b = track_live(to);
        to = b && b->facts.family == TRACK_MAPPED ? track_end(b) : to;
        if (b && b->facts.family != TRACK_MAPPED)
            break;
    }
    return to;
}

// Finds the buffer that a pointer points into. Call it inside an epoch section.
static void look_up(struct explain_buffer *to, uint64_t pointer)
{
    const struct track_block *b = track_announced(pointer);
    b = b ? b : track_live(pointer);
    if (!b && (b = track_freed(pointer)))
        to->freed = true;
    if (!b)
        return;
    enum track_family family = b->facts.family;
    to->found = true;
    to->block = track_copy(b, to->freed);
    to->judged = (struct judge_buffer){
        .known = true,
        // Registered memory may be part of a larger array; when memory of a graph is valid only the
        // driver knows.
        .soft = family == TRACK_REGISTERED || family == TRACK_GRAPH,
        .size = reach(b) - b->range.base,
        .into = pointer - b->range.base,
    };
    to->shared_start = !to->judged.into && track_live(pointer - 1);
}

// Requires the lock.
static struct explain_buffer *buffer_of(struct explain_row *row, uint32_t root, const struct proof_launch *l)
{
    const struct proof_root *r = &row->ranges->proof.roots[root];
    struct explain_buffer *b = &row->buffers[root];
    uint64_t pointer = 0;
    if (b->looked_up)
        return b;
    b->looked_up = true;
    if (r->kind != PROOF_ROOT_PARAM) {
        b->judged = judge_variable(r, l->dynamic_shared);
        return b;
    }
    if (r->at <= l->params_size && l->params_size - r->at >= sizeof pointer)
        memcpy(&pointer, (const char *)l->params + r->at, sizeof pointer);
    if (pointer) {
        unsigned section = epoch_enter();
        look_up(b, pointer);
        epoch_leave(section);
    }
    return b;
}

// --- launches
// ----------------------------------------------------------------------------------------------

static struct judge_answer judge_root_of(struct explain_row *row, const struct proof_bound *bound,
                                         uint32_t root, const struct proof_launch *l,
                                         struct explain_buffer **buffer)
{
    static const struct judge_buffer none;
    *buffer = root == PROOF_NONE ? NULL : buffer_of(row, root, l);
    struct judge_answer a = judge_bound(bound, *buffer ? &(*buffer)->judged : &none);
    if (!*buffer || bound->verdict != PROOF_BOUNDED)
        return a;
    if ((*buffer)->freed)
        a.verdict = bound->exact ? JUDGE_OUTSIDE : JUDGE_MAYBE;
    // The pointer may be to the end of the buffer before.
    if (a.verdict == JUDGE_OUTSIDE && a.before && (*buffer)->shared_start)
        a.verdict = JUDGE_MAYBE;
    return a;
}

static bool is_worse(const struct judge_answer *a, const struct judge_answer *b)
{
    if (a->verdict != b->verdict)
        return a->verdict < b->verdict;
    return a->needs > b->needs || (a->needs == b->needs && a->before > b->before);
}

// Judges a bound; one from several roots by the one for which it is worst.
static struct judge_answer judge(struct explain_row *row, const struct proof_bound *bound,
                                 const struct proof_launch *l, struct explain_buffer **buffer)
{
    const struct proof *p = &row->ranges->proof;
    struct judge_answer worst = {.verdict = JUDGE_VERDICTS};
    if (bound->root == PROOF_NONE || p->roots[bound->root].kind != PROOF_ROOT_CHOICE)
        return judge_root_of(row, bound, bound->root, l, buffer);
    for (uint32_t i = 0; i < p->head->nroots; i++) {
        struct explain_buffer *b;
        if (!proof_root_may_be(p, bound->root, i))
            continue;
        struct judge_answer a = judge_root_of(row, bound, i, l, &b);
        if (worst.verdict != JUDGE_VERDICTS && !is_worse(&a, &worst))
            continue;
        worst = a;
        *buffer = b;
    }
    return worst;
}

static void add_to_tally(struct explain_tally *t, const struct proof_bound *bound,
                         const struct judge_answer *a, const struct explain_buffer *buffer)
{
    bool first = !t->launches[JUDGE_OUTSIDE] && !t->launches[JUDGE_MAYBE];
    t->launches[a->verdict]++;
    t->root = bound->root == PROOF_NONE ? t->root : bound->root;
    if (a->verdict == JUDGE_UNKNOWN)
        t->reason = bound->reason;
    if (a->verdict <= JUDGE_MAYBE && (first || is_worse(a, &t->answer))) {
        t->answer = *a;
        t->size = buffer->judged.size;
        t->freed = buffer->freed;
    }
}

// Adds an error, of each buffer the worst. Returns the new number of errors.
static unsigned add_found(uint32_t root, struct explain_found *found, unsigned n, uint32_t access,
                          const struct judge_answer *a, const struct explain_buffer *buffer)
{
    unsigned i = 0;
    while (i < n && found[i].root != root)
        i++;
    if (i == MOST_FOUND || (i < n && !is_worse(a, &found[i].answer)))
        return n;
    found[i] = (struct explain_found){access, root, *a, *buffer};
    return i == n ? n + 1 : n;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool maybe_outside(struct explain_row *row, const struct proof_bound *bounds,
                          const struct proof_launch *l)
{
    struct explain_buffer *buffer;
    bool maybe = false;
    for (uint32_t i = 0; i < row->ranges->proof.head->naccesses && !maybe; i++)
        maybe = judge(row, &bounds[i], l, &buffer).verdict == JUDGE_MAYBE;
    return maybe;
}

// Finds the bounds of a launch; those that a closed form gave are good enough if they are inside of buffers.
// Requires the lock.
static const struct proof_bound *bounds_of(struct explain_row *row, const struct proof_launch *l)
{
    const struct proof_bound *bounds = NULL;
    uint64_t start = now();
    int err = proof_memo_eval(row->memo, l, row->work, &bounds, NULL);
    uint64_t took = now() - start;
    row->unevaluated += err != 0;
    for (uint32_t i = 0; i < row->ranges->proof.head->nroots; i++)
        row->buffers[i] = (struct explain_buffer){.looked_up = false};
    if (!err && proof_memo_is_closed(row->memo) && maybe_outside(row, bounds, l)) {
        start = now();
        proof_memo_renew(row->memo, l, row->work, &bounds);
        took += now() - start;
    }
    explain_times_add(&row->times, took);
    return err ? NULL : bounds;
}

// Requires the lock. Returns how many errors were found.
static unsigned evaluate(struct explain_row *row, const struct proof_launch *l, struct explain_found *found)
{
    unsigned n = 0;
    const struct proof_bound *bounds = bounds_of(row, l);
    for (uint32_t i = 0; bounds && i < row->ranges->proof.head->naccesses; i++) {
        struct explain_buffer *buffer;
        struct judge_answer a = judge(row, &bounds[i], l, &buffer);
        add_to_tally(&row->tallies[i], &bounds[i], &a, buffer);
        if (a.verdict == JUDGE_OUTSIDE)
            n = add_found(bounds[i].root, found, n, i, &a, buffer);
    }
    return n;
}

static struct explain_row *row_of_unknown(const void *handle)
{
    const char *name = kernels_name(handle);
    const char *kept = names_keep(name ? name : "(kernels of unknown name)");
    lock_take(&lock);
    struct explain_row *row = kept ? find_row(kept, NULL, NULL) : NULL;
    lock_give(&lock);
    set_row(handle, row);
    return row;
}

void explain_launch(const struct launch_call *l)
{
    if (!l->function)
        return;
    struct explain_row *row = row_of(l->function);
    row = row ? row : row_of_unknown(l->function);
    if (!row)
        return;
    struct explain_found found[MOST_FOUND];
    unsigned n = 0;
    const void *bytes = NULL;
    size_t size = 0;
    bool known = row->ranges && launch_call_parameters(l, &bytes, &size);
    struct proof_launch launch = {
        .dynamic_shared = l->shared, .params_size = (uint32_t)size, .params = bytes};
    memcpy(launch.grid, l->grid, sizeof launch.grid);
    memcpy(launch.block, l->block, sizeof launch.block);
    lock_take(&lock);
    row->launches++;
    if (known)
        n = evaluate(row, &launch, found);
    else
        row->unevaluated++;
    lock_give(&lock);
    for (unsigned i = 0; i < n; i++)
        explain_found(row, &found[i], l->call);
}

void explain_end(void)
{
    lock_take(&lock);
    struct explain_report *r = explain_report_make(rows);
    lock_give(&lock);
    if (r)
        explain_report_send(r);
    else
        guard_report_note("explain: no memory for the table");
}
