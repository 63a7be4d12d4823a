// SPDX-License-Identifier: MIT
#include "check/check_launch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check/check_apart.h"
#include "check/check_args.h"
#include "check/check_graph.h"
#include "check/check_host.h"
#include "check/check_kernel.h"
#include "prove/check_prove.h"
#include "check/check_race.h"
#include "check/check_tensor.h"
#include "check/check_unchecked.h"
#include "context/kernels.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "core/slab_pool.h"
#include "kcheck/kcheck.h"
#include "kwatch/kheap_host.h"
#include "launch/launch_call.h"
#include "launch/launch_memo.h"
#include "track/guard_report.h"
#include "track/stack.h"
#include "track/track.h"

enum {
    STACKS = 4096,        // launches whose stacks are kept; a power of two
    SAVED = 1024,         // and of these whose parameters are
    CERTAIN = 256,        // accesses that are known to be wrong
    MOST_THREADS = 1024,  // of a block, on any device
    NAME = 4096,          // bytes of a kernel's name, with the prefix
};

check_launch_foretell_fn *check_launch_foretells;

static unsigned data_number;
static struct slab_pool pool = SLAB_POOL(struct check_kernel);

static uint64_t summarised;  // launches of all kinds that are in GUARD_CHECK_LAUNCHES
static _Atomic uint64_t launches;
// Relaxed, both: a report compares the number, and what it shows is a hint.
static struct {
    _Atomic uint64_t number;
    _Atomic uint32_t stack;
    _Atomic enum driver_id call;
    _Atomic(const void *) function;
    // Of a launch that was proved and checked all the same.
    _Atomic(const struct check_prove *) proof;
    _Atomic enum check_proved proved;
    _Atomic uint64_t frees;
} stacks[STACKS];

// Release and acquire: who finds the number before and after it has copied the rest has the rest of that
// launch, unless two launches took the place at once; whoever uses it compares what comes out.
static struct {
    _Atomic uint64_t number;
    struct check_launch_saved launch;
} saved[SAVED];

int check_launch_start(void)
{
    int number = kernels_take_number();
    data_number = number < 0 ? 0 : (unsigned)number;
    return number < 0 ? -ENOMEM : 0;
}

// --- kernels -----------------------------------------------------------------------------------------------

const struct check_kernel *check_kernel_of(const void *handle)
{
    struct kernel *k = handle ? kernels_find(handle) : NULL;
    // Acquire: pairs with the release in keep.
    return k ? atomic_load_explicit(&k->data[data_number], memory_order_acquire) : NULL;
}

static unsigned most_threads(const void *variant, enum kernels_kind kind)
{
    const struct driver *d = &guard.real;
    const CUfunction_attribute what = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    CUdevice device;
    int n = 0;
    if (kind == KERNELS_FUNCTION)
        return d->cuFuncGetAttribute && !d->cuFuncGetAttribute(&n, what, (CUfunction)variant) ? (unsigned)n
                                                                                              : 0;
    return d->cuKernelGetAttribute && d->cuCtxGetDevice && !d->cuCtxGetDevice(&device) &&
                   !d->cuKernelGetAttribute(&n, what, (CUkernel)variant, device)
               ? (unsigned)n
               : 0;
}

static struct check_variant variant_of(const void *handle, enum kernels_kind kind, const void *owner,
                                       struct kernel *stands_for)
{
    if (!handle)
        return (struct check_variant){NULL, 0};
    kernels_found(handle, kind, owner, NULL);
    struct kernel *instead = kernels_get(handle);
    if (instead)
        kernels_stands_for(instead, stands_for);
    return (struct check_variant){handle, most_threads(handle, kind)};
}

static void keep(const void *handle, enum kernels_kind kind, const void *owner,
                 const struct check_kernel *like)
{
    const struct pass_check_kernel *checks = like->checks;
    struct kernel *k = kernels_get(handle);
    struct check_kernel *c = k ? slab_pool_get(&pool) : NULL;
    struct kernels_parameter layout[KERNELS_PARAMETERS];
    if (!c)
        return;
    *c = *like;
    c->full = variant_of(like->full.handle, kind, owner, k);
    c->rest = variant_of(like->rest.handle, kind, owner, k);
    c->prove = check_prove_found(checks);
    c->idle = c->prove && check_prove_is_idle(c->prove);
    for (uint32_t i = 0; i < checks->nparams && i < KERNELS_PARAMETERS; i++)
        layout[i] =
            (struct kernels_parameter){(uint16_t)checks->params[i].offset, (uint16_t)checks->params[i].size};
    if (checks->nparams <= KERNELS_PARAMETERS)
        kernels_set_layout(k, layout, checks->nparams);
    // Release: pairs with the acquire in kernel_of.
    atomic_store_explicit(&k->data[data_number], c, memory_order_release);
}

const struct check_kernel *check_kernel_set(const void *handle, const struct check_kernel *like)
{
    const struct kernel *k = kernels_find(handle);
    if (k)
        keep(handle, atomic_load_explicit(&k->kind, memory_order_acquire),
             atomic_load_explicit(&k->owner, memory_order_acquire), like);
    return check_kernel_of(handle);
}

// Returns NULL if there is no such kernel.
static const void *find_variant(const void *owner, enum kernels_kind kind, const char *prefix,
                                const char *name)
{
    char text[NAME];
    void *variant = NULL;
    if (snprintf(text, sizeof text, "%s%s", prefix, name) >= (int)sizeof text)
        return NULL;
    CUresult r = kind == KERNELS_KERNEL
                     ? guard.real.cuLibraryGetKernel((CUkernel *)&variant, (CUlibrary)owner, text)
                     : guard.real.cuModuleGetFunction((CUfunction *)&variant, (CUmodule)owner, text);
    return r ? NULL : variant;
}

void check_launch_found(const void *handle, const void *owner, const char *name)
{
    const struct kernel *k = kernels_find(handle);
    const struct pass_check_kernel *checks =
        k && name && !check_kernel_of(handle) ? check_host_kernel(owner, name) : NULL;
    if (!checks)
        return;
    enum kernels_kind kind = atomic_load_explicit(&k->kind, memory_order_acquire);
    struct check_kernel c = {.checks = checks};
    if (check_apart_has(owner))
        c.apart = owner;
    else
        c.full.handle = find_variant(owner, kind, KCHECK_PREFIX, name);
    if (c.full.handle && pass_check_has_rest(checks->proved))
        c.rest.handle = find_variant(owner, kind, KCHECK_REST_PREFIX, name);
    if (c.full.handle || c.apart)
        keep(handle, kind, owner, &c);
}

void check_launch_function_of(CUfunction function, CUkernel kernel)
{
    const struct check_kernel *c = check_kernel_of(kernel);
    CUfunction full = NULL, rest = NULL;
    if (!c || check_kernel_of(function))
        return;
    if (!c->apart && guard.real.cuKernelGetFunction(&full, (CUkernel)c->full.handle))
        return;
    if (!c->apart && c->rest.handle && guard.real.cuKernelGetFunction(&rest, (CUkernel)c->rest.handle))
        rest = NULL;
    const struct kernel *k = kernels_find(kernel);
    const struct check_kernel like = {
        .full = {full, 0}, .rest = {rest, 0}, .apart = c->apart, .of = kernel, .checks = c->checks};
    keep(function, KERNELS_FUNCTION, k ? atomic_load_explicit(&k->owner, memory_order_acquire) : NULL, &like);
}

// A kernel of a library and its function in a context are one kernel for the driver: what is set in one holds
// for the other, so each gets the variants that the other has. Returns what is known of `handle` then.
static const struct check_kernel *share_variants(const void *handle, const struct check_kernel *c,
                                                 const struct check_kernel *other)
{
    if (other && c->apart && other->full.handle)
        c = check_apart_want(handle, c, false);
    if (other && c->apart && other->rest.handle)
        c = check_apart_want(handle, c, true);
    return c;
}

const void *check_launch_variant(const void *handle, unsigned n)
{
    const struct check_kernel *c = check_kernel_of(handle);
    if (c && c->of && !n)
        c = share_variants(handle, c, check_kernel_of(c->of));
    // A kernel that is always checked will need its variant.
    if (c && !c->full.handle && !n && !pass_check_may_be_bare(c->checks->proved))
        c = check_apart_want(handle, c, pass_check_has_rest(c->checks->proved));
    const void *variants[] = {c ? c->full.handle : NULL, c ? c->rest.handle : NULL};
    for (unsigned i = 0; i < 2; i++)
        if (variants[i] && !n--)
            return variants[i];
    return NULL;
}

// --- launches ----------------------------------------------------------------------------------------------

static uint64_t note_launch(enum driver_id call, const void *function, const struct check_prove *proof,
                            enum check_proved proved)
{
    uint64_t number = atomic_fetch_add_explicit(&launches, 1, memory_order_relaxed) + 1;
    // The rows of the next launch may have left the processor's caches since they were written last.
    __builtin_prefetch(&stacks[(number + 1) % STACKS], 1);
    __builtin_prefetch(&saved[(number + 1) % SAVED], 1);
    __builtin_prefetch(&saved[(number + 1) % SAVED].launch.bytes, 1);
    uint32_t stack = stack_capture(NULL, (unsigned)guard.options.stack_depth);
    atomic_store_explicit(&stacks[number % STACKS].stack, stack, memory_order_relaxed);
    atomic_store_explicit(&stacks[number % STACKS].call, call, memory_order_relaxed);
    atomic_store_explicit(&stacks[number % STACKS].function, function, memory_order_relaxed);
    atomic_store_explicit(&stacks[number % STACKS].proof, proof, memory_order_relaxed);
    atomic_store_explicit(&stacks[number % STACKS].proved, proved, memory_order_relaxed);
    atomic_store_explicit(&stacks[number % STACKS].frees, track_frees(), memory_order_relaxed);
    atomic_store_explicit(&stacks[number % STACKS].number, number, memory_order_relaxed);
    return number;
}

static void save(uint64_t number, const struct launch_call *l, const void *bytes, size_t size)
{
    struct check_launch_saved *to = &saved[number % SAVED].launch;
    atomic_store_explicit(&saved[number % SAVED].number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    if (size > sizeof to->bytes)
        return;
    memcpy(to->grid, l->grid, sizeof to->grid);
    memcpy(to->block, l->block, sizeof to->block);
    to->shared = l->shared;
    to->size = (uint32_t)size;
    if (size)
        memcpy(to->bytes, bytes, size);
    atomic_store_explicit(&saved[number % SAVED].number, number, memory_order_release);
}

bool check_launch_saved(uint64_t number, struct check_launch_saved *out)
{
    bool known =
        number && atomic_load_explicit(&saved[number % SAVED].number, memory_order_acquire) == number;
    if (known)
        *out = saved[number % SAVED].launch;
    atomic_thread_fence(memory_order_acquire);
    return known && atomic_load_explicit(&saved[number % SAVED].number, memory_order_relaxed) == number &&
           out->size <= sizeof out->bytes;
}

// What is certain to be wrong in a launch, for the report of it. Relaxed, all: as in `stacks`.
static struct {
    _Atomic uint64_t number, before, needs, size;
    _Atomic uint32_t site;
} foreseen[CERTAIN];
static _Atomic uint32_t foreseen_next;

static void note_certain(uint64_t number, const struct check_certain *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (!c->at[i].needs && !c->at[i].before)
            continue;
        uint32_t to = atomic_fetch_add_explicit(&foreseen_next, 1, memory_order_relaxed) % CERTAIN;
        atomic_store_explicit(&foreseen[to].number, 0, memory_order_relaxed);
        atomic_store_explicit(&foreseen[to].site, c->at[i].site, memory_order_relaxed);
        atomic_store_explicit(&foreseen[to].before, c->at[i].before, memory_order_relaxed);
        atomic_store_explicit(&foreseen[to].needs, c->at[i].needs, memory_order_relaxed);
        atomic_store_explicit(&foreseen[to].size, c->at[i].size, memory_order_relaxed);
        atomic_store_explicit(&foreseen[to].number, number, memory_order_relaxed);
    }
}

bool check_launch_was_certain(uint64_t number, uint32_t site, struct check_certain *out)
{
    out->n = 0;
    for (uint32_t i = 0; i < CERTAIN && number && !out->n; i++) {
        if (atomic_load_explicit(&foreseen[i].number, memory_order_relaxed) != number ||
            atomic_load_explicit(&foreseen[i].site, memory_order_relaxed) != site)
            continue;
        out->n = 1;
        out->at[0].site = site;
        out->at[0].before = atomic_load_explicit(&foreseen[i].before, memory_order_relaxed);
        out->at[0].needs = atomic_load_explicit(&foreseen[i].needs, memory_order_relaxed);
        out->at[0].size = atomic_load_explicit(&foreseen[i].size, memory_order_relaxed);
    }
    return out->n;
}

static bool is_kept(uint64_t number)
{
    return number && atomic_load_explicit(&stacks[number % STACKS].number, memory_order_relaxed) == number;
}

const char *check_launch_kernel(uint64_t number)
{
    return is_kept(number)
               ? kernels_name(atomic_load_explicit(&stacks[number % STACKS].function, memory_order_relaxed))
               : NULL;
}

uint32_t check_launch_stack(uint64_t number, enum driver_id *call)
{
    bool known = is_kept(number);
    if (known)
        *call = atomic_load_explicit(&stacks[number % STACKS].call, memory_order_relaxed);
    return known ? atomic_load_explicit(&stacks[number % STACKS].stack, memory_order_relaxed) : 0;
}

uint64_t check_launch_frees(uint64_t number)
{
    return is_kept(number) ? atomic_load_explicit(&stacks[number % STACKS].frees, memory_order_relaxed)
                           : UINT64_MAX;
}

void check_launch_set_proved(uint64_t number, const struct check_prove *proof, enum check_proved proved)
{
    if (!is_kept(number))
        return;
    atomic_store_explicit(&stacks[number % STACKS].proof, proof, memory_order_relaxed);
    atomic_store_explicit(&stacks[number % STACKS].proved, proved, memory_order_relaxed);
}

bool check_launch_was_proved(uint64_t number, uint32_t site)
{
    const struct check_prove *proof =
        is_kept(number) ? atomic_load_explicit(&stacks[number % STACKS].proof, memory_order_relaxed) : NULL;
    return proof &&
           check_prove_says(
               proof, atomic_load_explicit(&stacks[number % STACKS].proved, memory_order_relaxed), site);
}

// What is known of the pointer that was looked up last: most kernels have several pairs for one.
struct looked_up {
    uint64_t pointer;
    const struct track_block *block;  // NULL: its bounds are not known
};

// Returns whether all of a block may be accessed. When memory of a graph is valid is unknown; what a pool has
// not announced may be accessed, but not if there is a shadow.
static bool is_valid(const struct track_block *b)
{
    bool pooled = check_host_shadow && atomic_load_explicit(&b->pooled, memory_order_relaxed);
    return b->facts.family != TRACK_GRAPH && !pooled;
}

// Returns the bounds of the block that a pointer is in. Call it inside an epoch section. What lies in the
// heap of malloc in kernels is looked up by the kernel, which needs the pointer for that also where several
// meet.
static struct kcheck_pair pair_of(uint64_t pointer, uint64_t span, uint64_t heap, uint64_t heap_bytes,
                                  struct looked_up *last)
{
    if (!pointer)
        return (struct kcheck_pair){0, 0};
    if (heap && pointer - heap < heap_bytes)
        return (struct kcheck_pair){pointer, 0};
    if (pointer != last->pointer) {
        const struct track_block *b = track_announced(pointer);
        b = b ? b : track_live(pointer);
        *last = (struct looked_up){pointer, b && is_valid(b) ? b : NULL};
    }
    if (!last->block)
        return (struct kcheck_pair){0, 0};
    return kcheck_pair(last->block->range.base, last->block->range.size, span);
}

// Fills the pairs of a tensor map.
static void fill_map(const char *bytes, size_t size, uint64_t offset, struct kcheck_pair *pairs)
{
    struct kcheck_map map = {.address = 0};
    if (size >= PASS_CHECK_MAP_BYTES && offset <= size - PASS_CHECK_MAP_BYTES)
        check_tensor_fill(bytes + offset, &map);
    memcpy(pairs, &map, sizeof map);
}

bool check_kernel_pairs(const struct pass_check_variant *v, const char *bytes, size_t size,
                        struct kcheck_pair *pairs)
{
    uint64_t heap_bytes = 0, heap = check_host_heap(&heap_bytes);
    bool lasts = !heap;
    struct looked_up last = {0, NULL};
    unsigned section = epoch_enter();
    for (uint32_t i = 0; i < v->npairs; i++) {
        uint64_t pointer = 0, offset = v->pairs[i].offset;
        if (v->pairs[i].span == PASS_CHECK_MAP && v->npairs - i >= KCHECK_MAP_PAIRS) {
            fill_map(bytes, size, offset, &pairs[i]);
            lasts = false;
            i += KCHECK_MAP_PAIRS - 1;
            continue;
        }
        if (size >= sizeof pointer && offset <= size - sizeof pointer)
            memcpy(&pointer, bytes + offset, sizeof pointer);
        // An access that needs more alignment than the pointer has is judged by the kernel.
        bool aligned = !(pointer & (v->pairs[i].align - 1));
        pairs[i] = aligned ? pair_of(pointer, v->pairs[i].span, heap, heap_bytes, &last)
                           : (struct kcheck_pair){0, 0};
        pairs[i] = kcheck_placed(pairs[i], pointer, v->pairs[i].scale, v->pairs[i].is_signed, v->pairs[i].at);
    }
    epoch_leave(section);
    return lasts;
}

// Returns whether a block of the launch is not larger than those that the variant can have.
static bool fits_block(const struct launch_call *l, const struct check_variant *v)
{
    return !v->most_threads || (uint64_t)l->block[0] * l->block[1] * l->block[2] <= v->most_threads;
}

bool check_kernel_fits(const struct launch_call *l, const struct check_variant *v, uint32_t npairs)
{
    return npairs <= CHECK_KERNEL_PAIRS && fits_block(l, v) &&
           (!launch_call_is_cooperative(l) || launch_call_fits_together(l, v->handle));
}

// A kernel without a variant runs as it is.
static void launch_bare(const struct launch_call *l)
{
    guard_count(GUARD_CHECK_BARE);
    check_unchecked_count(kernels_name(l->function));
    check_args_look(l);
}

// Says why a cooperative launch gets no variant, if it is that the blocks have to run at once and the driver
// would take the program's own kernel.
static void note_scattered(const struct launch_call *l)
{
    static _Atomic bool noted;
    const struct check_kernel *k = check_kernel_of(l->function);
    const void *variant = k ? k->full.handle : NULL;
    const char *name = kernels_name(l->function);
    if (!variant || !launch_call_is_cooperative(l) || launch_call_fits_together(l, variant) ||
        !launch_call_fits_together(l, l->function))
        return;
    // Relaxed: the note itself is all that is shared.
    if (!atomic_exchange_explicit(&noted, true, memory_order_relaxed))
        guard_report_note(
            "check: the blocks of a cooperative launch of kernel %s cannot all run at once with "
            "checks, which need more registers: it runs unchecked, and the summary counts others",
            name ? name : "(no name)");
}

// A kernel whose variant cannot be launched runs as it is too.
static void launch_unfit(const struct launch_call *l)
{
    guard_count(GUARD_CHECK_UNFIT);
    check_unchecked_count(kernels_name(l->function));
    note_scattered(l);
}

// Returns whether the kernel becomes a node of a graph, which may run when other buffers are there. A node
// that check_graph.h keeps up to date is set as a kernel is launched.
static bool is_deferred(const struct launch_call *l, const struct check_kernel *c)
{
    if (!l->node)
        return launch_call_is_captured(l);
    return !l->node->exec || !check_kernel_fits(l, &c->full, c->checks->full.npairs) ||
           !check_graph_keeps(l->node->exec, l->node->node);
}

// A launch that is being decided.
struct launching {
    const struct launch_call *l;
    const struct check_kernel *kernel;
    const void *bytes;
    size_t size;
    bool deferred;
    enum check_proved proved;
    struct check_certain certain;
    uint64_t number;  // of the launch, as note_launch gave it; 0: none yet
    // What is remembered of an equal launch, or will be of this one. The first word of the answer is
    // `proved`, with PAIRS_OF_FULL or PAIRS_OF_REST if pairs of that variant follow.
    struct launch_memo_key key;
    bool known;  // of an equal launch
    uint32_t words;
    uint64_t answer[LAUNCH_MEMO_ANSWER];
};
enum { PROVED = 15, PAIRS_OF_FULL = 16, PAIRS_OF_REST = 32 };

// Finds the bounds of the buffers, or remembers them.
static void find_pairs(struct launching *w, const struct pass_check_variant *about, bool rest,
                       struct kcheck_pair *pairs)
{
    uint64_t of = rest ? PAIRS_OF_REST : PAIRS_OF_FULL;
    uint32_t words = 1 + about->npairs * (uint32_t)(sizeof *pairs / sizeof *w->answer);
    bool remembers = words > 1 && words <= LAUNCH_MEMO_ANSWER;
    if (w->known && remembers && w->words == words && w->answer[0] & of && !kheap_host_any()) {
        memcpy(pairs, &w->answer[1], about->npairs * sizeof *pairs);
        return;
    }
    bool lasts = check_kernel_pairs(about, w->bytes, w->size, pairs);
    if (w->known || !w->words || !remembers || !lasts)
        return;
    w->answer[0] = (uint64_t)w->proved | of;
    memcpy(&w->answer[1], pairs, about->npairs * sizeof *pairs);
    w->words = words;
}

// Returns what is known of the kernel after the variant was made, if it is one that is made when wanted.
static const struct check_kernel *with_variant(const struct launching *w, bool rest)
{
    const struct check_kernel *k = check_apart_want(w->l->function, w->kernel, rest);
    if (launch_call_is_cooperative(w->l))
        k = check_apart_want_together(w->l, k, rest);
    const struct check_kernel *of = k->of && k != w->kernel ? check_kernel_of(k->of) : NULL;
    if (of)
        share_variants(k->of, of, k);
    return k;
}

// Launches a variant in place of the kernel, by the buffers' bounds. Returns false if it does not fit.
static bool launch_variant(struct launching *w, bool rest)
{
    const struct check_kernel *k = w->kernel = with_variant(w, rest);
    const struct check_variant *v = rest ? &k->rest : &k->full;
    const struct pass_check_variant *about = rest ? &k->checks->rest : &k->checks->full;
    struct check_hidden hidden;
    if (!v->handle || !check_kernel_fits(w->l, v, about->npairs))
        return false;
    // Another thread may have made the variant since, in another context, where its variables are set.
    if (check_host_shadow && k->apart && !check_host_launch())
        return false;
    // What the rest variant does not check cannot be reported.
    uint64_t number =
        note_launch(w->l->call, w->l->function, k->prove, rest ? CHECK_PROVED_NOTHING : w->proved);
    w->number = number;
    hidden.head = (struct kcheck_hidden){number, 0};
    const struct kernel *own = w->deferred && !w->l->node ? kernels_find(w->l->function) : NULL;
    if (own && atomic_load_explicit(&own->kind, memory_order_acquire) == KERNELS_KERNEL)
        check_graph_captured(w->l->function);
    if (w->deferred) {
        memset(hidden.pairs, 0, about->npairs * sizeof *hidden.pairs);
    } else {
        find_pairs(w, about, rest, hidden.pairs);
        save(number, w->l, w->bytes, w->size);
    }
    size_t all = KCHECK_HIDDEN + about->npairs * sizeof *hidden.pairs;
    assert(all == about->hidden_bytes);
    return launch_call_append(w->l, &hidden, all, 16) && launch_call_replace(w->l, v->handle);
}

static bool can_prove(const struct check_kernel *k)
{
    return guard.options.proofs != OPTION_PROOFS_OFF && k->prove;
}

enum check_proved check_kernel_proved(const struct launch_call *l, const struct check_kernel *k,
                                      const void *bytes, size_t size, struct check_certain *certain,
                                      bool *lasts)
{
    return can_prove(k) ? check_prove_holds(k->prove, l, bytes, size, certain, lasts) : CHECK_PROVED_NOTHING;
}

// Finds out what is proved of a launch, or remembers it. The version comes first: what changes from here on
// makes what is kept of this launch outdated.
static void prove(struct launching *w)
{
    uint64_t version = track_changes();
    bool lasts;
    if (!can_prove(w->kernel))  // its buffers are found as fast as they are remembered
        return;
    launch_memo_ask(&w->key, w->kernel, version, w->l, w->bytes, w->size);
    w->words = launch_memo_find(&w->key, w->answer);
    w->known = w->words;
    if (w->known) {
        w->proved = (enum check_proved)(w->answer[0] & PROVED);
        if (w->proved)
            check_prove_again(w->kernel->prove, w->l);
        return;
    }
    w->proved = check_kernel_proved(w->l, w->kernel, w->bytes, w->size, &w->certain, &lasts);
    w->answer[0] = w->proved;
    // A launch that is certain to go wrong is reported each time.
    w->words = lasts && !w->certain.n;
}

// Keeps what was found out about a launch for those that are equal.
static void keep_found(const struct launching *w)
{
    if (!w->known && w->words)
        launch_memo_keep(&w->key, w->answer, w->words);
}

// Launches a variant and counts that, first: an atomic operation waits for all stores before it, and most are
// made for the variant's parameters.
static bool launch_counted(struct launching *w, bool rest, enum guard_count as)
{
    guard_count(as);
    if (launch_variant(w, rest))
        return true;
    guard_add(as, -UINT64_C(1));
    return false;
}

// Launches without the checks that a proof spares, if it can.
static bool launch_proved(struct launching *w)
{
    if (!w->proved || guard.options.proofs == OPTION_PROOFS_CHECK)
        return false;
    if (w->proved == CHECK_PROVED_ALL) {
        guard_count(GUARD_CHECK_PROVED);
        return true;
    }
    return launch_counted(w, true, GUARD_CHECK_PROVED_PART);
}

// Launches with all checks. Returns false if it cannot.
static bool launch_checked(struct launching *w)
{
    enum guard_count as = !w->proved                                    ? GUARD_CHECK_UNPROVED
                          : guard.options.proofs == OPTION_PROOFS_CHECK ? GUARD_CHECK_PROVED_AGAIN
                                                                        : GUARD_CHECK_LAUNCHES;
    return launch_counted(w, false, as);
}

// Reports what is certain to go wrong, also if the kernel runs unchecked.
static void foretell(struct launching *w)
{
    if (!w->number) {
        w->number = note_launch(w->l->call, w->l->function, NULL, CHECK_PROVED_NOTHING);
        save(w->number, w->l, w->bytes, w->size);
    }
    note_certain(w->number, &w->certain);
    if (!w->l->node && check_launch_foretells)  // a node runs later, with other buffers perhaps
        check_launch_foretells(w->l, w->kernel, &w->certain, w->number, w->bytes, w->size);
}

// Returns whether blocks are too large for any device: the driver refuses the launch.
static bool is_refused(const struct launch_call *l)
{
    return (uint64_t)l->block[0] * l->block[1] * l->block[2] > MOST_THREADS;
}

void check_launch(const struct launch_call *l)
{
    struct launching w;
    if (!l->function) {
        check_race_launch(l, NULL, NULL, 0);
        check_graph_launch(l->graph);
        return;
    }
    w.l = l;
    w.kernel = check_kernel_of(l->function);
    if (!w.kernel) {
        check_race_launch(l, NULL, NULL, 0);
        launch_bare(l);
        return;
    }
    if (is_refused(l))
        return;
    if (w.kernel->idle && !l->node && guard.options.proofs == OPTION_PROOFS_ON && !check_race_is_on()) {
        guard_count(GUARD_CHECK_PROVED);
        return;
    }
    if (!check_host_launch() || !launch_call_parameters(l, &w.bytes, &w.size)) {
        check_race_launch(l, NULL, NULL, 0);
        launch_unfit(l);
        return;
    }
    w.certain.n = 0;
    w.number = 0;
    w.deferred = is_deferred(l, w.kernel);
    w.proved = CHECK_PROVED_NOTHING;
    w.known = false;
    w.words = 0;
    if (!w.deferred)
        prove(&w);
    bool plain = w.proved == CHECK_PROVED_ALL && !w.kernel->checks->waits && !l->node;
    check_race_launch(l, plain ? w.kernel->prove : NULL, w.bytes, w.size);
    if (!launch_proved(&w) && !launch_checked(&w))
        launch_unfit(l);
    keep_found(&w);
    if (w.certain.n)
        foretell(&w);
}

// Each checked launch is counted once as it is made, as what it is.
void check_launch_summarise(void)
{
    static const enum guard_count kinds[] = {GUARD_CHECK_PROVED, GUARD_CHECK_PROVED_PART,
                                             GUARD_CHECK_PROVED_AGAIN, GUARD_CHECK_UNPROVED};
    uint64_t sum = 0;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        sum += atomic_load_explicit(&guard.counts[kinds[i]], memory_order_relaxed);
    guard_add(GUARD_CHECK_LAUNCHES, sum - summarised);
    summarised = sum;
}

// The guard's counts begin anew in the child.
void check_launch_after_fork(void)
{
    summarised = 0;
}
