// SPDX-License-Identifier: MIT
// Blocks that pool allocators announce through NVTX's memory API: regions of heaps that are sub-allocators.
// Regions of other heaps, and of the whole address space, describe memory whose surroundings are accessible
// too, so they are no bounds.
//
// A heap's handle is its address, and so is a region's.
#include <stdatomic.h>
#include <string.h>

#include "core/guard.h"
#include "guard/guard_start.h"
#include "context/names.h"
#include "guard/nvtx_api.h"
#include "track/track.h"

enum { HEAPS = 4096, NAME_SIZE = 256 };

// Registered sub-allocators. Relaxed throughout: a program registers a heap before it uses it, and no field
// is read to synchronise with another.
static struct {
    _Atomic uint64_t base;  // 0: the entry is free
    _Atomic uint64_t size;
    const char *_Atomic name;
} heaps[HEAPS];

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));
int InitializeInjectionNvtxExtension(struct nvtx_api_module *module);

static const char *keep_wide(const wchar_t *text)
{
    char name[NAME_SIZE];
    size_t n = 0;
    for (; text && text[n] && n < sizeof name - 1; n++)
        name[n] = text[n] > 0 && text[n] < 0x7f ? (char)text[n] : '?';
    name[n] = 0;
    return n ? names_keep(name) : NULL;
}

static const char *keep_text(uint32_t type, union nvtx_api_text text)
{
    switch (type) {
    case NVTX_API_TEXT_ASCII: return names_keep(text.ascii);
    case NVTX_API_TEXT_UNICODE: return keep_wide(text.unicode);
    case NVTX_API_TEXT_REGISTERED: return text.registered;  // register_string returned it
    default: return NULL;
    }
}

static const void *register_string(void *domain, const char *text)
{
    return names_keep(text);
}

static int find_heap(uint64_t base)
{
    for (int i = 0; i < HEAPS; i++)
        if (base && atomic_load_explicit(&heaps[i].base, memory_order_relaxed) == base)
            return i;
    return -1;
}

// Returns where a heap ends, and its base.
static uint64_t bounds_of(int heap, uint64_t *base)
{
    uint64_t end, size = atomic_load_explicit(&heaps[heap].size, memory_order_relaxed);
    *base = atomic_load_explicit(&heaps[heap].base, memory_order_relaxed);
    return __builtin_add_overflow(*base, size, &end) ? UINT64_MAX : end;
}

static void set_pool(int heap, bool is_one)
{
    uint64_t base, end = bounds_of(heap, &base);
    if (end > base)
        track_pool(base, end, is_one);
}

static void *heap_register(void *domain, const struct nvtx_api_heap *desc)
{
    const struct nvtx_api_range *range = desc ? desc->range : NULL;
    if (!range || desc->compatible != NVTX_API_COMPATIBLE_MEM || desc->size < sizeof *desc ||
        desc->type != NVTX_API_MEM_VIRTUAL_ADDRESS || desc->range_size < sizeof *range || !range->pointer)
        return NVTX_API_NO_HEAP;
    void *handle = (void *)(uintptr_t)range->pointer;
    if (desc->usage != NVTX_API_MEM_SUB_ALLOCATOR)
        return handle;
    uint64_t base = (uintptr_t)handle, none = 0;
    int i = find_heap(base);
    for (int k = 0; i < 0 && k < HEAPS; k++, none = 0)
        if (atomic_compare_exchange_strong_explicit(&heaps[k].base, &none, base, memory_order_relaxed,
                                                    memory_order_relaxed))
            i = k;
    if (i < 0) {
        guard_count(GUARD_UNTRACKED);
        return handle;
    }
    atomic_store_explicit(&heaps[i].size, range->size, memory_order_relaxed);
    atomic_store_explicit(&heaps[i].name, keep_text(desc->text_type, desc->text), memory_order_relaxed);
    set_pool(i, true);
    return handle;
}

static void withdraw_all(int heap)
{
    uint64_t base, end = bounds_of(heap, &base);
    if (end > base)
        track_withdraw_range(base, end);
}

static void heap_reset(void *domain, void *heap)
{
    int i = find_heap((uintptr_t)heap);
    if (i >= 0)
        withdraw_all(i);
}

static void heap_unregister(void *domain, void *heap)
{
    int i = find_heap((uintptr_t)heap);
    if (i < 0)
        return;
    withdraw_all(i);
    set_pool(i, false);
    atomic_store_explicit(&heaps[i].base, 0, memory_order_relaxed);
}

// Copies the announced block that starts at base. Returns false if there is none.
static bool find_region(uint64_t base, struct track_copy *copy)
{
    unsigned section = epoch_enter();
    const struct track_block *b = track_announced(base);
    bool found = b && b->range.base == base;
    if (found)
        *copy = track_copy(b, false);
    epoch_leave(section);
    return found;
}

static void regions_register(void *domain, const struct nvtx_api_register *batch)
{
    if (!batch || batch->compatible != NVTX_API_COMPATIBLE_MEM || batch->size < sizeof *batch ||
        batch->type != NVTX_API_MEM_VIRTUAL_ADDRESS || batch->stride < sizeof(struct nvtx_api_range))
        return;
    int heap = find_heap((uintptr_t)batch->heap);
    const char *name = heap < 0 ? NULL : atomic_load_explicit(&heaps[heap].name, memory_order_relaxed);
    for (size_t i = 0; i < batch->count; i++) {
        const struct nvtx_api_range *range = (const void *)((const char *)batch->ranges + i * batch->stride);
        if (batch->handles)
            batch->handles[i] = (void *)(uintptr_t)range->pointer;
        if (heap < 0 || !range->pointer || !range->size)
            continue;
        track_made_for(TRACK_ANNOUNCED, TRACK_MADE_BY_NVTX, (uintptr_t)range->pointer, range->size, NULL,
                       name);
        guard_count(GUARD_ANNOUNCED);
    }
}

static void regions_resize(void *domain, const struct nvtx_api_resize *batch)
{
    if (!batch || batch->compatible != NVTX_API_COMPATIBLE_MEM || batch->size < sizeof *batch ||
        batch->type != NVTX_API_MEM_VIRTUAL_ADDRESS || batch->stride < sizeof(struct nvtx_api_range))
        return;
    for (size_t i = 0; i < batch->count; i++) {
        const struct nvtx_api_range *range = (const void *)((const char *)batch->ranges + i * batch->stride);
        struct track_copy old;
        if (range->size && find_region((uintptr_t)range->pointer, &old))
            track_changed(old.base, range->size, old.facts.name);
    }
}

static bool is_ref(uint32_t type)
{
    return type == NVTX_API_MEM_REF_POINTER || type == NVTX_API_MEM_REF_HANDLE;
}

static void regions_unregister(void *domain, const struct nvtx_api_unregister *batch)
{
    if (!batch || batch->compatible != NVTX_API_COMPATIBLE_MEM || batch->size < sizeof *batch ||
        !is_ref(batch->ref_type) || batch->stride < sizeof(void *))
        return;
    for (size_t i = 0; i < batch->count; i++) {
        const void *region;
        memcpy(&region, (const char *)batch->refs + i * batch->stride, sizeof region);
        track_withdraw((uintptr_t)region);
    }
}

static void regions_name(void *domain, const struct nvtx_api_names *batch)
{
    if (!batch || batch->compatible != NVTX_API_COMPATIBLE_MEM || batch->size < sizeof *batch ||
        batch->stride < sizeof(struct nvtx_api_name))
        return;
    for (size_t i = 0; i < batch->count; i++) {
        const struct nvtx_api_name *one = (const void *)((const char *)batch->names + i * batch->stride);
        struct track_copy old;
        if (is_ref(one->ref_type) && find_region((uintptr_t)one->region, &old))
            track_changed(old.base, old.size, keep_text(one->text_type, one->text));
    }
}

// Of NVTX's core only strings are needed: regions may be named by a registered one.
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
    const struct nvtx_api_callbacks *callbacks = get_table ? get_table(NVTX_API_TABLE_CALLBACKS) : NULL;
    nvtx_api_function ***table = NULL;
    unsigned count = 0;
    if (!callbacks || callbacks->size < sizeof *callbacks ||
        !callbacks->functions(NVTX_API_MODULE_CORE2, &table, &count) || count <= NVTX_API_REGISTER_STRING)
        return 0;
    *table[NVTX_API_REGISTER_STRING] = (nvtx_api_function *)register_string;
    return 1;
}

// Returns 0 for extensions other than the one for memory, and for one of another layout.
__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(struct nvtx_api_module *module)
{
    static nvtx_api_function *const functions[] = {
        [NVTX_API_HEAP_REGISTER] = (nvtx_api_function *)heap_register,
        [NVTX_API_HEAP_UNREGISTER] = (nvtx_api_function *)heap_unregister,
        [NVTX_API_HEAP_RESET] = (nvtx_api_function *)heap_reset,
        [NVTX_API_REGIONS_REGISTER] = (nvtx_api_function *)regions_register,
        [NVTX_API_REGIONS_RESIZE] = (nvtx_api_function *)regions_resize,
        [NVTX_API_REGIONS_UNREGISTER] = (nvtx_api_function *)regions_unregister,
        [NVTX_API_REGIONS_NAME] = (nvtx_api_function *)regions_name,
    };
    enum { FUNCTIONS = sizeof functions / sizeof *functions };
    if (!module || module->size < sizeof *module || module->id != NVTX_API_EXTENSION_MEM ||
        module->compatible != NVTX_API_COMPATIBLE_MEM || !module->nsegments ||
        module->segments[0].count < FUNCTIONS)
        return 0;
    guard_start();
    if (!guard.watching)
        return 0;
    for (int i = 0; i < FUNCTIONS; i++)
        module->segments[0].slots[i] = (intptr_t)functions[i];
    return 1;
}
