// SPDX-License-Identifier: MIT
// Virtual memory management: reservations of addresses, physical memory, and mappings of one to the other.
//
// Physical memory is a piece of one common file in memory without a name; memory that may be exported has a
// file of its own. A mapping has no rights in the device's tables until cuMemSetAccess sets them.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/memory.h"
#include "exec/space.h"

struct reservation {
    struct memory_range node;    // first
    struct memory_range *place;  // of the device's addresses
};

struct memory_physical {
    struct memory_range node;  // first; base is the handle, size 1
    uint64_t size, offset;
    CUmemAllocationProp prop;
    int fd;
    struct memory_range *place;  // in the common file; NULL: fd is its own
    unsigned handles, maps;      // it lives while handles + maps > 0
    bool host, charged;
};

static struct memory_tree reservations, physicals;
static struct memory_file common;
static const char magic[16] = "moat's physical";
static uint64_t next_handle = 0x1000;
static uint64_t reserved_bytes;  // of all reservations

CUresult memory_map_ready(void)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    bool none = r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return none ? device_ready() : r;
}

static bool in_units(uint64_t n)
{
    return n % MEMORY_UNIT == 0;
}

// --- addresses ---------------------------------------------------------------------------------------------

// Returns whether that many more bytes may be reserved. An eighth of the addresses is left to allocations, to
// modules and to the parameters of launches, which would fail for ever otherwise.
static bool may_reserve(uint64_t size)
{
    if (space_init())
        return false;
    uint64_t most = space.device_size - space.device_size / 8;
    return size <= most && reserved_bytes <= most - size;
}

static CUresult reserve(CUdeviceptr *out, uint64_t size, uint64_t align, uint64_t at)
{
    struct reservation *r = mem_zalloc(1, sizeof *r);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mutex_lock(&memory_lock);
    r->place = may_reserve(size) ? memory_slab_addresses(size, align, at) : NULL;
    if (r->place) {
        reserved_bytes += size;
        r->node.base = r->place->base;
        r->node.size = size;
        memory_range_insert(&reservations, &r->node);
        *out = r->node.base;
        // The whole reservation is one mapping: parts that are unmapped later merge with it instead of using
        // up the limited number of mappings of a process. A failure changes nothing.
        memory_slab_clear(r->node.base, size);
    }
    mutex_unlock(&memory_lock);
    if (r->place)
        return CUDA_SUCCESS;
    mem_free(r);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t align, CUdeviceptr at,
                             unsigned long long flags)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!out || !size || !in_units(size) || !in_units(at) || flags || (align & (align - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    return reserve(out, size, align ? align : MEMORY_UNIT, at);
}

CUresult cuMemAddressFree(CUdeviceptr p, size_t size)
{
    CUresult ready = memory_map_ready();
    if (ready)
        return ready;
    mutex_lock(&memory_lock);
    struct reservation *r = (struct reservation *)memory_range_at(&reservations, p);
    bool good = r && r->node.base == p && r->node.size == size && !memory_block_touches(p, size);
    if (good) {
        memory_range_remove(&reservations, &r->node);
        memory_slab_addresses_free(r->place);
        reserved_bytes -= size;
        mem_free(r);
    }
    mutex_unlock(&memory_lock);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool reserved(uint64_t addr, uint64_t size)
{
    while (size) {
        const struct memory_range *r = memory_range_at(&reservations, addr);
        if (!r)
            return false;
        uint64_t left = memory_range_end(r) - addr;
        if (left > size)
            left = size;
        addr += left;
        size -= left;
    }
    return true;
}

// --- physical memory ---------------------------------------------------------------------------------------

static int take_common(struct memory_physical *m)
{
    static const struct memory_label nobodys;
    m->place = memory_file_make(&common, &nobodys) ? NULL : memory_file_take(&common, m->size);
    if (!m->place)
        return -ENOMEM;
    m->fd = common.fd;
    m->offset = m->place->base;
    return 0;
}

static int take_own(struct memory_physical *m)
{
    struct memory_label l = {.physical = m->prop};
    memcpy(l.magic, magic, sizeof l.magic);
    m->fd = memory_file_new(m->size, &l);
    return m->fd < 0 ? -ENOMEM : 0;
}

static struct memory_physical *add(struct memory_physical *m)
{
    m->node.base = next_handle;
    m->node.size = 1;
    next_handle += 16;
    m->handles = 1;
    memory_range_insert(&physicals, &m->node);
    return m;
}

static struct memory_physical *find(CUmemGenericAllocationHandle handle)
{
    return (struct memory_physical *)memory_range_at(&physicals, handle);
}

static void drop(struct memory_physical *m)
{
    if (m->handles || m->maps)
        return;
    memory_range_remove(&physicals, &m->node);
    if (m->place) {
        memory_file_give(&common, m->place);
    } else {
        close(m->fd);
    }
    if (m->charged)
        memory_slab_uncharge(m->prop.location.id, m->size);
    mem_free(m);
}

static CUresult check_prop(const CUmemAllocationProp *p, bool *host)
{
    if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->requestedHandleTypes == CU_MEM_HANDLE_TYPE_FABRIC)
        return CUDA_ERROR_NOT_PERMITTED;
    if (p->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_managed_location(p->location.type, p->location.id, host);
}

static bool charge(int device, uint64_t size)
{
    if (memory_slab_charge(device, size))
        return true;
    memory_slab_trim(memory_slab_of(memory_plain, device), 0);
    memory_pool_trim(true);
    return memory_slab_charge(device, size);
}

static CUresult create(struct memory_physical *m)
{
    m->charged = !m->host && charge(m->prop.location.id, m->size);
    if (!m->host && !m->charged)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool own = m->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (own ? take_own(m) : take_common(m)) {
        if (m->charged)
            memory_slab_uncharge(m->prop.location.id, m->size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    add(m);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    bool host;
    if (!out || !size || !in_units(size) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    r = check_prop(prop, &host);
    if (r)
        return r;
    struct memory_physical *m = mem_zalloc(1, sizeof *m);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->size = size;
    m->prop = *prop;
    m->host = host;
    mutex_lock(&memory_lock);
    r = create(m);
    if (!r)
        *out = m->node.base;
    mutex_unlock(&memory_lock);
    if (r)
        mem_free(m);
    return r;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    mutex_lock(&memory_lock);
    struct memory_physical *m = find(handle);
    bool good = m && m->handles;
    if (good) {
        m->handles--;
        drop(m);
    }
    mutex_unlock(&memory_lock);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *addr)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    struct memory_block *b = memory_block_at((uintptr_t)addr);
    bool good = b && b->kind == MEMORY_MAPPED;
    if (good) {
        b->physical->handles++;
        *out = b->physical->node.base;
    }
    mutex_unlock(&memory_lock);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    const struct memory_physical *m = find(handle);
    if (m)
        *out = m->prop;
    mutex_unlock(&memory_lock);
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    bool host;
    if (!out ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    r = check_prop(prop, &host);
    if (!r)
        *out = MEMORY_UNIT;
    return r;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    const struct memory_physical *m = find(handle);
    int fd = m && !m->place ? fcntl(m->fd, F_DUPFD_CLOEXEC, 0) : -1;
    mutex_unlock(&memory_lock);
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &fd, sizeof fd);
    return CUDA_SUCCESS;
}

// Reads the label of a file that take_own made. Returns false if it is none. A device that this process does
// not have becomes device 0.
static bool read_label(int fd, struct memory_label *l, uint64_t *size)
{
    bool host;
    if (!memory_file_read(fd, magic, size, l))
        return false;
    if (l->physical.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        (unsigned)l->physical.location.id >= device_count())
        l->physical.location.id = 0;
    return !check_prop(&l->physical, &host);
}

// The descriptor stays the caller's. Only files that cannot shrink are accepted: a mapping of another file
// could kill the process.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *handle,
                                        CUmemAllocationHandleType type)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    int fd = (int)(intptr_t)handle;
    struct memory_label l;
    uint64_t size;
    if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fd < 0 || !read_label(fd, &l, &size))
        return CUDA_ERROR_INVALID_VALUE;
    struct memory_physical *m = mem_zalloc(1, sizeof *m);
    int mine = m ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (mine < 0) {
        mem_free(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->fd = mine;
    m->size = size;
    m->prop = l.physical;
    m->host = l.physical.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    mutex_lock(&memory_lock);
    // The memory may have been made by another process: it is charged here once more, or not at all if there
    // is no room.
    m->charged = !m->host && memory_slab_charge(m->prop.location.id, m->size);
    *out = add(m)->node.base;
    mutex_unlock(&memory_lock);
    return CUDA_SUCCESS;
}

// --- mappings ----------------------------------------------------------------------------------------------

static CUresult map(uint64_t p, uint64_t size, struct memory_physical *m, struct memory_block *b)
{
    if (!reserved(p, size) || memory_block_touches(p, size))
        return CUDA_ERROR_INVALID_VALUE;
    if (memory_file_map(m->fd, m->offset, p, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->rights = 0;
    b->physical = m;
    b->device = m->host ? 0 : m->prop.location.id;
    m->maps++;
    memory_block_add(b, p, size);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr p, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!size || !in_units(p) || !in_units(size) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct memory_block *b = memory_block_new(MEMORY_MAPPED, NULL);
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mutex_lock(&memory_lock);
    struct memory_physical *m = find(handle);
    if (!m)
        r = CUDA_ERROR_INVALID_VALUE;
    else if (offset || size != m->size)
        r = CUDA_ERROR_NOT_SUPPORTED;
    else
        r = map(p, size, m, b);
    mutex_unlock(&memory_lock);
    if (r)
        mem_free(b);
    return r;
}

// Returns whether every mapping that [p, p + size) touches lies inside of it; full: and whether there is no
// gap.
static bool whole_mappings(uint64_t p, uint64_t size, bool full)
{
    uint64_t end = p + size, at = p;
    struct memory_block *b = memory_block_after(p);
    for (; b && b->node.base < end; b = memory_block_after(at)) {
        if (b->kind != MEMORY_MAPPED || b->node.base < p || memory_range_end(&b->node) > end)
            return false;
        if (full && b->node.base != at)
            return false;
        at = memory_range_end(&b->node);
    }
    return !full || at == end;
}

// Maps the bytes of a block at the device's address for the host, or nothing if rights == 0.
static int show_to_host(struct memory_block *b, unsigned rights)
{
    int protection = (rights & SPACE_READ ? PROT_READ : 0) | (rights & SPACE_WRITE ? PROT_WRITE : 0);
    void *want = (void *)(uintptr_t)b->node.base;
    const struct memory_physical *m = b->physical;
    void *got = rights ? mmap(want, b->node.size, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, m->fd,
                              (off_t)m->offset)
                       : mmap(want, b->node.size, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (got != want)
        return -ENOMEM;
    b->host_rights = (uint8_t)rights;
    return 0;
}

static void unmap(struct memory_block *b)
{
    space_set(b->node.base, b->node.size, 0);
    if (b->host_rights)
        show_to_host(b, 0);
    memory_slab_clear(b->node.base, b->node.size);
    memory_block_remove(b);
    b->physical->maps--;
    drop(b->physical);
    mem_free(b);
}

CUresult cuMemUnmap(CUdeviceptr p, size_t size)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!size || !in_units(p) || !in_units(size) || p + size < p)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    bool good = reserved(p, size) && whole_mappings(p, size, false);
    while (good && memory_block_touches(p, size))
        unmap(memory_block_after(p));
    mutex_unlock(&memory_lock);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_access(const CUmemAccessDesc *d, bool *host)
{
    bool flags = d->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || d->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                 d->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return !flags || memory_managed_location(d->location.type, d->location.id, host)
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

enum { ACCESS_BITS = 2 };  // for each device in a block's access
_Static_assert(CONFIG_DEVICES *ACCESS_BITS <= 32, "each device has its bits");

// Sets the access of a device. There is one table of rights, so all devices may do what one may.
static void give_access(struct memory_block *b, int device, unsigned flags)
{
    unsigned at = (unsigned)device * ACCESS_BITS;
    b->access = (b->access & ~(3u << at)) | flags << at;
    b->rights = 0;
    for (uint32_t left = b->access; left; left >>= ACCESS_BITS)
        b->rights |= left & 3;
    space_set(b->node.base, b->node.size, b->rights);
}

// The flags equal the bits of space_right.
static CUresult set_access(uint64_t p, uint64_t size, const CUmemAccessDesc *d)
{
    bool host;
    CUresult r = check_access(d, &host);
    if (r)
        return r;
    struct memory_block *b;
    for (uint64_t at = p; host && at < p + size; at = memory_range_end(&b->node)) {
        b = memory_block_at(at);
        if (!b->physical->host)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    for (uint64_t at = p; at < p + size; at = memory_range_end(&b->node)) {
        b = memory_block_at(at);
        if (!host)
            give_access(b, d->location.id, d->flags);
        else if (show_to_host(b, d->flags))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr p, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!desc || !count || !size || !in_units(p) || !in_units(size) || p + size < p)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    if (!whole_mappings(p, size, true))
        r = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && !r; i++)
        r = set_access(p, size, &desc[i]);
    mutex_unlock(&memory_lock);
    return r;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr p)
{
    CUresult r = memory_map_ready();
    bool host;
    if (r)
        return r;
    if (!flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    r = memory_managed_location(location->type, location->id, &host);
    if (r)
        return r;
    mutex_lock(&memory_lock);
    const struct memory_block *b = memory_block_at(p);
    if (b && !host)
        *flags = b->kind == MEMORY_MAPPED ? b->access >> location->id * ACCESS_BITS & 3 : b->rights;
    else if (b)
        *flags = b->kind == MEMORY_MAPPED ? b->host_rights
                                          : memory_block_is_host(b) * CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    mutex_unlock(&memory_lock);
    return b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

uint64_t memory_map_reservation(uint64_t addr, uint64_t *size)
{
    const struct memory_range *r = memory_range_at(&reservations, addr);
    if (r)
        *size = r->size;
    return r ? r->base : 0;
}

bool memory_map_properties(const struct memory_block *b, CUmemAllocationProp *out)
{
    if (b->physical)
        *out = b->physical->prop;
    return b->physical;
}
