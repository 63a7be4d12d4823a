// SPDX-License-Identifier: MIT
// What the files that keep the device's memory share.
//
//   addresses   ── 2 MiB units of the device's range: taken by chunks and by reservations
//   chunk       ── a run of units with bytes behind it and rights as a whole
//   slabs       ── chunks that are cut into pieces for allocations: one set for the application, one for our own
//                  use, one for each pool
//   block       ── what the application sees as one allocation, mapping or registration, with its exact bounds
//
// The alias of a unit, once mapped, stays mapped and readable and writable: taking memory away replaces the mapping
// by an empty one, in one step. So a kernel that checked its rights a moment before they went never faults for
// real; it sees zeros, or writes bytes that nobody reads.
//
// Everything here is guarded by memory_lock, unless a function says that it takes the lock itself.
#ifndef MOAT_CPU_MEMORY_H
#define MOAT_CPU_MEMORY_H

#include "cpu/config.h"
#include "cpu/cpu.h"

enum { MEMORY_PAGE = 4096, MEMORY_UNIT = 2 << 20, MEMORY_GRANULE = 512 };

extern pthread_mutex_t memory_lock;  // rank: inside a context's lock, outside of the space's

// --- ranges (memory_range.c): trees by address of ranges that do not overlap --------------------------------

struct memory_range {
    uint64_t base, size;  // size > 0
    uint64_t most;        // largest size in the subtree
    struct memory_range *left, *right;
    uint32_t priority;  // not less than the children's
};

struct memory_tree {
    struct memory_range *root;
    uint32_t seed;
};

static inline uint64_t memory_range_end(const struct memory_range *r)
{
    return r->base + r->size;
}

void memory_range_insert(struct memory_tree *t, struct memory_range *r);
void memory_range_remove(struct memory_tree *t, struct memory_range *r);
struct memory_range *memory_range_at(const struct memory_tree *t, uint64_t addr);  // that holds addr, or NULL
struct memory_range *memory_range_after(const struct memory_tree *t, uint64_t addr);  // first with end > addr
// Lowest range with room for size bytes at a multiple of align; *at is where.
struct memory_range *memory_range_fit(const struct memory_tree *t, uint64_t size, uint64_t align,
                                      uint64_t *at);
bool memory_range_valid(const struct memory_tree *t);

// Free ranges: take cuts [at, at + size) out of r, which holds it, and gives the cut to the caller as a range of
// its own (NULL when out of memory); give returns one and joins it with neighbours inside [low, high).
struct memory_range *memory_range_take(struct memory_tree *t, struct memory_range *r, uint64_t at,
                                       uint64_t size);
struct memory_range *memory_range_give(struct memory_tree *t, struct memory_range *r, uint64_t low,
                                       uint64_t high);

// --- chunks and slabs (memory_slab.c) --------------------------------------------------------------------------

struct memory_slabs {
    struct memory_tree chunks, free;
    uint64_t granule;          // pieces start at multiples of it
    uint64_t chunk;            // least size of a chunk
    uint64_t keep;             // bytes of empty chunks that stay when pieces are given back
    uint64_t reserved, high;   // bytes of all chunks; the most there were
    uint64_t empty;            // bytes of chunks of which no piece is taken
    uint64_t limit;            // of reserved; 0: none
    bool host;                 // chunks are host memory
    struct memory_file *file;  // what chunks are cut from; NULL: they are private pages
    int device;                // whose memory they are charged to
};

// Of an array with one set for each device.
static inline struct memory_slabs *memory_slab_of(struct memory_slabs *all, int device)
{
    all[device].device = device;
    return &all[device];
}

// A piece of at least size bytes; NULL when out of memory.
struct memory_range *memory_slab_take(struct memory_slabs *s, uint64_t size, uint64_t align);
void memory_slab_give(struct memory_slabs *s, struct memory_range *r);
// Frees empty chunks until no more than keep bytes are reserved.
void memory_slab_trim(struct memory_slabs *s, uint64_t keep);
const struct memory_range *memory_slab_chunk(const struct memory_slabs *s, uint64_t addr);
bool memory_slab_valid(const struct memory_slabs *s);

// In the file that its chunks are cut from.
uint64_t memory_slab_offset(const struct memory_slabs *s, uint64_t addr);
// Where the chunk that holds addr keeps whether other processes may open it; NULL there: they may not.
struct memory_share **memory_slab_share(const struct memory_slabs *s, uint64_t addr);

// Addresses of the device, in units. at: a wish, 0 for none. NULL when there are none left.
struct memory_range *memory_slab_addresses(uint64_t size, uint64_t align, uint64_t at);
void memory_slab_addresses_free(struct memory_range *r);
// Puts an empty mapping where the bytes of [addr, addr + size) are. 0 or -ENOMEM.
int memory_slab_clear(uint64_t addr, uint64_t size);
// Bytes of a device that are taken, against what it has. false: there is no room for that many more.
bool memory_slab_charge(int device, uint64_t size);
void memory_slab_uncharge(int device, uint64_t size);
uint64_t memory_slab_used(int device);

extern struct memory_slabs memory_plain[CONFIG_DEVICES];  // cuMemAlloc, by memory_slab_of

// --- files (memory_file.c) -------------------------------------------------------------------------------------

// What a file has behind its bytes, for who imports it.
struct memory_label {
    char magic[16];  // of its kind
    union {
        CUmemAllocationProp physical;
        CUmemPoolProps pool;
    };
};

// One that pieces are cut from, in units.
struct memory_file {
    int fd;  // if it was made
    bool made;
    struct memory_tree room;
};

int memory_file_make(struct memory_file *f, const struct memory_label *label);  // unless it is; 0 or -ENOMEM
void memory_file_end(struct memory_file *f);                                    // all pieces are back
struct memory_range *memory_file_take(struct memory_file *f, uint64_t size);
void memory_file_give(struct memory_file *f, struct memory_range *r);  // what was in it is gone
// Puts part of a file where the bytes of [addr, addr + size) are. 0 or -ENOMEM.
int memory_file_map(int fd, uint64_t offset, uint64_t addr, uint64_t size);

int memory_file_new(uint64_t size, const struct memory_label *label);  // a descriptor or -ENOMEM
// Whether fd is one of memory_file_new with that magic, and of what size.
bool memory_file_read(int fd, const char *magic, uint64_t *size, struct memory_label *label);

// --- blocks (memory_block.c) -----------------------------------------------------------------------------------

enum memory_kind {
    MEMORY_PLAIN,
    MEMORY_POOL,
    MEMORY_MAPPED,
    MEMORY_VARIABLE,
    MEMORY_MANAGED,  // managed variables too: without pages of their own
    MEMORY_HOST,
    MEMORY_REGISTERED,
    MEMORY_GRAPH,   // what a graph allocates: the piece is the graph's
    MEMORY_OPENED,  // of another process, by a handle
};

struct memory_block {
    struct memory_range node;  // first; the exact bounds
    enum memory_kind kind;
    uint8_t rights;       // what copies may do; kernels too, but for constants
    uint8_t host_rights;  // MEMORY_MAPPED: what the host may do at the same address
    uint32_t access;  // MEMORY_MAPPED: two bits of rights for each device; rights are those of all together
    unsigned flags;   // as the application gave them
    struct CUctx_st *ctx;
    int device;                  // the context's, or where a pool or physical memory lies
    uint64_t id;                 // never used twice
    struct memory_range *piece;  // MEMORY_PLAIN, MEMORY_POOL: of slabs
    void *pages;                 // MEMORY_HOST, MEMORY_MANAGED: what was mapped for it, whole pages
    struct CUmemPoolHandle_st *pool;
    struct memory_physical *physical;  // MEMORY_MAPPED
    struct graph_memory *graph;        // MEMORY_GRAPH
    struct ipc_opened *opened;         // MEMORY_OPENED
    bool exported;                     // MEMORY_PLAIN: there is a handle of it
    int sync_memops;
    // MEMORY_MANAGED, as last advised
    bool read_mostly;
    unsigned accessed_by;  // a bit for each device, and one behind for the host
    CUmemLocation preferred, prefetched;
};

// NULL when out of memory. Not in the tree yet.
struct memory_block *memory_block_new(enum memory_kind kind, struct CUctx_st *ctx);
void memory_block_add(struct memory_block *b, uint64_t base, uint64_t size);
void memory_block_remove(struct memory_block *b);
struct memory_block *memory_block_at(uint64_t addr);
struct memory_block *memory_block_after(uint64_t addr);
bool memory_block_touches(uint64_t base, uint64_t size);
bool memory_block_is_host(const struct memory_block *b);                    // the host may follow its address
struct memory_block *memory_block_of(struct CUctx_st *ctx, uint64_t from);  // next at or after from

// What a copy may do with [addr, addr + size).
enum memory_where {
    MEMORY_BAD,      // a range that no allocation holds, or without the rights
    MEMORY_UNKNOWN,  // not ours: pageable memory, if anything
    MEMORY_ON_DEVICE,
    MEMORY_PINNED,  // host memory that stays
    MEMORY_EITHER,  // managed
};
enum memory_where memory_block_check(uint64_t addr, uint64_t size, unsigned rights);  // takes the lock

// --- memory that other processes may open (memory_share.c, ipc_memory.c) ------------------------------------------

struct memory_share {
    int fd;               // of the file that holds the bytes
    uint64_t base, size;  // of the chunk
    _Atomic uint64_t *ids;
};

// Moves the bytes of a chunk to a file, or gives that up. Between quiet and go_on: then nobody writes. NULL when out of
// memory; then all is as before.
struct memory_share *memory_share_new(uint64_t base, uint64_t size);
void memory_share_free(struct memory_share *s);
_Atomic uint64_t *memory_share_id(const struct memory_share *s, uint64_t addr);
uint64_t memory_share_ids_size(uint64_t size);  // what the file of a chunk has behind its bytes

// Held for reading by a thread that is not the pool's while it writes device memory. Rank: outside of memory_lock.
extern pthread_rwlock_t memory_share_lock;
void memory_share_quiet(void);  // takes it for writing, and stops the pool
void memory_share_go_on(void);

void ipc_memory_freed(struct memory_block *b);    // MEMORY_PLAIN that was exported
void ipc_memory_release(struct memory_block *b);  // MEMORY_OPENED; the block is out of the tree

// --- the rest ----------------------------------------------------------------------------------------------------

// For calls that need no context: an error of the current one counts all the same.
CUresult memory_map_ready(void);
uint64_t memory_map_reservation(uint64_t addr, uint64_t *size);  // that holds addr; 0 if none
bool memory_map_properties(const struct memory_block *b, CUmemAllocationProp *out);
// Of a block of a pool: the chunk that it lies in.
const struct memory_range *memory_pool_chunk(const struct memory_block *b);
// Frees what the application allocated; the block is out of the tree, nothing uses it any more.
void memory_plain_release(struct memory_block *b);
void memory_host_release(struct memory_block *b);  // MEMORY_HOST, MEMORY_MANAGED, MEMORY_REGISTERED
void memory_pool_release(struct memory_block *b);
void memory_pool_settle(bool all);  // lets go of what pools keep beyond their thresholds; all: of everything
void memory_heap_context_free(struct CUctx_st *ctx);   // takes the lock; no kernel runs
bool memory_heap_valid(struct CUctx_st *ctx);          // no kernel runs
void *memory_host_map(uint64_t size, uint64_t align);  // zeroed pages for both sides; NULL when out of memory
// A place that there is: a device, or the host. CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_VALUE.
CUresult memory_managed_location(CUmemLocationType type, int id, bool *host);
// Whether [p, p + size) can be read, or written, by this process. all: every page is tried, and made present; else
// holes are found and the pages at both ends are tried.
bool memory_host_accessible(const void *p, size_t size, bool write, bool all);

#endif
