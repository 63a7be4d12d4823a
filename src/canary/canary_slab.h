// SPDX-License-Identifier: MIT
// Slabs of canary mode: where buffers and canaries lie, and what is recorded of each buffer.
//
// Buffers whose slot has at most 64 KiB share slabs, at a fixed stride, so that one strided copy reads the
// canaries of thousands; each larger buffer has a slab of its own. A slot spans a multiple of 512 bytes: the
// buffer, the canary behind it (tail), and in its last 32 bytes the canary before the next buffer (head). The
// last bytes of a slab belong to what lies behind it: a scan reads a lone buffer by one copy of two rows of
// the same width, one that ends where the buffer starts (with the head at its end) and one that starts where
// the buffer ends (the tail). Managed, host and pool memory comes from the driver, with room for canaries;
// each such buffer is a slab of one slot.
//
// In a slab of several slots the canary of a slot is one sequence over the slot that depends on its address
// alone. It is written for all slots when the slab is opened, from where the buffer ends for which that is
// done, and is valid for buffers of that size or more until overwritten. So allocating and freeing such a
// buffer takes no driver call: the next scan verifies a freed slot, still in the name of the freed buffer,
// and only then is it reused.
#ifndef MOAT_CANARY_CANARY_SLAB_H
#define MOAT_CANARY_CANARY_SLAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/canary_bytes.h"
#include "canary/canary_suballoc.h"
#include "context/context.h"
#include "core/index.h"

enum canary_kind {
    CANARY_SUBALLOCATED,  // in memory that canary_suballoc.h divides
    CANARY_MANAGED,
    CANARY_HOST,
    CANARY_POOL,
    CANARY_SEPARATE,  // instead of the first: the driver allocates each buffer, see canary_managed.h
};

struct canary_slab;
struct canary_place;
struct canary_buffer;
struct canary_occasion;

// The properties of a kind of memory.
struct canary_memory {
    enum canary_kind kind;
    uint64_t offset;                   // of a buffer in the driver's allocation
    uint64_t (*bytes)(uint64_t size);  // bytes of the allocation from that offset on
    bool direct;                       // the host reads and writes its canaries in place
    bool tails_rarely;                 // if direct: only whole scans read the tails
    // If direct, canary beyond head and tail; NULL if there is none. write_more writes it; verify_more
    // returns true for damage that was not reported before.
    void (*write_more)(const struct canary_place *place);
    bool (*verify_more)(struct canary_slab *s, const struct canary_buffer *b,
                        const struct canary_occasion *o);
    // For CANARY_SEPARATE. take allocates memory of the driver's and returns false if there is none; placed
    // is called when the canaries of a buffer are in place.
    bool (*take)(uint64_t bytes, CUdeviceptr *real);
    void (*placed)(const struct context *ctx, CUdeviceptr base, uint64_t size);
};

// By kind, except CANARY_SEPARATE.
extern const struct canary_memory canary_slab_memory[CANARY_SEPARATE];

// One thread at a time writes, the one that has taken the slot or withdrawn its buffer; see canary_slot_read.
struct canary_slot {
    _Atomic uint32_t seq;  // sequence counter of a seqlock: odd while the members below change
    // Low half: sides that have been reported, a bit each. High half: how often these were reset.
    _Atomic uint64_t reported;
    _Atomic uint64_t size;        // of the buffer; 0: none
    _Atomic uint64_t freed_size;  // size of the freed buffer that scans still verify, and IDLE; 0: none
    _Atomic uint64_t since;  // last scan that began before the canaries were in place or the buffer was freed
    _Atomic uint64_t seed[3];
    // under the store's lock
    uint32_t next;  // free slot, plus one
    uint32_t from;  // in a slab of several slots: the canary is valid from this offset to the slot's end
};

// Under the store's lock, from the slab's creation until it is retired:
//
//   1 <= slots; stride is a multiple of the unit; slots == 1 exactly if slot == &one
//   range.base <= base and base + slots * stride <= range.base + range.size
//   used <= fresh == high <= slots
//   ready == NULL or the memory is a pool's; is_ready or ready != NULL
//   if high > 0: 0 < least <= every buffer's size <= most <= stride - CANARY_HEAD - CANARY_TAIL_LEAST
//
// In a slab of several slots, where `free` is the length of the free list from first to last:
//
//   free == fresh - used == idle; each free slot is below fresh, has no buffer, and since < freed
//   open implies free > 0 or fresh < slots; unless the slab is unindexed, the converse holds too
//
// As since < freed for all free slots, checked >= freed means that a scan has verified each of them, and
// an empty slab may be closed.
struct canary_slab {
    struct index_item range;  // all of its memory
    const struct canary_memory *memory;
    struct context *ctx;
    CUcontext context;
    uint64_t base;  // of the first slot's buffer
    uint64_t stride;
    uint32_t slots;
    // Of several slots: offset of the canary in slots that no buffer has had. Before it they hold what the
    // memory held, zeros where it is fresh: programs read what they have not written.
    uint32_t filled_from;
    CUevent ready;  // pool memory: recorded behind its canaries' writes, then at its free; else NULL
    _Atomic bool unreadable;         // the driver refuses to copy from it: another device's memory, perhaps
    _Atomic bool is_ready;           // `ready` has been reached, or is NULL
    _Atomic uint64_t least, most;    // bounds of the sizes of all buffers it has had
    _Atomic uint32_t high;           // slots from here on have never been used
    _Atomic uint64_t freed;          // last scan that began before its last free, plus one
    _Atomic uint64_t checked;        // last scan that has verified all of its canaries
    CUmemoryPool pool;               // pool memory: the pool as the program named it
    _Atomic uint32_t pending_reads;  // pending readbacks, see canary_order.h
    uint64_t late_pass;              // pass that found one late; under the lock of canary_order.c
    struct canary_slab *next_postponed;       // postponed frees of the context, see canary_free.c
    uint64_t postponed_size;                  // size of the buffer, while its free is postponed
    bool postponed_until_ready;               // the free must wait for `ready`
    _Atomic uint32_t idle;                    // free slots. Relaxed: a hint whether there are any
    struct canary_fingerprint *fingerprints;  // of each slot; NULL: none yet. For one scan at a time
    // under the store's lock
    uint32_t first, last, used;  // free list, oldest first (slot numbers plus one); slots in use
    uint32_t fresh;              // slots from here on have never been taken
    bool open;
    bool unindexed;                    // not in the index
    bool mapped;                       // in memory of canary_mapped.h
    struct canary_slab *next;          // open slab of the same stride
    struct canary_slab *next_evicted;  // slab that had to make room, see canary_store.c
    struct canary_slot *slot, one;
};

// The first bytes of a freed buffer, as the last scan found them; valid while the slot's seq equals this one.
enum { CANARY_FINGERPRINT = 64 };
struct canary_fingerprint {
    uint32_t seq;
    bool taken;
    uint8_t bytes[CANARY_FINGERPRINT];
};

// Returns whether this is pool memory whose canaries one memset writes in stream order.
bool canary_slab_is_flat(const struct canary_slab *s, uint64_t size);

// A slot, and the buffer for which it is taken.
struct canary_place {
    struct canary_slab *slab;
    uint32_t number;
    uint64_t base, size;
    uint64_t clean;  // of a withdrawn buffer: kernels up to this one have not damaged it
    // of a taken slot: from this offset on the buffer has canary bytes, to be cleared; 0: it has none
    uint32_t clear_from;
};

// A consistent copy of a slot.
struct canary_buffer {
    uint64_t size;
    struct canary_seed seed;
    uint64_t reported;  // as in the slot
    uint32_t seq;
    bool freed;      // it is freed: if it is also idle, nobody may write into it
    bool idle;       // all work from before the free has ended
    bool changing;   // the slot was being changed: there may be a buffer that was not read
    bool withdrawn;  // it is being freed, and scans skip it; ...
    uint64_t clean;  // ... this is its place's `clean`
};

static inline uint64_t canary_slab_base(const struct canary_slab *s, uint32_t number)
{
    return s->base + number * s->stride;
}

static inline bool canary_slab_is_lone(const struct canary_slab *s)
{
    return s->slots == 1;
}

// A lone buffer in suballocated memory: what lies before it leaves room for a row.
static inline bool canary_slab_is_lone_suballocated(const struct canary_slab *s)
{
    return s->memory->kind == CANARY_SUBALLOCATED && canary_slab_is_lone(s);
}

// Canary bytes behind a buffer of this size; and the index of the first of them in the seed's sequence.
uint32_t canary_slab_tail(const struct canary_slab *s, uint64_t size);
static inline uint32_t canary_slab_phase(const struct canary_slab *s, uint64_t size)
{
    return s->slots > 1 ? (uint32_t)size : 0;
}
// The number encoded in a buffer's head: the stride in a slab of several slots, else the buffer's size.
static inline uint64_t canary_slab_head_number(const struct canary_slab *s, uint64_t size)
{
    return s->slots > 1 ? s->stride : size;
}

struct canary_seed canary_slab_seed(const struct canary_place *place);

// Returns whether the host reads and writes the slab's canaries in place.
static inline bool canary_slab_is_direct(const struct canary_slab *s)
{
    return s->memory->direct;
}

// Creates a slab that is not in the index yet. Returns NULL if out of memory. canary_slab_release is the
// callback for epoch_retire of range.retired.
struct canary_slab *canary_slab_new(struct context *ctx, const struct canary_memory *memory, uint32_t slots);
void canary_slab_release(struct epoch_node *node);

// Return whether the equations above struct canary_slab hold, under the store's lock: those of the slab
// alone, and those of its slots, which are all visited.
bool canary_slab_valid(const struct canary_slab *s);
bool canary_slab_slots_valid(const struct canary_slab *s);

// Bytes of a slot for a buffer of this size.
uint64_t canary_slab_stride(uint64_t size);
// For suballocated memory: the bytes of a slab for one buffer of this size, or for `slots` such slots; the
// offset of its first buffer; how many slots fit into `bytes`; and the bytes that a region leaves before its
// first slab.
uint64_t canary_slab_bytes(uint64_t size, uint32_t slots);
uint64_t canary_slab_front(uint32_t slots);
uint64_t canary_slab_room(uint64_t stride, uint64_t bytes);
enum { CANARY_LEAD = CANARY_SUBALLOC_UNIT };
// Offset of the canary in a slot of an open slab; every buffer in such a slot ends there or behind it.
uint32_t canary_slab_canary_start(uint64_t stride);

// The rows that are written when a slab is opened: where the first starts, and their width. There is one more
// than the slab has slots; each is the end of a slot and the head of the next.
uint64_t canary_slab_row(const struct canary_slab *s, uint32_t *width);
void canary_slab_make_row(const struct canary_slab *s, uint32_t row, uint32_t width, uint8_t *bytes);

// Bytes to allocate from the driver for a buffer that is not suballocated.
uint64_t canary_slab_padded(const struct canary_memory *memory, uint64_t size);

// Returns the fingerprints of the slab's slots, allocated on first use; NULL if out of memory. For one scan
// at a time.
struct canary_fingerprint *canary_slab_fingerprints(struct canary_slab *s);

void canary_slab_after_fork(void);

#endif
