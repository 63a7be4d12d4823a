// SPDX-License-Identifier: MIT
// Pools between processes. A pool is exported by the descriptor of the file that its chunks are cut from, so
// an allocation is found in another process by its place in that file. An imported pool allocates nothing:
// allocations are imported one by one, and freeing one here only unmaps it.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/memory_pool.h"
#include "exec/space.h"

static const char magic[16] = "moat's own pool";

// The contents of CUmemPoolPtrExportData.
struct place {
    char magic[16];
    uint64_t offset, size;  // in the pool's file
};
_Static_assert(sizeof(struct place) <= sizeof(CUmemPoolPtrExportData), "a place fits into what is exported");

CUresult memory_pool_share_make(struct CUmemPoolHandle_st *p)
{
    struct memory_label l = {.pool = p->props};
    if (!(p->props.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) || p->slabs.host)
        return CUDA_SUCCESS;
    memcpy(l.magic, magic, sizeof l.magic);
    if (memory_file_make(&p->file, &l))
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->slabs.file = &p->file;
    return CUDA_SUCCESS;
}

void memory_pool_share_give(struct memory_range *place)
{
    space_set(place->base, place->size, 0);
    memory_slab_clear(place->base, place->size);
    memory_slab_addresses_free(place);
}

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool p, CUmemAllocationHandleType type,
                                          unsigned long long flags)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    bool good = memory_pool_known(p) && p->file.made && !p->imported;
    int fd = good ? fcntl(p->file.fd, F_DUPFD_CLOEXEC, 0) : -1;
    mutex_unlock(&memory_lock);
    if (fd < 0)
        return good ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &fd, sizeof fd);
    return CUDA_SUCCESS;
}

static struct CUmemPoolHandle_st *import(int fd, const CUmemPoolProps *props)
{
    struct CUmemPoolHandle_st *p = mem_zalloc(1, sizeof *p);
    int mine = p ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (mine < 0) {
        mem_free(p);
        return NULL;
    }
    p->imported = true;
    p->file.fd = mine;
    mutex_lock(&memory_lock);
    CUresult r = memory_pool_add(p, props);
    mutex_unlock(&memory_lock);
    if (!r)
        return p;
    close(mine);
    mem_free(p);
    return NULL;
}

// The descriptor stays the caller's.
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle, CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    CUresult r = memory_map_ready();
    struct memory_label l;
    uint64_t size;
    if (r)
        return r;
    if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !memory_file_read((int)(intptr_t)handle, magic, &size, &l) ||
        l.pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        l.pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        l.pool.handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    // A device that this process does not have becomes device 0.
    if ((unsigned)l.pool.location.id >= device_count())
        l.pool.location.id = 0;
    *out = import((int)(intptr_t)handle, &l.pool);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// The export begins at the pointer, and so does the imported allocation.
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr p)
{
    struct place to = {.size = 0};
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(to.magic, magic, sizeof to.magic);
    mutex_lock(&memory_lock);
    const struct memory_block *b = memory_block_at(p);
    bool good = b && b->kind == MEMORY_POOL && b->pool->slabs.file;
    if (good) {
        to.offset = memory_slab_offset(&b->pool->slabs, p);
        to.size = memory_range_end(&b->node) - p;
    }
    mutex_unlock(&memory_lock);
    if (!good)
        return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    memcpy(out, &to, sizeof to);
    return CUDA_SUCCESS;
}

// Maps the units of the file that hold the allocation at addresses of this process.
static struct memory_range *map(const struct CUmemPoolHandle_st *p, const struct place *from)
{
    uint64_t first = from->offset & ~(uint64_t)(MEMORY_UNIT - 1);
    uint64_t end = (from->offset + from->size + MEMORY_UNIT - 1) & ~(uint64_t)(MEMORY_UNIT - 1);
    struct memory_range *r = memory_slab_addresses(end - first, MEMORY_UNIT, 0);
    if (r && memory_file_map(p->file.fd, first, r->base, end - first)) {
        memory_slab_addresses_free(r);
        return NULL;
    }
    if (r)
        space_set(r->base, r->size, SPACE_READ | SPACE_WRITE);
    return r;
}

static CUresult import_pointer(CUdeviceptr *out, CUmemoryPool p, const struct place *from,
                               struct memory_block *b)
{
    uint64_t end;
    struct memory_label l;
    uint64_t size;
    if (!memory_pool_known(p) || !p->imported || memcmp(from->magic, magic, sizeof from->magic) != 0 ||
        !memory_file_read(p->file.fd, magic, &size, &l) || !from->size ||
        __builtin_add_overflow(from->offset, from->size, &end) || end > size)
        return CUDA_ERROR_INVALID_VALUE;
    b->piece = map(p, from);
    if (!b->piece)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory_pool_take(p, b, b->piece->base + from->offset % MEMORY_UNIT, from->size);
    *out = b->node.base;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool p, CUmemPoolPtrExportData *data)
{
    struct place from;
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!out || !data)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&from, data, sizeof from);
    struct memory_block *b = memory_block_new(MEMORY_POOL, NULL);
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mutex_lock(&memory_lock);
    r = import_pointer(out, p, &from, b);
    mutex_unlock(&memory_lock);
    if (r)
        mem_free(b);
    return r;
}
