// SPDX-License-Identifier: MIT
// All memory that the program may pass to the driver: live blocks, and those freed recently.
//
//   memory     disjoint intervals, of all families but the next two
//   announced  blocks inside others, announced by pool allocators through moat.h or NVTX
//   handles    arrays, which have no addresses: by their handle
//
// `memory` and `handles` hold the live blocks, and of the last TRACK_FREED freed ones those whose place no
// other block has taken. Lookups never wait (index.h). A block is live from the return of the call that made
// it until just before the driver is asked to free it; from then on it is a freed block. So there is no
// moment at which an address that another thread is given could be taken for the old buffer's.
#ifndef MOAT_TRACK_TRACK_H
#define MOAT_TRACK_TRACK_H

#include "driver/driver.h"
#include "core/index.h"

enum {
    TRACK_FREED = 1 << 16,
    TRACK_MADE_BY_ANNOUNCEMENT = DRIVER_CALLS,  // used where a call's number stands otherwise
    TRACK_MADE_BY_NVTX,
    TRACK_MADE_BY_KERNEL,  // made by malloc in a kernel, and freed by free there
};

enum track_way {
    TRACK_BY_DEVICE,
    TRACK_BY_HOST,
    TRACK_BY_REGISTER,
    TRACK_BY_MAP,
    TRACK_BY_IPC,
    TRACK_BY_ARRAY,
    TRACK_BY_NEVER
};

enum track_family {
#define FAMILY(id, text, way, host, leaks, of_context) TRACK_##id,
#include "track/families.def"
#undef FAMILY
    TRACK_FAMILIES
};

struct track_family_row {
    const char *text;
    enum track_way freed_by;
    bool host, leaks, of_context;
};
extern const struct track_family_row track_families[TRACK_FAMILIES];

// The properties of a block that never change.
struct track_facts {
    enum track_family family;
    uint16_t made_by;  // enum driver_id, or TRACK_MADE_BY_*
    int16_t device;    // -1: host memory
    uint32_t made_stack;
    uint32_t thread;
    uint64_t serial;    // in order of allocation, from 1
    const void *owner;  // what it ends with: a context; for a variable, its module or library; may be NULL
    const char *name;   // of a variable; may be NULL
    uint64_t bytes;     // the size in memory, also of arrays, whose size in their index is 0
    uint32_t client;    // the client that the allocating thread acted for: see track_client_set
};

// All that a free accesses lies in one cache line.
struct track_block {
    _Alignas(64) struct index_item range;
    uint64_t freed_at;  // how many blocks were freed before it; protected by the lock of track.c
    // Set before `freed`, and again if the driver refused the free once. Relaxed: only reports read them.
    _Atomic uint32_t freed_stack;
    _Atomic uint16_t freed_by;
    _Atomic bool freed;
    // Only announced blocks in it are in use; set for good by a mode that cares. Relaxed: a launch beside it
    // may miss it.
    _Atomic bool pooled;
    struct track_facts facts;
};
_Static_assert(offsetof(struct track_block, facts.serial) == 64 && sizeof(struct track_block) == 128,
               "a free looks at one line, and a block takes two");

// A snapshot of a block.
struct track_copy {
    uint64_t base, size;
    struct track_facts facts;
    bool freed;
    uint16_t freed_by;
    uint32_t freed_stack;
};
struct track_copy track_copy(const struct track_block *b, bool freed);

// A process may act for others, its clients, identified by numbers that it chooses; 0 is the process itself.
// Each thread starts with 0 and sets the client that it acts for. Blocks that it makes, and errors found in
// its calls, belong to that client. moat does not check that a client uses only its own blocks.
void track_client_set(uint32_t client);
uint32_t track_client(void);

// A mode that keeps a table of its own about blocks. Its functions are called on the thread of the program's
// call, without a lock of track.c's.
struct track_listener {
    void (*made)(const struct track_copy *block);  // before the allocating call returns
    // After the driver has freed it. Another block may be at the address again: serials differ.
    void (*freed)(uint64_t base, uint64_t serial);
    void (*withdrawn)(uint64_t base, uint64_t end);  // announced blocks that overlap the range
    void (*divided)(uint64_t base, uint64_t bytes, uint64_t stride);  // see track_divided
    void (*pool)(uint64_t base, uint64_t end, bool is_one);           // see track_pool; may be NULL
};
void track_listen(const struct track_listener *listener);  // called once, while the guard starts

// A mode has mapped memory at new addresses that it will cut into slots of `stride` bytes, one for each
// block.
void track_divided(uint64_t base, uint64_t bytes, uint64_t stride);

void track_after_fork(void);

// Records a block that a call made. If out of memory, the block is counted (GUARD_UNTRACKED) and not
// recorded.
void track_made(enum track_family family, enum driver_id call, uint64_t base, uint64_t size);
void track_made_for(enum track_family family, unsigned call, uint64_t base, uint64_t size, const void *owner,
                    const char *name);

// Records a block that a graph will allocate whenever it runs. When it is valid is unknown: transfers with it
// are not checked.
void track_made_in_graph(enum driver_id call, uint64_t base, uint64_t size);

// Marks the block that starts at base as freed, before the driver is asked to free it. Returns false if there
// is none, or if it cannot be freed that way; the driver will refuse the call. track_not_freed undoes it if
// the driver refuses.
bool track_freeing(uint64_t base, enum track_way way, enum driver_id call);
void track_not_freed(uint64_t base);
void track_was_freed(uint64_t base);  // the driver has freed what track_freeing was last called for
void track_array_not_freed(uint64_t handle);

// Records that the driver returned the handle of an array that is not tracked; a freed array that had the
// same handle is forgotten.
void track_array_foreign(uint64_t handle);

// Changes the size and name of the announced block that starts at base; the place of its announcement is
// kept.
void track_changed(uint64_t base, uint64_t size, const char *name);

// From now on an allocator hands the range out in announced blocks, and nothing else in it is in use; or no
// longer.
void track_pool(uint64_t base, uint64_t end, bool is_one);

// Removes an announced block.
void track_withdraw(uint64_t base);
void track_withdraw_range(uint64_t base, uint64_t end);  // all that overlap the range

// Marks all blocks of an owner, a context or a module, as freed.
void track_owner_gone(const void *owner, enum driver_id call);

// Return NULL if there is no such block. Call them inside an epoch section.
struct track_block *track_live(uint64_t address);   // the live block that contains the address
struct track_block *track_freed(uint64_t address);  // one freed recently
struct track_block *track_handle(uint64_t handle);  // an array
struct track_block *track_freed_handle(uint64_t handle);
struct track_block *track_announced(uint64_t address);  // the announced block there
// Returns the last live block that starts at or before the address, if it ends less than `near` bytes before
// it.
struct track_block *track_before(uint64_t address, uint64_t near);
// the first live block that starts in (address, end)
struct track_block *track_after(uint64_t address, uint64_t end);

size_t track_count(void);  // live blocks; needs no epoch section

// Returns a number that grows whenever a pointer may have lost memory that it could be used for: a block was
// freed or forgotten, or one was announced inside another. As long as it stays the same, each address in a
// live block is in that block.
uint64_t track_losses(void);

// Returns a number that grows after each change of what the lookups above find: a block was made, freed,
// forgotten, announced or withdrawn, or given a pool. A thread that loads it before it looks something up,
// and finds the same number later, would find the same again.
uint64_t track_changes(void);
void track_set_pooled(struct track_block *b);  // sets `pooled`

// Blocks up to this serial were inherited from the process that forked this one.
uint64_t track_inherited(void);

// Copy the blocks freed last, latest first, or the live device blocks made last, youngest first. Return how
// many, at most `most`. They need no epoch section.
unsigned track_last_freed(struct track_copy *copies, unsigned most);
unsigned track_last_made(struct track_copy *copies, unsigned most);

// Returns how many blocks have been freed; relaxed.
uint64_t track_frees(void);
// Copies the first block that starts in (address, end) and was freed when `since` blocks or more had been. It
// needs no epoch section.
bool track_freed_after(uint64_t address, uint64_t end, uint64_t since, struct track_copy *out);

static inline uint64_t track_end(const struct track_block *b)
{
    return b->range.base + b->range.size;
}

// Calls f for each live block, a struct track_block, until it returns nonzero, and returns that value.
int track_each(int (*f)(struct index_item *, void *), void *context);

#endif
