// SPDX-License-Identifier: MIT
#include "rewrite/modules.h"

#include <assert.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "context/context.h"
#include "core/lock.h"
#include "core/guard.h"
#include "rewrite/rewrite_later.h"

enum { BUCKETS = 256 };

// The module that a library is in one context.
struct modules_alias {
    struct modules_alias *next;
    const void *module;
    CUcontext context;
};

// A leaf: while it is held, neither the driver is called nor another lock of moat's taken.
static struct lock lock = LOCK_INIT(MODULES);
static struct modules_row *buckets[BUCKETS];
// Rows in the buckets. Written under the lock. Relaxed: a thread that has a handle has seen its load return.
static _Atomic(unsigned) count;

static void (*releases[MODULES_CLIENTS])(void *data);
static unsigned nclients;

unsigned modules_client(void (*release)(void *data))
{
    lock_take(&lock);
    assert(nclients < MODULES_CLIENTS);
    unsigned client = nclients++;
    releases[client] = release;
    lock_give(&lock);
    return client;
}

// --- rows --------------------------------------------------------------------------------------------------

static struct modules_row **bucket_of(const void *handle)
{
    return &buckets[(uintptr_t)handle * 0x9e3779b97f4a7c15u >> 56];
}

static bool is_empty(void)
{
    return !atomic_load_explicit(&count, memory_order_relaxed);
}

// Requires that the row is in no bucket; the lock is not needed.
static void free_row(struct modules_row *row)
{
    for (unsigned c = 0; c < MODULES_CLIENTS; c++)
        if (row->data[c])
            releases[c](row->data[c]);
    while (row->aliases) {
        struct modules_alias *a = row->aliases;
        row->aliases = a->next;
        mem_free(a);
    }
    for (unsigned i = 0; !row->of && i < row->nparts; i++)
        pass_result_free(row->parts[i]);
    if (!row->of)
        mem_free(row->parts);
    rewrite_later_free(row->later);
    modules_release(row->of);
    mem_free(row);
}

static void free_rows(struct modules_row *dead)
{
    while (dead) {
        struct modules_row *row = dead;
        dead = row->next;
        free_row(row);
    }
}

// Requires the lock. Moves the row to the list of those to free if it is unloaded and nobody uses it.
static void unlink_if_unused(struct modules_row *row, struct modules_row **dead)
{
    if (!row->gone || row->holds || row->taken)
        return;
    struct modules_row **at = bucket_of(row->handle);
    while (*at != row)
        at = &(*at)->next;
    *at = row->next;
    atomic_fetch_sub_explicit(&count, 1, memory_order_relaxed);
    row->next = *dead;
    *dead = row;
}

// Requires the lock.
static struct modules_row *find(const void *handle)
{
    struct modules_row *row = *bucket_of(handle);
    while (row && (row->gone || row->handle != handle))
        row = row->next;
    return row;
}

// Requires the lock. Returns where the alias of that module or context is linked in, or NULL.
static struct modules_alias **find_alias(struct modules_row *row, const void *module, CUcontext context)
{
    for (struct modules_alias **at = &row->aliases; *at; at = &(*at)->next)
        if ((*at)->module == module || (*at)->context == context)
            return at;
    return NULL;
}

// Requires the lock.
static struct modules_row *find_library_of(const void *module)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct modules_row *row = buckets[i]; row; row = row->next)
            if (!row->gone && find_alias(row, module, NULL))
                return row;
    return NULL;
}

// --- loads and unloads -------------------------------------------------------------------------------------

static struct modules_row *add(const struct modules_row *like)
{
    struct modules_row *row = mem_alloc(sizeof *row), *dead = NULL;
    if (!row)
        return NULL;
    *row = *like;
    row->holds = 1;
    lock_take(&lock);
    if (row->of)
        row->of->holds++;
    // The driver has reused the handle: the thread that unloaded the former row has not recorded it yet.
    struct modules_row *before = find(row->handle), **bucket = bucket_of(row->handle);
    if (before) {
        before->gone = true;
        unlink_if_unused(before, &dead);
    }
    row->next = *bucket;
    *bucket = row;
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    lock_give(&lock);
    free_rows(dead);
    return row;
}

struct modules_row *modules_add(const void *handle, bool library, struct pass_result **parts, unsigned nparts)
{
    return add(&(struct modules_row){.handle = handle,
                                     .library = library,
                                     .context = library ? NULL : context_current_owner(),
                                     .parts = parts,
                                     .nparts = nparts});
}

struct modules_row *modules_add_variants(const void *handle, struct modules_row *of)
{
    return add(&(struct modules_row){.handle = handle,
                                     .library = of->library,
                                     .context = of->context,
                                     .parts = of->parts,
                                     .nparts = of->nparts,
                                     .of = of});
}

void modules_set(struct modules_row *row, unsigned client, void *data)
{
    lock_take(&lock);
    assert(client < nclients && !row->data[client] && data);
    row->data[client] = data;
    lock_give(&lock);
}

// Requires the lock. Removes the aliases that a new one invalidates: the context has another module now, or
// the module belongs to another library.
static struct modules_alias *drop_aliases(struct modules_row *row, const void *module, CUcontext context)
{
    struct modules_alias *dropped = NULL, **at;
    while ((at = find_alias(row, module, context))) {
        struct modules_alias *a = *at;
        *at = a->next;
        a->next = dropped;
        dropped = a;
    }
    return dropped;
}

static void free_aliases(struct modules_alias *a)
{
    while (a) {
        struct modules_alias *next = a->next;
        mem_free(a);
        a = next;
    }
}

void modules_alias(const void *library, CUmodule module)
{
    CUcontext context = is_empty() ? NULL : context_current_owner();
    struct modules_alias *a = context ? mem_zalloc(1, sizeof *a) : NULL, *other = NULL, *own = NULL;
    if (!a)
        return;
    a->module = module;
    a->context = context;
    lock_take(&lock);
    struct modules_row *row = find(library), *whose = find_library_of(module);
    if (whose && whose != row)
        other = drop_aliases(whose, module, NULL);
    if (row && row->library) {
        own = drop_aliases(row, module, context);
        a->next = row->aliases;
        row->aliases = a;
        a = NULL;
    }
    lock_give(&lock);
    mem_free(a);
    free_aliases(other);
    free_aliases(own);
}

static struct modules_row *hold(const void *handle, bool alias)
{
    if (is_empty())
        return NULL;
    lock_take(&lock);
    struct modules_row *row = find(handle);
    if (!row && alias)
        row = find_library_of(handle);
    if (row)
        row->holds++;
    lock_give(&lock);
    return row;
}

struct modules_row *modules_unloading(const void *handle)
{
    return hold(handle, false);
}

void modules_gone(struct modules_row *row)
{
    if (!row)
        return;
    lock_take(&lock);
    row->gone = true;
    lock_give(&lock);
}

void modules_context_gone(CUcontext context)
{
    struct modules_row *dead = NULL;
    if (is_empty())
        return;
    lock_take(&lock);
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct modules_row *row = buckets[i], *next; row; row = next) {
            next = row->next;
            free_aliases(drop_aliases(row, NULL, context));
            row->gone |= !row->library && row->context == context;
            unlink_if_unused(row, &dead);
        }
    lock_give(&lock);
    free_rows(dead);
}

// Rows that another thread of the parent was using are leaked: they may be half changed.
void modules_after_fork(void)
{
    lock_after_fork(&lock);
    for (unsigned i = 0; i < BUCKETS; i++) {
        struct modules_row *row = buckets[i];
        buckets[i] = NULL;
        while (row) {
            struct modules_row *next = row->next;
            if (!row->holds && !row->taken) {
                row->of = NULL;  // the row that this one holds is leaked, too
                free_row(row);
            }
            row = next;
        }
    }
    atomic_store_explicit(&count, 0, memory_order_relaxed);
}

// --- use ---------------------------------------------------------------------------------------------------

// Requires the lock.
static bool take(struct modules_row *row, unsigned client)
{
    uint32_t bit = (uint32_t)1 << client;
    if (row->gone || !row->data[client] || row->taken & bit)
        return false;
    row->taken |= bit;
    return true;
}

struct modules_row *modules_take(unsigned client, const void *handle)
{
    if (is_empty())
        return NULL;
    lock_take(&lock);
    struct modules_row *row = find(handle);
    if (row && !take(row, client))
        row = NULL;
    lock_give(&lock);
    return row;
}

struct modules_row *modules_take_all(unsigned client)
{
    struct modules_row *all = NULL;
    if (is_empty())
        return NULL;
    lock_take(&lock);
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct modules_row *row = buckets[i]; row; row = row->next)
            if (take(row, client)) {
                row->more[client] = all;
                all = row;
            }
    lock_give(&lock);
    return all;
}

void modules_give(unsigned client, struct modules_row *rows)
{
    struct modules_row *dead = NULL;
    if (!rows)
        return;
    lock_take(&lock);
    while (rows) {
        struct modules_row *row = rows;
        assert(row->taken >> client & 1);
        rows = row->more[client];
        row->more[client] = NULL;
        row->taken &= ~((uint32_t)1 << client);
        unlink_if_unused(row, &dead);
    }
    lock_give(&lock);
    free_rows(dead);
}

struct modules_row *modules_hold(const void *handle)
{
    return hold(handle, true);
}

void modules_release(struct modules_row *row)
{
    struct modules_row *dead = NULL;
    if (!row)
        return;
    lock_take(&lock);
    assert(row->holds);
    row->holds--;
    unlink_if_unused(row, &dead);
    lock_give(&lock);
    free_rows(dead);
}

// --- what must hold ----------------------------------------------------------------------------------------

// Requires the lock.
static bool are_aliases_valid(const struct modules_row *row)
{
    for (const struct modules_alias *a = row->aliases; a; a = a->next) {
        if (!row->library || !a->context || (!row->gone && find_library_of(a->module) != row))
            return false;
        for (const struct modules_alias *b = a->next; b; b = b->next)
            if (b->context == a->context || b->module == a->module)
                return false;
    }
    return true;
}

// Requires the lock.
static bool is_valid(const struct modules_row *row)
{
    if ((row->gone && !row->holds && !row->taken) || (!row->gone && find(row->handle) != row) ||
        (row->library && row->context) || row->taken >> nclients)
        return false;
    for (unsigned c = 0; c < MODULES_CLIENTS; c++)
        if (row->taken >> c & 1 ? !row->data[c] : row->more[c] != NULL)
            return false;
    return are_aliases_valid(row);
}

bool modules_valid(void)
{
    bool valid = true;
    unsigned n = 0;
    lock_take(&lock);
    for (unsigned i = 0; i < BUCKETS; i++)
        for (const struct modules_row *row = buckets[i]; row; row = row->next, n++)
            valid &= bucket_of(row->handle) == &buckets[i] && is_valid(row);
    valid &= n == atomic_load_explicit(&count, memory_order_relaxed);
    lock_give(&lock);
    return valid;
}
