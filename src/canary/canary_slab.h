// SPDX-License-Identifier: MIT
// What a slab of canary mode is: where in it buffers and canaries lie, and what is kept of each.
//
// Buffers of up to 64 KiB lie in slabs, at a fixed stride, so that one strided copy reads the canaries of thousands; each
// larger one is a slab of its own. A slot spans a multiple of 512 bytes: buffer, canary behind it, and in its last 32
// bytes the head of the next. A slab ends with bytes that are for what lies behind it: there a scan reads the head of a
// lone buffer together with as many bytes before it as its tail has, by one copy of two rows. Managed, host and pool memory stays the driver's, with room for canaries; such a buffer
// is a slab of one slot too.
//
// In a slab of many the canary of a slot is one sequence over the slot, which depends on its address alone: it is
// written for all slots at once when the slab is opened and stands until somebody writes over it, whatever
// the size of the buffer. So a buffer comes without a call of the driver's, and goes without one: a freed
// slot is looked at by the next scan, still under the freed buffer's name, and only then given out again.
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
    CANARY_OURS,  // in memory that we divide up
    CANARY_MANAGED,
    CANARY_HOST,
    CANARY_POOL,
    CANARY_APART,  // in place of the first, from the driver for each buffer: see canary_managed.h
};

struct canary_slab;
struct canary_place;
struct canary_buffer;
struct canary_occasion;

// What the rest of the mode has to know of a kind of memory.
struct canary_memory {
    enum canary_kind kind;
    uint64_t offset;                   // of a buffer in what the driver gives
    uint64_t (*bytes)(uint64_t size);  // how many it has to give from there on
    bool direct;                       // the host reads and writes its canaries where they are
    bool tails_rarely;                 // of such: the tails are read by whole scans only
    // Of such, canary beyond head and tail: writes it; and is true for damage that no report told of before.
    // NULL: there is none.
    void (*write_more)(const struct canary_place *place);
    bool (*look_at_more)(struct canary_slab *s, const struct canary_buffer *b,
                         const struct canary_occasion *o);
    // Of CANARY_APART: so many bytes of the driver's, false if it has none; and what is to be done once the
    // canaries of a buffer there are in place.
    bool (*take)(uint64_t bytes, CUdeviceptr *real);
    void (*placed)(const struct context *ctx, CUdeviceptr base, uint64_t size);
};

// By kind, but for CANARY_APART.
extern const struct canary_memory canary_slab_memory[CANARY_APART];

// One writer at a time, who has taken the slot or withdrawn its buffer; see canary_slot_read.
struct canary_slot {
    _Atomic uint32_t turn;  // odd while the numbers below change
    _Atomic uint64_t
        told;  // sides of which a report went out, a bit each; above those 32, how often all were untold again
    _Atomic uint64_t size;   // of the buffer; 0: there is none
    _Atomic uint64_t held;   // of the buffer that was freed there and is looked at still, and IDLE; 0: none
    _Atomic uint64_t since;  // the last scan that began before its canaries were in place; of a freed one,
                             // before the buffer was free
    _Atomic uint64_t seed[3];
    // under the store's lock
    uint32_t next;  // free slot, plus one
    uint32_t from;  // in a slab of many: from there to the slot's end the canary stands
};

// Under the store's lock, from when the slab is made until it is retired:
//
//   1 <= slots; stride is a multiple of the unit; slots == 1 exactly if slot == &one
//   range.base <= base and base + slots * stride <= range.base + range.size
//   used <= fresh == high <= slots
//   ready == NULL or it is a pool's; is_ready or ready != NULL
//   once high > 0: 0 < least <= every buffer's size <= most <= stride - CANARY_HEAD - CANARY_TAIL_LEAST
//
// and of a slab of many, where `free` are the slots on the list from first to last:
//
//   free == fresh - used == idle; each of them is below fresh, has no buffer, and since < freed
//   open implies free > 0 or fresh < slots; if it was opened (is not hidden), the other way round too
//
// Because since < freed of all that are free, checked >= freed lets a whole slab go: a scan has looked at
// each.
struct canary_slab {
    struct index_item range;  // everything of it
    const struct canary_memory *memory;
    struct context *ctx;
    CUcontext context;
    uint64_t base;  // of the first slot's buffer
    uint64_t stride;
    uint32_t slots;
    CUevent ready;                 // a pool's buffer: recorded when it was there; else NULL
    _Atomic bool unreadable;       // the driver refuses to copy from it: another device's, perhaps
    _Atomic bool is_ready;         // it has been reached, or there is none
    _Atomic uint64_t least, most;  // no buffer in it is smaller, none larger
    _Atomic uint32_t high;         // no slot from there on was ever used
    _Atomic uint64_t freed;        // the last scan that began before its last free, plus one
    _Atomic uint64_t checked;      // the last scan that looked at every canary of it, and has
    CUmemoryPool pool;             // of a pool's buffer, as the program named it
    _Atomic uint32_t unread;       // readings of it that nobody has looked at yet: see canary_order.h
    uint64_t late;                 // under the lock of those
    struct canary_slab *later;     // whose memory goes then too, see canary_free.c, ...
    uint64_t later_size;           // ... and the size that the buffer here had
    bool later_asks;               // not before its event says that its stream has come so far
    _Atomic uint32_t idle;         // freed places in it. Relaxed: whether it is worth to look
    struct canary_print *prints;   // of each slot; NULL: none yet. One scan's at a time
    // under the store's lock
    uint32_t first, last, used;  // free slots, plus one, the longest free first
    uint32_t fresh;              // no slot from there on was ever taken
    bool open;
    bool hidden;               // not in the index
    bool mapped;               // its memory is a tract's
    struct canary_slab *next;  // open one of the same stride
    struct canary_slot *slot, one;
};

// The first bytes of a freed buffer, as a scan found them. They are the slot's while its turn is this one.
enum { CANARY_PRINT = 64 };
struct canary_print {
    uint32_t turn;
    bool taken;
    uint8_t bytes[CANARY_PRINT];
};

// A pool's buffer whose canaries one memset writes, in the order of the stream.
bool canary_slab_is_flat(const struct canary_slab *s, uint64_t size);

// A buffer's place.
struct canary_place {
    struct canary_slab *slab;
    uint32_t number;
    uint64_t base, size;
    uint64_t clean;  // of a buffer that was withdrawn: kernels up to that one have done nothing to it
};

// The numbers of a slot as they were at one moment.
struct canary_buffer {
    uint64_t size;
    struct canary_seed seed;
    uint64_t told;  // as the slot has it
    uint32_t turn;
    bool freed;      // nobody may write into it any more, if it is idle too
    bool idle;       // all work of the time before has ended
    bool changing;   // somebody is at it: there may be a buffer that was not read
    bool withdrawn;  // it is being freed: scans pass it over, ...
    uint64_t clean;  // ... and this is its place's
};

static inline uint64_t canary_slab_base(const struct canary_slab *s, uint32_t number)
{
    return s->base + number * s->stride;
}

static inline bool canary_slab_is_lone(const struct canary_slab *s)
{
    return s->slots == 1;
}

// Such a one, in memory that we divide up: what lies before it leaves room for a row.
static inline bool canary_slab_is_lone_of_ours(const struct canary_slab *s)
{
    return s->memory->kind == CANARY_OURS && canary_slab_is_lone(s);
}

// Bytes behind a buffer of this size that are canary, and which of the seed's sequence is the first.
uint32_t canary_slab_tail(const struct canary_slab *s, uint64_t size);
static inline uint32_t canary_slab_phase(const struct canary_slab *s, uint64_t size)
{
    return s->slots > 1 ? (uint32_t)size : 0;
}
// The number that the head of a buffer holds: its size, or its slot's.
static inline uint64_t canary_slab_hidden(const struct canary_slab *s, uint64_t size)
{
    return s->slots > 1 ? s->stride : size;
}

struct canary_seed canary_slab_seed(const struct canary_place *place);

// The host reads and writes its canaries where they are.
static inline bool canary_slab_is_direct(const struct canary_slab *s)
{
    return s->memory->direct;
}

// A slab in such memory, not of the index yet; NULL: no memory. canary_slab_release is for epoch_retire:
// range.retired.
struct canary_slab *canary_slab_new(struct context *ctx, const struct canary_memory *memory, uint32_t slots);
void canary_slab_release(struct epoch_node *node);

// Whether the equations above the slab hold, under the store's lock: those of the slab alone, and those of
// its slots, which takes a walk over them.
bool canary_slab_valid(const struct canary_slab *s);
bool canary_slab_slots_valid(const struct canary_slab *s);

// Bytes of a slot for a buffer of this size.
uint64_t canary_slab_stride(uint64_t size);
// In memory that we divide up: bytes that a slab takes, of one buffer of this size or of so many slots; how far into it the
// first buffer starts; how many slots there is room for; and bytes that a region leaves before its first slab.
uint64_t canary_slab_bytes(uint64_t size, uint32_t slots);
uint64_t canary_slab_front(uint32_t slots);
uint64_t canary_slab_room(uint64_t stride, uint64_t bytes);
enum { CANARY_LEAD = CANARY_SUBALLOC_UNIT };
// Where the canary of an open slab's slot starts: no buffer in it is so small that it ends before.
uint32_t canary_slab_first(uint64_t stride);

// A slab's rows when it is opened: where the first starts and how wide they are; one more than it has slots, each the
// end of a slot and the head of the next.
uint64_t canary_slab_row(const struct canary_slab *s, uint32_t *width);
void canary_slab_make_row(const struct canary_slab *s, uint32_t row, uint32_t width, uint8_t *bytes);

// How much to ask the driver for, for a buffer in memory that is not ours.
uint64_t canary_slab_padded(const struct canary_memory *memory, uint64_t size);

// Room for prints of a slab's slots; NULL: no memory. One scan at a time.
struct canary_print *canary_slab_prints(struct canary_slab *s);

void canary_slab_after_fork(void);

#endif
