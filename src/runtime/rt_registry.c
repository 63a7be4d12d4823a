// SPDX-License-Identifier: MIT
// Registration runs in static constructors, so everything here works from its static initial values. Lookups
// take no lock: a table is published whole, a slot's entry is written before its key, and an entry is read
// only by threads that look for its key. So closing a library disturbs only that library's own launches. An
// outgrown table is kept, because a reader may still be in it; together they take less than twice the memory
// of the last one.
//
// While the process exits, modules stay loaded: other threads may be launching their kernels.
//
// There are two kinds of locks, taken in this order: a module's, around the loading of its image, and
// table_lock. The driver is called under the first and never calls back into this file.
#include "runtime/rt_registry.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "runtime/rt_exit.h"

struct entry {
    const void *host;  // the key
    enum rt_registry_kind kind;
    const char *name;
    size_t size;
    struct rt_registry_module *module;  // NULL: a kernel that the program loaded itself
    const void *stub;                   // of an entry whose key is the kernel
    _Atomic(CUkernel) kernel;           // NULL: not looked up yet
    struct entry *next;                 // in its module
};

struct rt_registry_module {
    const void *wrapper;
    pthread_mutex_t lock;
    atomic_int tried;  // written with release after library and error
    CUlibrary library;
    cudaError_t error;
    struct entry *entries;
    struct rt_registry_module *next;
};

// key NULL: never used; TOMBSTONE: its entry was removed, and probing goes on.
struct slot {
    _Atomic(const void *) key;
    _Atomic(struct entry *) entry;
};

struct table {
    struct table *outgrown;
    size_t mask, used;  // slots with a key; 4 * used <= 3 * (mask + 1)
    struct slot slots[];
};

#define TOMBSTONE ((const void *)1)

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct table *) table;
static struct rt_registry_module *modules;
static atomic_int failure;

static size_t hash(const void *key)
{
    uint64_t bits = (uintptr_t)key;
    return (size_t)((bits >> 4) * 0x9e3779b97f4a7c15u >> 20);
}

static struct entry *find(const void *host)
{
    struct table *t = atomic_load_explicit(&table, memory_order_acquire);

    for (size_t i = hash(host); t; i++) {
        struct slot *slot = &t->slots[i & t->mask];
        const void *key = atomic_load_explicit(&slot->key, memory_order_acquire);  // pairs with put
        if (key == host)
            return host ? atomic_load_explicit(&slot->entry, memory_order_relaxed) : NULL;
        if (!key)
            return NULL;
    }
    return NULL;
}

// Adds an entry whose key is not in the table. table_lock must be held.
static void put(struct table *t, struct entry *entry)
{
    for (size_t i = hash(entry->host);; i++) {
        struct slot *slot = &t->slots[i & t->mask];
        const void *key = atomic_load_explicit(&slot->key, memory_order_relaxed);
        if (key && key != TOMBSTONE)
            continue;
        t->used += !key;
        atomic_store_explicit(&slot->entry, entry, memory_order_relaxed);
        atomic_store_explicit(&slot->key, entry->host, memory_order_release);  // pairs with find
        return;
    }
}

// Returns a table with room for one more, or NULL if out of memory. table_lock must be held.
static struct table *grown(void)
{
    struct table *old = atomic_load_explicit(&table, memory_order_relaxed), *new;
    size_t size = old ? 2 * (old->mask + 1) : 256;

    if (old && 4 * (old->used + 1) <= 3 * (old->mask + 1))
        return old;
    new = mem_zalloc(1, sizeof *new + size * sizeof *new->slots);
    if (!new)
        return NULL;
    new->mask = size - 1;
    new->outgrown = old;
    for (size_t i = 0; old && i <= old->mask; i++) {
        const void *key = atomic_load_explicit(&old->slots[i].key, memory_order_relaxed);
        if (key && key != TOMBSTONE)
            put(new, atomic_load_explicit(&old->slots[i].entry, memory_order_relaxed));
    }
    atomic_store_explicit(&table, new, memory_order_release);  // pairs with find
    return new;
}

// The first registration of an address stays: a template's stub is one function in many modules, all alike.
static void insert(struct entry *entry)
{
    struct table *t;

    mutex_lock(&table_lock);
    t = grown();
    if (entry->module) {
        entry->next = entry->module->entries;
        entry->module->entries = entry;
    }
    if (t && entry->host && !find(entry->host))
        put(t, entry);
    mutex_unlock(&table_lock);
}

static struct entry *new_entry(struct rt_registry_module *module, enum rt_registry_kind kind,
                               const void *host)
{
    struct entry *entry = mem_zalloc(1, sizeof *entry);

    if (!entry)
        return NULL;
    entry->module = module;
    entry->kind = kind;
    entry->host = host;
    return entry;
}

// Removes an entry, unless the address belongs to another entry. table_lock must be held.
static void drop(struct entry *entry)
{
    struct table *t = atomic_load_explicit(&table, memory_order_relaxed);

    for (size_t i = hash(entry->host); t; i++) {
        struct slot *slot = &t->slots[i & t->mask];
        const void *key = atomic_load_explicit(&slot->key, memory_order_relaxed);
        if (key == entry->host) {
            if (atomic_load_explicit(&slot->entry, memory_order_relaxed) == entry)
                atomic_store_explicit(&slot->key, TOMBSTONE, memory_order_relaxed);
            return;
        }
        if (!key)
            return;
    }
}

struct rt_registry_module *rt_registry_add_module(const void *wrapper)
{
    struct rt_registry_module *module = mem_zalloc(1, sizeof *module);

    if (!module)
        return NULL;
    module->wrapper = wrapper;
    pthread_mutex_init(&module->lock, NULL);
    mutex_lock(&table_lock);
    module->next = modules;
    modules = module;
    mutex_unlock(&table_lock);
    return module;
}

void rt_registry_add(struct rt_registry_module *module, enum rt_registry_kind kind, const void *host,
                     const char *name, size_t size)
{
    struct entry *entry = module ? new_entry(module, kind, host) : NULL;

    if (!entry)
        return;
    entry->name = name;
    entry->size = size;
    insert(entry);
}

void rt_registry_remove_module(struct rt_registry_module *module)
{
    struct entry *entry, *next;

    if (!module || rt_exit_begun())
        return;
    mutex_lock(&table_lock);
    for (struct rt_registry_module **m = &modules; *m; m = &(*m)->next) {
        if (*m == module) {
            *m = module->next;
            break;
        }
    }
    for (entry = module->entries; entry; entry = entry->next)
        drop(entry);
    mutex_unlock(&table_lock);
    for (entry = module->entries; entry; entry = next) {
        next = entry->next;
        mem_free(entry);
    }
    if (module->library)
        RT_RAW(cuLibraryUnload, module->library);
    pthread_mutex_destroy(&module->lock);
    mem_free(module);
}

// Fills the pointers through which host code reads managed variables.
static cudaError_t fill_managed(struct rt_registry_module *module)
{
    for (struct entry *entry = module->entries; entry; entry = entry->next) {
        CUdeviceptr address;
        size_t size;
        CUresult result;

        if (entry->kind != RT_MANAGED)
            continue;
        result = RT_RAW(cuLibraryGetManaged, &address, &size, module->library, entry->name);
        if (result)
            return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : rt_error(result);
        *(void **)(uintptr_t)entry->host = rt_host(address);
    }
    return cudaSuccess;
}

cudaError_t rt_registry_load(struct rt_registry_module *module)
{
    if (!module)
        return cudaErrorMemoryAllocation;
    if (!atomic_load_explicit(&module->tried, memory_order_acquire)) {
        mutex_lock(&module->lock);
        if (!atomic_load_explicit(&module->tried, memory_order_relaxed)) {
            CUresult result =
                RT_RAW(cuLibraryLoadData, &module->library, module->wrapper, NULL, NULL, 0, NULL, NULL, 0);
            if (result)
                module->library = NULL;
            rt_exit_watch();
            module->error = result ? rt_error(result) : fill_managed(module);
            atomic_store_explicit(&module->tried, 1, memory_order_release);
        }
        mutex_unlock(&module->lock);
    }
    return module->error;
}

// Adds a kernel under its own handle, by which it can be found too.
static void know(CUkernel kernel, struct rt_registry_module *module, const void *stub)
{
    struct entry *entry = find(kernel) ? NULL : new_entry(module, RT_KERNEL, kernel);

    if (!entry)
        return;
    entry->stub = stub;
    atomic_store_explicit(&entry->kernel, kernel, memory_order_relaxed);
    insert(entry);
}

void rt_registry_know(CUkernel kernel)
{
    know(kernel, NULL, kernel);
}

static cudaError_t look_up(struct entry *entry, CUkernel *kernel)
{
    cudaError_t error = rt_registry_load(entry->module);
    CUresult result;

    if (error)
        return error;
    result = RT_RAW(cuLibraryGetKernel, kernel, entry->module->library, entry->name);
    if (result)
        return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : rt_error(result);
    know(*kernel, entry->module, entry->host);
    atomic_store_explicit(&entry->kernel, *kernel, memory_order_release);
    return cudaSuccess;
}

cudaError_t rt_registry_kernel(const void *func, CUkernel *kernel)
{
    struct entry *entry = find(func);
    // An address that is no stub is taken for the handle of a kernel.
    cudaError_t error = func ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;

    if (entry && entry->kind == RT_KERNEL) {
        *kernel = atomic_load_explicit(&entry->kernel, memory_order_acquire);
        if (*kernel)
            return cudaSuccess;
        error = look_up(entry, kernel);
    }
    if (error)
        atomic_store_explicit(&failure, (int)error, memory_order_relaxed);
    return error;
}

cudaError_t rt_registry_failure(void)
{
    int error = atomic_load_explicit(&failure, memory_order_relaxed);
    return error ? (cudaError_t)error : cudaErrorInvalidDeviceFunction;
}

const void *rt_registry_stub(CUkernel kernel)
{
    struct entry *entry = find(kernel);
    return entry && entry->stub ? entry->stub : kernel;
}

// Finds a managed variable by the address that its pointer points to, as compiled code names it.
static struct entry *find_managed(const void *address)
{
    struct entry *found = NULL;

    mutex_lock(&table_lock);
    for (struct rt_registry_module *m = modules; m && !found; m = m->next)
        for (struct entry *e = m->entries; e && !found; e = e->next)
            if (e->kind == RT_MANAGED && *(void *const *)e->host == address)
                found = e;
    mutex_unlock(&table_lock);
    return found;
}

cudaError_t rt_registry_variable(const void *host, CUdeviceptr *address, size_t *size)
{
    struct entry *entry = find(host);
    CUresult result;
    cudaError_t error;

    if (!entry && host)
        entry = find_managed(host);
    if (!entry || entry->kind == RT_KERNEL)
        return cudaErrorInvalidSymbol;
    error = rt_registry_load(entry->module);
    if (error)
        return error;
    if (entry->kind == RT_MANAGED)
        result = RT_RAW(cuLibraryGetManaged, address, size, entry->module->library, entry->name);
    else
        result = RT_RAW(cuLibraryGetGlobal, address, size, entry->module->library, entry->name);
    return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : rt_error(result);
}
