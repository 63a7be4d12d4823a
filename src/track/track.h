// SPDX-License-Identifier: MIT
// Every piece of memory that the program may give to the driver: what lives, and what was freed lately.
//
//   memory     intervals that do not overlap, of all families but the next two
//   announced  blocks inside others, told by pool allocators through moat.h or NVTX
//   handles    arrays, which have no addresses: by their handle
//
// In memory and handles are live blocks and those of the last TRACK_FREED that were freed whose place no other has
// taken. Lookups never wait (index.h). A block is live from the return of the call that made it until just before the
// driver is asked to free it; from then on it is a freed one, so that there is no moment at which an address that another
// thread is given could be taken for the old buffer's.
#ifndef MOAT_TRACK_TRACK_H
#define MOAT_TRACK_TRACK_H

#include "driver/driver.h"
#include "core/index.h"

enum {
    TRACK_FREED = 1 << 16,
    TRACK_MADE_BY_ANNOUNCEMENT = DRIVER_CALLS,  // where a call's number stands otherwise
    TRACK_MADE_BY_NVTX,
    TRACK_MADE_BY_KERNEL,  // by its malloc, and freed by its free
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

// What does not change in a block's life.
struct track_facts {
    enum track_family family;
    uint16_t made_by;  // enum driver_id, or TRACK_MADE_BY_*
    int16_t device;    // -1: the host's
    uint32_t made_stack;
    uint32_t thread;
    uint64_t serial;    // in the order of allocation, from 1
    const void *owner;  // with what it goes: a context; for a variable, its module or library; may be NULL
    const char *name;   // of a variable; may be NULL
    uint64_t bytes;     // of memory: the size, but for arrays, whose size in their index is 0
    uint32_t client;    // for whom the thread acted that made it: see track_client_set
};

// What a free looks at lies in one line of memory.
struct track_block {
    _Alignas(64) struct index_item range;
    uint64_t freed_at;  // how many were freed before it; under the lock of track.c
    // Set before `freed`, and again if the driver refused once. Relaxed: they are read for reports.
    _Atomic uint32_t freed_stack;
    _Atomic uint16_t freed_by;
    _Atomic bool freed;
    struct track_facts facts;
};
_Static_assert(offsetof(struct track_block, facts.serial) == 64 && sizeof(struct track_block) == 128,
               "a free looks at one line, and a block takes two");

// A block as it was at one moment.
struct track_copy {
    uint64_t base, size;
    struct track_facts facts;
    bool freed;
    uint16_t freed_by;
    uint32_t freed_stack;
};
struct track_copy track_copy(const struct track_block *b, bool freed);

// A process may act for others, its clients, which have numbers that it chooses; 0 is the process itself.
// Each thread says for whom it acts from now on, and begins with 0. What it makes, and what is found in its
// calls, is that client's. Nobody checks that a client keeps to blocks of its own.
void track_client_set(uint32_t client);
uint32_t track_client(void);

void track_after_fork(void);

// A block was made by a call. Without memory it is counted and not known.
void track_made(enum track_family family, enum driver_id call, uint64_t base, uint64_t size);
void track_made_for(enum track_family family, unsigned call, uint64_t base, uint64_t size, const void *owner,
                    const char *name);

// A graph will allocate there whenever it runs. What is valid when is not known: transfers with it pass.
void track_made_in_graph(enum driver_id call, uint64_t base, uint64_t size);

// The driver is about to be asked to free what starts at base: it is a freed block from now on. False: there is none, or
// it cannot be freed that way, and the driver will say so. track_not_freed undoes it if the driver refuses.
bool track_freeing(uint64_t base, enum track_way way, enum driver_id call);
void track_not_freed(uint64_t base);
void track_array_not_freed(uint64_t handle);

// The driver gave out a handle of an array that is not tracked, maybe one that another array had.
void track_array_foreign(uint64_t handle);

// An announced block that starts there has another size or name; where it was announced stays.
void track_changed(uint64_t base, uint64_t size, const char *name);

// An announced block is no longer one.
void track_withdraw(uint64_t base);
void track_withdraw_range(uint64_t base, uint64_t end);  // all of them there

// All blocks of an owner, a context or a module, are gone.
void track_owner_gone(const void *owner, enum driver_id call);

// Inside an epoch section. NULL: none.
struct track_block *track_live(uint64_t address);   // that contains the address
struct track_block *track_freed(uint64_t address);  // freed lately
struct track_block *track_handle(uint64_t handle);  // an array
struct track_block *track_freed_handle(uint64_t handle);
struct track_block *track_announced(uint64_t address);  // the announced block there
// The last live one that starts at or before the address, if it ends less than `near` bytes before it.
struct track_block *track_before(uint64_t address, uint64_t near);
struct track_block *track_after(uint64_t address, uint64_t end);  // the first live one that starts between

size_t track_count(void);  // live blocks. No epoch section

// Blocks up to this serial are those of the process that this one is the fork of.
uint64_t track_inherited(void);

// Blocks that went last, the latest first, and live ones that came last: how many of at most `most`. No epoch section.
unsigned track_last_freed(struct track_copy *copies, unsigned most);
unsigned track_last_made(struct track_copy *copies, unsigned most);

static inline uint64_t track_end(const struct track_block *b)
{
    return b->range.base + b->range.size;
}

// Calls f for each live block, a struct track_block, until it returns nonzero, and returns that.
int track_each(int (*f)(struct index_item *, void *), void *context);

#endif
