// SPDX-License-Identifier: MIT
// Host memory that kernels may access: pinned, registered and managed. Host and device use the same
// addresses. Rights are those of whole pages; a page that several blocks share has the rights of all of them.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/capture.h"
#include "cpu/memory.h"
#include "exec/space.h"

// Pinned memory of less than this size starts in the middle of a page: drivers pack small buffers, at
// multiples of 512, and a program may not rely on more.
enum { SMALL = 1 << 20, SMALL_AT = 512 };

static uint64_t page_floor(uint64_t a)
{
    return a & ~(uint64_t)(MEMORY_PAGE - 1);
}

static uint64_t page_ceil(uint64_t a)
{
    return page_floor(a + MEMORY_PAGE - 1);
}

void *memory_host_map(uint64_t size, uint64_t align)
{
    uint64_t most = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (size > most || space_init())
        return NULL;
    size = page_ceil(size);
    if (size > 2 * MEMORY_UNIT)
        align = MEMORY_UNIT;
    uint64_t slack = align > MEMORY_PAGE ? align : 0;
    char *p =
        mmap(NULL, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (!slack)
        return p;
    char *at = p + (-(uintptr_t)p & (align - 1));
    if (at > p)
        munmap(p, at - p);
    munmap(at + size, p + slack - at);
    if (size > MEMORY_UNIT)
        madvise(at, size, MADV_HUGEPAGE);
    return at;
}

// Sets the rights of a page to those of all blocks that touch it.
static void refresh_page(uint64_t page)
{
    unsigned rights = 0;
    struct memory_block *b = memory_block_after(page);
    for (; b && b->node.base < page + MEMORY_PAGE; b = memory_block_after(memory_range_end(&b->node)))
        rights |= b->rights;
    space_set(page, MEMORY_PAGE, rights);
}

// Sets the rights of pages after a registration was added or removed: the first and the last page may be
// shared, all others are its own.
static void refresh(uint64_t base, uint64_t size, unsigned rights)
{
    uint64_t low = page_floor(base), high = page_ceil(base + size);
    if (high - low > 2 * MEMORY_PAGE)
        space_set(low + MEMORY_PAGE, high - low - 2 * MEMORY_PAGE, rights);
    refresh_page(low);
    if (high - low > MEMORY_PAGE)
        refresh_page(high - MEMORY_PAGE);
}

void memory_host_release(struct memory_block *b)
{
    uint64_t pages = (uintptr_t)b->pages;
    if (pages) {
        uint64_t size = page_ceil(memory_range_end(&b->node) - pages);
        space_set(pages, size, 0);
        munmap(b->pages, size);
    } else {
        refresh(b->node.base, b->node.size, 0);
    }
    mem_free(b);
}

static CUresult alloc(enum memory_kind kind, struct CUctx_st *ctx, uint64_t size, unsigned flags, void **out)
{
    struct memory_block *b = memory_block_new(kind, ctx);
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t at = kind == MEMORY_HOST && size < SMALL ? SMALL_AT : 0;
    b->pages = memory_host_map(at + size, MEMORY_PAGE);
    if (!b->pages) {
        mem_free(b);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    b->flags = flags;
    b->preferred.id = b->prefetched.id = CU_DEVICE_INVALID;
    mutex_lock(&memory_lock);
    memory_block_add(b, (uintptr_t)b->pages + at, size);
    space_set((uintptr_t)b->pages, page_ceil(at + size), b->rights);
    *out = (char *)b->pages + at;
    mutex_unlock(&memory_lock);
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned int flags)
{
    enum { known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED };
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!out || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    r = capture_unsafe();
    if (r)
        return r;
    return size ? alloc(MEMORY_HOST, ctx, size, flags | CU_MEMHOSTALLOC_DEVICEMAP, out) : CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **out, size_t size)
{
    return cuMemHostAlloc(out, size, 0);
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned int flags)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!out || !size || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    void *p;
    r = capture_unsafe();
    if (!r)
        r = alloc(MEMORY_MANAGED, ctx, size, flags, &p);
    if (!r)
        *out = (uintptr_t)p;
    return r;
}

// --- registered --------------------------------------------------------------------------------------------

// Returns whether the kernel knows the advice; older ones do not, and then only mapped pages can be detected.
static bool can_populate(void)
{
    static atomic_int known;  // relaxed: every thread finds the same
    int k = atomic_load_explicit(&known, memory_order_relaxed);
    if (!k) {
        void *p = mmap(NULL, MEMORY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return false;
        k = madvise(p, MEMORY_PAGE, MADV_POPULATE_WRITE) ? 2 : 1;
        munmap(p, MEMORY_PAGE);
        atomic_store_explicit(&known, k, memory_order_relaxed);
    }
    return k == 1;
}

// Touches whole pages. Returns whether they can be read, or written.
static bool touch(uint64_t low, uint64_t high, bool write)
{
    return !madvise((void *)(uintptr_t)low, high - low, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

bool memory_host_accessible(const void *p, size_t size, bool write, bool all)
{
    if (!size)
        return true;
    uint64_t low = page_floor((uintptr_t)p), high = page_ceil((uintptr_t)p + size);
    if (!low || high <= low)
        return false;
    if (can_populate() && (all || high - low <= 2 * MEMORY_PAGE))
        return touch(low, high, write);
    // The check for holes costs the same for any size; access is tried at both ends only.
    if (msync((void *)(uintptr_t)low, high - low, MS_ASYNC))
        return false;
    return !can_populate() ||
           (touch(low, low + MEMORY_PAGE, write) && touch(high - MEMORY_PAGE, high, write));
}

CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned int flags)
{
    enum {
        known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY,
        io = CU_MEMHOSTREGISTER_IOMEMORY,
    };
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    uint64_t base = (uintptr_t)p;
    bool read_only = flags & CU_MEMHOSTREGISTER_READ_ONLY;
    if (!p || !size || flags & ~(known | io) || base + size < base || (base + size) >> SPACE_BITS)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & io)
        return not_supported_notify("cuMemHostRegister of I/O memory");
    r = capture_unsafe();
    if (r || space_init())
        return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
    if (memory_block_check(base, 1, 0) == MEMORY_BAD)
        return CUDA_ERROR_INVALID_VALUE;
    if (!memory_host_accessible(p, size, !read_only, true))
        return CUDA_ERROR_INVALID_VALUE;
    struct memory_block *b = memory_block_new(MEMORY_REGISTERED, ctx);
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
    if (read_only)
        b->rights = SPACE_READ;
    mutex_lock(&memory_lock);
    if (memory_block_touches(base, size)) {
        r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    } else {
        memory_block_add(b, base, size);
        refresh(base, size, b->rights);
    }
    mutex_unlock(&memory_lock);
    if (r)
        mem_free(b);
    return r;
}

CUresult cuMemHostRegister(void *p, size_t size, unsigned int flags)
{
    return cuMemHostRegister_v2(p, size, flags);
}

// --- addresses and flags -----------------------------------------------------------------------------------

static CUresult missing(enum memory_kind kind, uint64_t p)
{
    const struct memory_block *b = memory_block_at(p);
    if (b && b->kind == kind && b->node.base == p)
        return CUDA_SUCCESS;
    return kind == MEMORY_REGISTERED && !b ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE;
}

static CUresult give_up(enum memory_kind kind, void *p)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (!r)
        r = capture_unsafe();
    if (r)
        return r;
    uint64_t addr = (uintptr_t)p;
    mutex_lock(&memory_lock);
    r = missing(kind, addr);
    struct CUctx_st *owner = r ? NULL : memory_block_at(addr)->ctx;
    mutex_unlock(&memory_lock);
    if (!r)
        r = cpu_context_wait(ctx);
    if (!r && owner != ctx)
        r = cpu_context_wait(owner);
    if (r)
        return r;
    mutex_lock(&memory_lock);
    r = missing(kind, addr);
    if (!r) {
        struct memory_block *b = memory_block_at(addr);
        memory_block_remove(b);
        memory_host_release(b);
    }
    mutex_unlock(&memory_lock);
    return r;
}

CUresult cuMemFreeHost(void *p)
{
    struct CUctx_st *ctx;
    return p ? give_up(MEMORY_HOST, p) : cpu_context_current(&ctx);
}

CUresult cuMemHostUnregister(void *p)
{
    return p ? give_up(MEMORY_REGISTERED, p) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *p, unsigned int flags)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!out || !p || flags)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    const struct memory_block *b = memory_block_at((uintptr_t)p);
    bool pinned = b && (b->kind == MEMORY_HOST || b->kind == MEMORY_REGISTERED);
    mutex_unlock(&memory_lock);
    if (!pinned)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *out, void *p)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!out || !p)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    const struct memory_block *b = memory_block_at((uintptr_t)p);
    bool host = b && (b->kind == MEMORY_HOST || b->kind == MEMORY_REGISTERED || b->kind == MEMORY_MANAGED);
    if (host)
        *out = b->kind == MEMORY_MANAGED ? CU_MEMHOSTALLOC_DEVICEMAP : b->flags;
    mutex_unlock(&memory_lock);
    return host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
