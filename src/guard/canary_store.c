// SPDX-License-Identifier: MIT
#include "guard/canary_store.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "guard/canary_space.h"
#include "guard/guard.h"
#include "guard/slab_pool.h"

enum {
    UNIT = CANARY_SPACE_UNIT,
    CLASSES = 128,        // strides of slabs, in units
    LEAST_SLOTS = 8,      // of a slab of small slots
    SMALL_STRIDE = 4096,  // up to which they are small
    MOST_SLAB = 4 << 20,  // bytes
    PAGE = 4096,          // pinned memory starts at one, and so does the buffer in it
    FAR = 1024,           // in a page behind a buffer, beyond the canary that may start there
    LONE_TAIL = 256,      // bytes of canary behind a buffer that has a slab of its own
    ROW =
        UNIT + CANARY_HEAD + CANARY_TAIL_LEAST,  // more than a slab's row, which is a slot's tail and a head
};
static const uint64_t least_region = 2 << 20, most_region = 256 << 20;

_Static_assert((int)LONE_TAIL <= (int)CANARY_TAIL_MOST &&
                   (int)UNIT + CANARY_TAIL_LEAST <= (int)CANARY_TAIL_MOST,
               "tails fit");

// What a home has for us.
struct shop {
    struct canary_space space;
    struct canary_slab *open[CLASSES + 1];
    uint32_t live[CLASSES + 1];
};

static struct shop shops[HOME_CONTEXTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // a leaf but for pools and the index
static struct slab_pool slabs = SLAB_POOL(struct canary_slab);
static struct index places = INDEX_INIT;
// Regions, for whoever asks about an address.
struct ground {
    struct index_item range;
    CUcontext context;
};
static struct slab_pool grounds = SLAB_POOL(struct ground);
static struct index owned = INDEX_INIT;
static _Atomic uint64_t extra;

void canary_store_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    slab_pool_after_fork(&slabs);
    index_after_fork(&places);
    slab_pool_after_fork(&grounds);
    index_after_fork(&owned);
    canary_space_after_fork();
}

static struct shop *shop_of(const struct home *home)
{
    return &shops[home_number(home)];
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static uint64_t stride_of(uint64_t size)
{
    return round_up(size + CANARY_TAIL_LEAST + CANARY_HEAD, UNIT);
}

static bool is_lone(const struct canary_slab *s)
{
    return s->slots == 1;
}

bool canary_store_is_flat(const struct canary_slab *s, uint64_t size)
{
    return s->kind == CANARY_POOL && size % 4 == 0;
}

struct canary_seed canary_store_seed(const struct canary_place *place)
{
    return canary_store_is_flat(place->slab, place->size) ? canary_bytes_flat_seed(place->base, place->size)
                                                          : canary_bytes_seed(place->base, place->size);
}

uint32_t canary_store_tail(const struct canary_slab *s, uint64_t size)
{
    if (canary_store_is_flat(s, size))
        return CANARY_HEAD;  // alone in its slab, so that no head follows

    uint64_t room = s->stride - CANARY_HEAD - size;
    return (uint32_t)(is_lone(s) && room > LONE_TAIL ? LONE_TAIL : room);
}

// --- slabs --------------------------------------------------------------------------------------------------

static void release(struct epoch_node *node)
{
    struct canary_slab *s =
        (struct canary_slab *)((char *)node - offsetof(struct canary_slab, range.retired));
    if (s->slot != &s->one)
        munmap(s->slot, s->slots * sizeof *s->slot);
    slab_pool_put(&slabs, s);
}

static struct canary_slab *slab_new(struct home *home, enum canary_kind kind, uint32_t slots)
{
    struct canary_slab *s = slab_pool_get(&slabs);
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->kind = kind;
    s->home = home;
    s->context = atomic_load_explicit(&home->context, memory_order_relaxed);
    s->slots = slots;
    s->slot = &s->one;
    s->least = UINT64_MAX;
    s->is_ready = true;
    if (slots > 1) {
        void *p =
            mmap(NULL, slots * sizeof *s->slot, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            slab_pool_put(&slabs, s);
            return NULL;
        }
        s->slot = p;
    }
    for (uint32_t i = 0; i < slots; i++)
        s->slot[i].next = i + 1 < slots ? i + 2 : 0;
    s->free = 1;
    return s;
}

static uint64_t preamble(uint32_t slots)
{
    return slots == 1 ? UNIT : round_up(ROW, UNIT);
}

// How many slots the next slab of a stride should have: as many as there are, so that few slabs hold many buffers.
static uint32_t slots_for(const struct shop *shop, uint64_t stride)
{
    if (stride / UNIT > CLASSES)
        return 1;
    uint64_t n = shop->live[stride / UNIT], least = stride <= SMALL_STRIDE ? LEAST_SLOTS : 1;
    n = n < least ? least : n;
    return (uint32_t)(n * stride > MOST_SLAB ? MOST_SLAB / stride : n);
}

// Under the lock. NULL: no memory of the device's, or of ours.
static struct canary_slab *slab_open(struct home *home, uint64_t stride, uint32_t slots)
{
    struct shop *shop = shop_of(home);
    uint64_t bytes = preamble(slots) + slots * stride, at = canary_space_take(&shop->space, bytes);
    if (!at)
        return NULL;
    struct canary_slab *s = slab_new(home, CANARY_OURS, slots);
    if (!s)
        goto give_back;
    s->range.base = at;
    s->range.size = bytes;
    s->base = at + preamble(slots);
    s->stride = stride;
    if (index_insert(&places, &s->range)) {
        release(&s->range.retired);
        goto give_back;
    }
    if (slots > 1) {
        s->open = true;
        s->next = shop->open[stride / UNIT];
        shop->open[stride / UNIT] = s;
    }
    return s;
give_back:
    canary_space_give(&shop->space, at, bytes);
    return NULL;
}

// Under the lock: the slab is gone for all who come later. False: no memory even for that, so it stays, empty.
static bool slab_close(struct canary_slab *s)
{
    struct shop *shop = shop_of(s->home);
    if (!s->hidden && !index_remove(&places, s->range.base))
        return false;
    if (s->open) {
        struct canary_slab **at = &shop->open[s->stride / UNIT];
        while (*at != s)
            at = &(*at)->next;
        *at = s->next;
    }
    if (s->kind == CANARY_OURS)
        canary_space_give(&shop->space, s->range.base, s->range.size);
    epoch_retire(&s->range.retired, release);
    return true;
}

static struct canary_place slot_take(struct canary_slab *s, uint64_t size)
{
    uint32_t number = s->free - 1;
    struct shop *shop = shop_of(s->home);
    s->free = s->slot[number].next;
    s->used++;
    if (!s->free && s->open) {
        // Full ones leave the list, which they can only head.
        assert(shop->open[s->stride / UNIT] == s);
        shop->open[s->stride / UNIT] = s->next;
        s->open = false;
    }
    if (s->kind == CANARY_OURS && s->stride / UNIT <= CLASSES)
        shop->live[s->stride / UNIT]++;
    // Relaxed: a scan that misses a new one misses a buffer that came after it began.
    if (number >= atomic_load_explicit(&s->high, memory_order_relaxed))
        atomic_store_explicit(&s->high, number + 1, memory_order_relaxed);
    if (size < atomic_load_explicit(&s->least, memory_order_relaxed))
        atomic_store_explicit(&s->least, size, memory_order_relaxed);
    if (size > atomic_load_explicit(&s->most, memory_order_relaxed))
        atomic_store_explicit(&s->most, size, memory_order_relaxed);
    atomic_fetch_add_explicit(&extra, s->stride - size + (is_lone(s) ? s->range.size - s->stride : 0),
                              memory_order_relaxed);
    return (struct canary_place){s, number, canary_store_base(s, number), size};
}

// --- places -------------------------------------------------------------------------------------------------

static void ground_release(struct epoch_node *node)
{
    slab_pool_put(&grounds, (char *)node - offsetof(struct ground, range.retired));
}

static int ground_add(const struct home *home, uint64_t base, uint64_t bytes)
{
    struct ground *g = slab_pool_get(&grounds);
    if (!g)
        return -ENOMEM;
    *g = (struct ground){.range = {.base = base, .size = bytes},
                         .context = atomic_load_explicit(&home->context, memory_order_relaxed)};
    int err = index_insert(&owned, &g->range);
    if (err)
        slab_pool_put(&grounds, g);
    return err;
}

static bool ground_remove(uint64_t base)
{
    struct index_item *g = index_remove(&owned, base);
    if (g)
        epoch_retire(&g->retired, ground_release);
    return g;
}

// A region, twice what there is, so that there are few; less if the driver has less.
static int get_region(struct home *home, uint64_t need)
{
    struct shop *shop = shop_of(home);
    pthread_mutex_lock(&lock);
    uint64_t bytes = shop->space.bytes;
    pthread_mutex_unlock(&lock);
    bytes = bytes < least_region ? least_region : bytes > most_region ? most_region : bytes;
    need = round_up(need, least_region);
    CUdeviceptr base = 0;
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes > need)
        r = guard.real.cuMemAlloc_v2(&base, bytes);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        bytes = need;
        r = guard.real.cuMemAlloc_v2(&base, bytes);
    }
    if (r)
        return -ENOMEM;
    if (base % UNIT || ground_add(home, base, bytes)) {
        guard.real.cuMemFree_v2(base);
        return -ENOMEM;
    }
    pthread_mutex_lock(&lock);
    int err = canary_space_add(&shop->space, base, bytes);
    pthread_mutex_unlock(&lock);
    if (err) {
        ground_remove(base);
        guard.real.cuMemFree_v2(base);
    }
    return err;
}

int canary_store_take(struct home *home, uint64_t size, struct canary_place *place)
{
    struct shop *shop = shop_of(home);
    uint64_t stride = stride_of(size);
    bool alone = false;
    for (int attempt = 0; attempt < 4; attempt++) {
        pthread_mutex_lock(&lock);
        struct canary_slab *s = stride / UNIT <= CLASSES ? shop->open[stride / UNIT] : NULL;
        uint32_t slots = alone ? 1 : slots_for(shop, stride);
        if (!s)
            s = slab_open(home, stride, slots);
        if (s)
            *place = slot_take(s, size);
        pthread_mutex_unlock(&lock);
        if (s)
            return 0;
        if (!get_region(home, preamble(slots) + slots * stride))
            continue;
        if (slots == 1)
            break;
        alone = true;  // the device is nearly full
    }
    return -ENOMEM;
}

uint64_t canary_store_far(uint64_t size)
{
    return round_up(size, PAGE) + FAR;
}

uint64_t canary_store_offset(enum canary_kind kind)
{
    return kind == CANARY_HOST || kind == CANARY_SHARED ? PAGE : UNIT;
}

uint64_t canary_store_padded(enum canary_kind kind, uint64_t size)
{
    uint64_t behind = kind == CANARY_SHARED ? round_up(size, PAGE) + PAGE : stride_of(size);
    return canary_store_offset(kind) + behind;
}

int canary_store_adopt(struct home *home, enum canary_kind kind, uint64_t real, uint64_t size, CUevent ready,
                       struct canary_place *place)
{
    struct canary_slab *s = slab_new(home, kind, 1);
    if (!s)
        return -ENOMEM;
    s->range.base = real;
    s->range.size = canary_store_padded(kind, size);
    s->base = real + canary_store_offset(kind);
    s->stride = stride_of(size);
    s->ready = ready;
    s->is_ready = !ready;
    if (index_insert(&places, &s->range)) {
        release(&s->range.retired);
        return -ENOMEM;
    }
    pthread_mutex_lock(&lock);
    *place = slot_take(s, size);
    pthread_mutex_unlock(&lock);
    return 0;
}

void canary_store_publish(const struct canary_place *place, uint64_t scan)
{
    struct canary_slot *t = &place->slab->slot[place->number];
    struct canary_seed seed = canary_store_seed(place);
    uint32_t turn = atomic_load_explicit(&t->turn, memory_order_relaxed);
    atomic_store_explicit(&t->turn, turn + 1, memory_order_relaxed);
    // Pairs with the acquire fence in canary_store_read: who sees a number below sees the odd turn.
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&t->seed[0], seed.start, memory_order_relaxed);
    atomic_store_explicit(&t->seed[1], seed.step, memory_order_relaxed);
    atomic_store_explicit(&t->seed[2], seed.cover, memory_order_relaxed);
    atomic_store_explicit(&t->since, scan, memory_order_relaxed);
    atomic_store_explicit(&t->told, 0, memory_order_relaxed);
    atomic_store_explicit(&t->size, place->size, memory_order_relaxed);
    // Pairs with the acquire of turn in canary_store_read.
    atomic_store_explicit(&t->turn, turn + 2, memory_order_release);
}

bool canary_store_read(const struct canary_slab *s, uint32_t number, uint64_t scan, struct canary_buffer *b)
{
    const struct canary_slot *t = &s->slot[number];
    uint32_t turn = atomic_load_explicit(&t->turn, memory_order_acquire);
    b->size = atomic_load_explicit(&t->size, memory_order_relaxed);
    if (turn & 1 || !b->size || atomic_load_explicit(&t->since, memory_order_relaxed) >= scan)
        return false;
    b->seed.start = atomic_load_explicit(&t->seed[0], memory_order_relaxed);
    b->seed.step = atomic_load_explicit(&t->seed[1], memory_order_relaxed);
    b->seed.cover = atomic_load_explicit(&t->seed[2], memory_order_relaxed);
    b->told = atomic_load_explicit(&t->told, memory_order_relaxed);
    // Pairs with the release fence in canary_store_publish.
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&t->turn, memory_order_relaxed) == turn;
}

bool canary_store_tell(struct canary_slab *s, uint32_t number, uint32_t sides)
{
    // Relaxed: of two that look at once, one is first.
    return sides & ~atomic_fetch_or_explicit(&s->slot[number].told, sides, memory_order_relaxed);
}

uint32_t canary_store_told(const struct canary_slab *s, uint32_t number)
{
    return atomic_load_explicit(&s->slot[number].told, memory_order_relaxed);
}

struct canary_slab *canary_store_find(uint64_t address)
{
    return (struct canary_slab *)index_find(&places, address);
}

bool canary_store_owns(uint64_t address)
{
    return index_find(&owned, address);
}

int canary_store_each(int (*f)(struct index_item *, void *), void *context)
{
    return index_each(&places, f, context);
}

size_t canary_store_slabs(void)
{
    return index_count(&places);
}

bool canary_store_withdraw(uint64_t pointer, struct canary_place *place)
{
    unsigned section = epoch_enter();
    struct canary_slab *s = canary_store_find(pointer);
    bool found = s && pointer >= s->base && (pointer - s->base) % s->stride == 0 &&
                 (pointer - s->base) / s->stride < s->slots;
    uint32_t number = found ? (uint32_t)((pointer - s->base) / s->stride) : 0;
    // Acquire and release: who gets the buffer sees all that the thread did that made it.
    uint64_t size = found ? atomic_exchange_explicit(&s->slot[number].size, 0, memory_order_acq_rel) : 0;
    epoch_leave(section);
    // Until it is given back the slot is ours, and so the slab stays.
    *place = (struct canary_place){s, number, pointer, size};
    return size;
}

bool canary_store_hide(const struct canary_place *place)
{
    place->slab->hidden = index_remove(&places, place->slab->range.base);
    return place->slab->hidden;
}

void canary_store_show(const struct canary_place *place)
{
    place->slab->hidden = index_insert(&places, &place->slab->range);
}

void canary_store_give(const struct canary_place *place)
{
    struct canary_slab *s = place->slab;
    struct shop *shop = shop_of(s->home);
    atomic_fetch_sub_explicit(&extra, s->stride - place->size + (is_lone(s) ? s->range.size - s->stride : 0),
                              memory_order_relaxed);
    pthread_mutex_lock(&lock);
    if (s->kind == CANARY_OURS && s->stride / UNIT <= CLASSES)
        shop->live[s->stride / UNIT]--;
    s->slot[place->number].next = s->free;
    s->free = place->number + 1;
    s->used--;
    if (!s->used && (is_lone(s) || shop->open[s->stride / UNIT])) {
        slab_close(s);
    } else if (!s->open && !is_lone(s)) {
        s->open = true;
        s->next = shop->open[s->stride / UNIT];
        shop->open[s->stride / UNIT] = s;
    }
    pthread_mutex_unlock(&lock);
}

// --- memory -------------------------------------------------------------------------------------------------

uint64_t canary_store_spare(struct home *home)
{
    pthread_mutex_lock(&lock);
    uint64_t bytes = canary_space_empty(&shop_of(home)->space);
    pthread_mutex_unlock(&lock);
    return bytes;
}

// Under the lock: slabs without buffers.
static void close_empty(struct shop *shop)
{
    for (unsigned c = 0; c <= CLASSES; c++)
        for (struct canary_slab *s = shop->open[c], *next; s; s = next) {
            next = s->next;
            if (!s->used)
                slab_close(s);
        }
}

uint64_t canary_store_trim(struct home *home, uint64_t keep)
{
    struct shop *shop = shop_of(home);
    uint64_t given = 0;
    for (;;) {
        uint64_t bytes = 0, base = 0;
        pthread_mutex_lock(&lock);
        if (!keep)
            close_empty(shop);
        if (canary_space_empty(&shop->space) > keep)
            base = canary_space_remove_empty(&shop->space, &bytes);
        pthread_mutex_unlock(&lock);
        if (!base)
            return given;
        ground_remove(base);
        guard.real.cuMemFree_v2(base);
        given += bytes;
    }
}

uint64_t canary_store_extra(void)
{
    return atomic_load_explicit(&extra, memory_order_relaxed);
}

struct search {
    CUcontext context;
    struct canary_slab *found;
    uint64_t base;
};

static int ground_of_context(struct index_item *item, void *context)
{
    struct search *search = context;
    search->base = item->base;
    return ((struct ground *)item)->context == search->context;
}

static void grounds_gone(CUcontext context)
{
    bool any = true;
    while (any) {
        struct search search = {.context = context};
        unsigned section = epoch_enter();
        any = index_each(&owned, ground_of_context, &search);
        epoch_leave(section);
        any = any && ground_remove(search.base);
    }
}

static int of_context(struct index_item *item, void *context)
{
    struct search *search = context;
    struct canary_slab *s = (struct canary_slab *)item;
    search->found = s->context == search->context ? s : NULL;
    return search->found != NULL;
}

void canary_store_context_gone(struct home *home, CUcontext context)
{
    struct shop *shop = shop_of(home);
    for (;;) {
        struct search search = {.context = context};
        unsigned section = epoch_enter();
        bool any = index_each(&places, of_context, &search);
        epoch_leave(section);
        if (!any)
            break;
        pthread_mutex_lock(&lock);
        bool closed = slab_close(search.found);
        pthread_mutex_unlock(&lock);
        if (!closed)
            break;
    }
    grounds_gone(context);
    pthread_mutex_lock(&lock);
    canary_space_clear(&shop->space);
    memset(shop, 0, sizeof *shop);
    pthread_mutex_unlock(&lock);
}
