// SPDX-License-Identifier: MIT
// The device's memory, as the files that manage it share it.
//
//   addresses   ── 2 MiB units of the device's range: taken by chunks and by reservations
//   chunk       ── a run of units with memory mapped behind them and one set of rights
//   slabs       ── chunks that are cut into pieces for allocations: one set for the application, one for
//                  internal use, one for each pool
//   block       ── one allocation, mapping or registration of the application, with its exact bounds
//
// The alias of a unit, once mapped, stays mapped, readable and writable: memory is taken away by replacing
// the mapping with an empty one in one step. A kernel that checked its rights just before they were withdrawn
// therefore never faults for real; it reads zeros, or writes bytes that nobody reads.
//
// memory_lock guards everything here; functions that take it themselves say so.
#ifndef MOAT_CPU_MEMORY_H
#define MOAT_CPU_MEMORY_H

#include "cpu/config.h"
#include "cpu/cpu.h"

enum { MEMORY_PAGE = 4096, MEMORY_UNIT = 2 << 20, MEMORY_GRANULE = 512 };

extern pthread_mutex_t memory_lock;  // rank: inside a context's lock, outside the space's

// --- ranges (memory_range.c): trees by address of ranges that do not overlap -------------------------------

struct memory_range {
    uint64_t base, size;  // size > 0
    uint64_t most;        // largest size in the subtree
    struct memory_range *left, *right;
    uint32_t priority;  // at least that of the children
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
struct memory_range *memory_range_at(const struct memory_tree *t, uint64_t addr);     // holds addr; or NULL
struct memory_range *memory_range_after(const struct memory_tree *t, uint64_t addr);  // first with end > addr
// Returns the lowest range with room for size bytes at a multiple of align, NULL if there is none; *at is
// their address.
struct memory_range *memory_range_fit(const struct memory_tree *t, uint64_t size, uint64_t align,
                                      uint64_t *at);
bool memory_range_valid(const struct memory_tree *t);

// Trees of free ranges. memory_range_take cuts [at, at + size) out of r, which must hold it, and returns the
// cut as a range of the caller's (NULL if out of memory). memory_range_give returns a range to the tree,
// joins it with its free neighbours inside [low, high) and returns the joined range.
struct memory_range *memory_range_take(struct memory_tree *t, struct memory_range *r, uint64_t at,
                                       uint64_t size);
struct memory_range *memory_range_give(struct memory_tree *t, struct memory_range *r, uint64_t low,
                                       uint64_t high);

// --- chunks and slabs (memory_slab.c) ----------------------------------------------------------------------

struct memory_slabs {
    struct memory_tree chunks, free;
    uint64_t granule;          // pieces start at multiples of it
    uint64_t chunk;            // least size of a chunk
    uint64_t keep;             // bytes of empty chunks that are kept
    uint64_t reserved, high;   // bytes of all chunks; their maximum
    uint64_t empty;            // bytes of chunks without a taken piece
    uint64_t limit;            // maximum of reserved; 0: none
    bool host;                 // chunks are host memory
    struct memory_file *file;  // chunks are cut from it; NULL: they are private pages
    int device;                // chunks are charged to it
};

// Returns the set of a device, from an array with one set for each device.
static inline struct memory_slabs *memory_slab_of(struct memory_slabs *all, int device)
{
    all[device].device = device;
    return &all[device];
}

// Returns a piece of at least size bytes; NULL if out of memory.
struct memory_range *memory_slab_take(struct memory_slabs *s, uint64_t size, uint64_t align);
void memory_slab_give(struct memory_slabs *s, struct memory_range *r);
// Frees empty chunks until no more than keep bytes are reserved.
void memory_slab_trim(struct memory_slabs *s, uint64_t keep);
const struct memory_range *memory_slab_chunk(const struct memory_slabs *s, uint64_t addr);
bool memory_slab_valid(const struct memory_slabs *s);

// Returns the offset of addr in the file that the set's chunks are cut from.
uint64_t memory_slab_offset(const struct memory_slabs *s, uint64_t addr);
// Returns the `share` member of the chunk that holds addr; it is NULL while other processes cannot open the
// chunk.
struct memory_share **memory_slab_share(const struct memory_slabs *s, uint64_t addr);

// Reserves addresses of the device, in units. at: a preferred address; 0: none. Returns NULL if no addresses
// are left.
struct memory_range *memory_slab_addresses(uint64_t size, uint64_t align, uint64_t at);
void memory_slab_addresses_free(struct memory_range *r);
// Replaces the bytes of [addr, addr + size) by an empty mapping. Returns 0 or -ENOMEM.
int memory_slab_clear(uint64_t addr, uint64_t size);
// Charges size bytes to a device's memory. Returns false if the device does not have so much left.
bool memory_slab_charge(int device, uint64_t size);
void memory_slab_uncharge(int device, uint64_t size);
uint64_t memory_slab_used(int device);

extern struct memory_slabs memory_plain[CONFIG_DEVICES];  // for cuMemAlloc; accessed by memory_slab_of

// --- files (memory_file.c) ---------------------------------------------------------------------------------

// The label behind the bytes of a file; a process that imports the file reads it.
struct memory_label {
    char magic[16];  // of the kind of file
    union {
        CUmemAllocationProp physical;
        CUmemPoolProps pool;
    };
};

// A file that pieces are cut from, in units.
struct memory_file {
    int fd;  // valid if made
    bool made;
    struct memory_tree room;
};

// Makes the file unless it is made. Returns 0 or -ENOMEM.
int memory_file_make(struct memory_file *f, const struct memory_label *label);
void memory_file_end(struct memory_file *f);  // all pieces must have been returned
struct memory_range *memory_file_take(struct memory_file *f, uint64_t size);
void memory_file_give(struct memory_file *f, struct memory_range *r);  // discards the contents
// Maps part of a file at [addr, addr + size). Returns 0 or -ENOMEM.
int memory_file_map(int fd, uint64_t offset, uint64_t addr, uint64_t size);

int memory_file_new(uint64_t size, const struct memory_label *label);  // returns a descriptor or -ENOMEM
// Returns true if fd was made by memory_file_new with that magic, and stores its size and label.
bool memory_file_read(int fd, const char *magic, uint64_t *size, struct memory_label *label);

// --- blocks (memory_block.c) -------------------------------------------------------------------------------

enum memory_kind {
    MEMORY_PLAIN,
    MEMORY_POOL,
    MEMORY_MAPPED,
    MEMORY_VARIABLE,
    MEMORY_MANAGED,  // managed variables too, which have no pages of their own
    MEMORY_HOST,
    MEMORY_REGISTERED,
    MEMORY_GRAPH,   // allocated by a graph, which owns the piece
    MEMORY_OPENED,  // memory of another process, opened by a handle
};

struct memory_block {
    struct memory_range node;  // first; the exact bounds
    enum memory_kind kind;
    uint8_t rights;       // of copies; also of kernels, except for constants
    uint8_t host_rights;  // MEMORY_MAPPED: rights of the host at the same address
    uint32_t access;      // MEMORY_MAPPED: two bits for each device; rights is the union of all devices
    unsigned flags;       // as the application passed them
    struct CUctx_st *ctx;
    int device;                  // of the context, or where the pool or physical memory lies
    uint64_t id;                 // never used twice
    struct memory_range *piece;  // MEMORY_PLAIN, MEMORY_POOL: piece of slabs
    void *pages;                 // MEMORY_HOST, MEMORY_MANAGED: its mapping, whole pages
    struct CUmemPoolHandle_st *pool;
    struct memory_physical *physical;  // MEMORY_MAPPED
    struct graph_memory *graph;        // MEMORY_GRAPH
    struct ipc_opened *opened;         // MEMORY_OPENED
    bool exported;                     // MEMORY_PLAIN: a handle of it exists
    int sync_memops;
    // MEMORY_MANAGED, as last advised
    bool read_mostly;
    unsigned accessed_by;  // one bit for each device, then one for the host
    CUmemLocation preferred, prefetched;
};

// Makes a block that is not in the tree yet. Returns NULL if out of memory.
struct memory_block *memory_block_new(enum memory_kind kind, struct CUctx_st *ctx);
void memory_block_add(struct memory_block *b, uint64_t base, uint64_t size);
void memory_block_remove(struct memory_block *b);
struct memory_block *memory_block_at(uint64_t addr);
struct memory_block *memory_block_after(uint64_t addr);
bool memory_block_touches(uint64_t base, uint64_t size);
bool memory_block_is_host(const struct memory_block *b);  // whether the host can dereference its address
// Returns the context's next block at or after from.
struct memory_block *memory_block_of(struct CUctx_st *ctx, uint64_t from);

// Result of checking [addr, addr + size) for a copy.
enum memory_where {
    MEMORY_BAD,      // no allocation holds the range, or a right is missing
    MEMORY_UNKNOWN,  // not ours: pageable memory, if anything
    MEMORY_ON_DEVICE,
    MEMORY_PINNED,  // host memory that stays resident
    MEMORY_EITHER,  // managed
};
enum memory_where memory_block_check(uint64_t addr, uint64_t size, unsigned rights);  // takes the lock

// --- memory that other processes may open (memory_share.c, ipc_memory.c) -----------------------------------

struct memory_share {
    int fd;               // descriptor of the file that holds the bytes
    uint64_t base, size;  // of the chunk
    _Atomic uint64_t *ids;
};

// memory_share_new moves the bytes of a chunk to a file; it must be called between memory_share_pause and
// memory_share_resume, when nobody writes. Returns NULL if out of memory; the chunk is unchanged then.
// memory_share_free puts an empty mapping in the place of the file.
struct memory_share *memory_share_new(uint64_t base, uint64_t size);
void memory_share_free(struct memory_share *s);
_Atomic uint64_t *memory_share_id(const struct memory_share *s, uint64_t addr);
uint64_t memory_share_ids_size(uint64_t size);  // size of the ids behind the bytes of a chunk's file

// Threads other than the pool's hold it for reading while they write device memory. Rank: outside
// memory_lock.
extern pthread_rwlock_t memory_share_lock;
void memory_share_pause(void);  // takes the lock for writing and pauses the pool
void memory_share_resume(void);

void ipc_memory_freed(struct memory_block *b);    // MEMORY_PLAIN that was exported
void ipc_memory_release(struct memory_block *b);  // MEMORY_OPENED; the block must be out of the tree

// --- the rest ----------------------------------------------------------------------------------------------

// Returns the error of device_ready or of the current context, if there is one: for calls that need no
// context.
CUresult memory_map_ready(void);
uint64_t memory_map_reservation(uint64_t addr, uint64_t *size);  // base of the one that holds addr; 0: none
bool memory_map_properties(const struct memory_block *b, CUmemAllocationProp *out);
// Returns the chunk that a block of a pool lies in.
const struct memory_range *memory_pool_chunk(const struct memory_block *b);
// These free an allocation of the application. The block must be out of the tree, and nothing may use it any
// more.
void memory_plain_release(struct memory_block *b);
void memory_host_release(struct memory_block *b);  // MEMORY_HOST, MEMORY_MANAGED, MEMORY_REGISTERED
void memory_pool_release(struct memory_block *b);
// Returns memory that pools keep beyond their thresholds to the device; all: everything that they keep.
void memory_pool_trim(bool all);
void memory_heap_context_free(struct CUctx_st *ctx);  // takes the lock; no kernel may run
bool memory_heap_valid(struct CUctx_st *ctx);         // no kernel may run
// Returns zeroed pages for host and device; NULL if out of memory.
void *memory_host_map(uint64_t size, uint64_t align);
// Checks that a location exists: a device, or the host (*host is true then). Returns
// CUDA_ERROR_INVALID_DEVICE or CUDA_ERROR_INVALID_VALUE if it does not.
CUresult memory_managed_location(CUmemLocationType type, int id, bool *host);
// Returns whether this process can read, or write, [p, p + size). all: every page is touched and made
// present; otherwise holes are detected and only the pages at both ends are touched.
bool memory_host_accessible(const void *p, size_t size, bool write, bool all);

#endif
