// SPDX-License-Identifier: MIT
// The set of our handles and their kinds: a hash table that is read without a lock.
//
//   a slot: 0 (never used), GONE (was used), or the handle with its kind in the low 4 bits
//   used = slots that are not 0 <= 3/4 of all
//
// Writers hold the lock. A reader that finds its handle is done. One that does not might have looked while
// the table was being rebuilt: then `sequence` is odd or has changed, and it looks again with the lock held.
// Outgrown tables are kept, as readers may be inside them; each is half as large as its successor, so
// together they are smaller than the table.
#include <errno.h>

#include "base/mem.h"
#include "cpu/cpu.h"

enum { KIND_BITS = 15, GONE = 15, FIRST_BITS = 8 };

struct table {
    struct table *older;
    unsigned bits;
    size_t used;
    atomic_uintptr_t slots[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct table *) current;
static atomic_uint sequence;

static size_t place(const struct table *t, uintptr_t p)
{
    return (size_t)((p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - t->bits));
}

// Returns the handle's slot; NULL if it is absent. p is not 0, so GONE does not match.
static atomic_uintptr_t *find(struct table *t, uintptr_t p)
{
    size_t mask = ((size_t)1 << t->bits) - 1;

    for (size_t i = place(t, p), n = 0; n <= mask; i = (i + 1) & mask, n++) {
        // Acquire: pairs with the store in insert; the object was filled before handle_add.
        uintptr_t v = atomic_load_explicit(&t->slots[i], memory_order_acquire);
        if ((v & ~(uintptr_t)KIND_BITS) == p)
            return &t->slots[i];
        if (!v)
            break;
    }
    return NULL;
}

// Inserts a value; there must be room.
static void insert(struct table *t, uintptr_t value)
{
    size_t mask = ((size_t)1 << t->bits) - 1, i = place(t, value & ~(uintptr_t)KIND_BITS);

    for (;; i = (i + 1) & mask) {
        uintptr_t v = atomic_load_explicit(&t->slots[i], memory_order_relaxed);
        if (v && v != GONE)
            continue;
        t->used += !v;
        atomic_store_explicit(&t->slots[i], value, memory_order_release);  // partner: find
        return;
    }
}

static size_t live(struct table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < (size_t)1 << t->bits; i++)
        n += atomic_load_explicit(&t->slots[i], memory_order_relaxed) > KIND_BITS;
    return n;
}

// Makes room for one more handle: a larger table, or, if most used slots are GONE, the same table rebuilt
// without them.
static int make_room(void)
{
    struct table *t = atomic_load_explicit(&current, memory_order_relaxed);
    if (t && t->used < ((size_t)3 << t->bits) / 4)
        return 0;
    size_t old = t ? (size_t)1 << t->bits : 0;
    bool grow = !t || live(t) >= old / 2;
    unsigned bits = !t ? FIRST_BITS : t->bits + grow;
    struct table *fresh = mem_zalloc(1, sizeof *fresh + (sizeof fresh->slots[0] << bits));
    if (!fresh)
        return -ENOMEM;
    fresh->bits = bits;
    for (size_t i = 0; i < old; i++) {
        uintptr_t v = atomic_load_explicit(&t->slots[i], memory_order_relaxed);
        if (v > KIND_BITS)
            insert(fresh, v);
    }
    if (grow) {
        fresh->older = t;
        atomic_store_explicit(&current, fresh, memory_order_release);  // partner: handle_is
        return 0;
    }
    atomic_fetch_add(&sequence, 1);
    for (size_t i = 0; i < old; i++)
        atomic_store_explicit(&t->slots[i], atomic_load_explicit(&fresh->slots[i], memory_order_relaxed),
                              memory_order_release);
    t->used = fresh->used;
    atomic_fetch_add(&sequence, 1);
    mem_free(fresh);
    return 0;
}

int handle_add(const void *p, enum handle_kind kind)
{
    pthread_mutex_lock(&lock);
    int err = make_room();
    if (!err)
        insert(atomic_load_explicit(&current, memory_order_relaxed), (uintptr_t)p | kind);
    pthread_mutex_unlock(&lock);
    return err;
}

bool handle_is(const void *p, enum handle_kind kind)
{
    uintptr_t key = (uintptr_t)p;
    if (!key || key & KIND_BITS)
        return false;
    unsigned before = atomic_load(&sequence);
    struct table *t = atomic_load_explicit(&current, memory_order_acquire);
    atomic_uintptr_t *slot = t ? find(t, key) : NULL;
    if (!slot && (before & 1 || atomic_load(&sequence) != before)) {
        pthread_mutex_lock(&lock);
        slot = find(atomic_load_explicit(&current, memory_order_relaxed), key);
        pthread_mutex_unlock(&lock);
    }
    // The slot may hold another handle by now, if another thread removes the one that this thread uses.
    return slot && atomic_load_explicit(slot, memory_order_relaxed) == (key | kind);
}

void handle_remove(const void *p)
{
    pthread_mutex_lock(&lock);
    struct table *t = atomic_load_explicit(&current, memory_order_relaxed);
    atomic_uintptr_t *slot = t && p ? find(t, (uintptr_t)p) : NULL;
    if (slot)
        atomic_store_explicit(slot, GONE, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}
