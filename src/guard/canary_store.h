// SPDX-License-Identifier: MIT
// Where the buffers of canary mode lie, and which there are: what the scans go by.
//
// Buffers of up to 64 KiB lie in slabs, at a fixed stride, so that one strided copy reads the canaries of thousands; each
// larger one is a slab of its own. A slot spans a multiple of 512 bytes: buffer, canary behind it, and in its last 32
// bytes the head of the next. Managed, host and pool memory stays the driver's, with room for canaries; such a buffer
// is a slab of one slot too.
//
// In a slab of many the canary of a slot is one sequence over the slot, which depends on its address alone: it is
// written for all slots at once when the slab is opened and stands until somebody writes over it, whatever
// the size of the buffer. So a buffer comes without a call of the driver's, and goes without one: a freed
// slot is looked at by the next scan, still under the freed buffer's name, and only then given out again.
//
// Scans read slots without a lock, while buffers come and go: a slot's numbers are read under its turn (as with a
// seqlock), and a buffer counts only if it was complete before the scan began. Slabs are found through an index
// (index.h) and stay as they are until all readers have left.
#ifndef MOAT_GUARD_CANARY_STORE_H
#define MOAT_GUARD_CANARY_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "guard/canary_bytes.h"
#include "guard/home.h"
#include "guard/index.h"

enum canary_kind {
    CANARY_OURS,  // in memory that we divide up
    CANARY_MANAGED,
    CANARY_HOST,
    CANARY_POOL,
    CANARY_SHARED,  // managed memory in place of plain, with canaries in pages of their own: --canary-scan=managed
};

// One writer at a time, who has taken the slot or withdrawn its buffer; see canary_store_read.
struct canary_slot {
    _Atomic uint32_t turn;   // odd while the numbers below change
    _Atomic uint32_t told;   // sides of which a report went out, a bit each
    _Atomic uint64_t size;   // of the buffer; 0: there is none
    _Atomic uint64_t held;   // of the buffer that was freed there and is looked at still, and IDLE; 0: none
    _Atomic uint64_t since;  // the last scan that began before its canaries were in place; of a freed one,
                             // before the buffer was free
    _Atomic uint64_t seed[3];
    // under the store's lock
    uint32_t next;  // free slot, plus one
    uint32_t from;  // in a slab of many: from there to the slot's end the canary stands
};

struct canary_slab {
    struct index_item range;  // everything of it
    enum canary_kind kind;
    struct home *home;
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
    _Atomic uint32_t idle;         // freed places in it. Relaxed: whether it is worth to look
    struct canary_print *prints;   // of each slot; NULL: none yet. One scan's at a time
    // under the store's lock
    uint32_t first, last, used;  // free slots, plus one, the longest free first
    uint32_t fresh;              // no slot from there on was ever taken
    bool open;
    bool hidden;               // not in the index
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
bool canary_store_is_flat(const struct canary_slab *s, uint64_t size);

// A buffer's place.
struct canary_place {
    struct canary_slab *slab;
    uint32_t number;
    uint64_t base, size;
};

// The numbers of a slot as they were at one moment.
struct canary_buffer {
    uint64_t size;
    struct canary_seed seed;
    uint32_t told;
    uint32_t turn;
    bool freed;  // nobody may write into it any more, if it is idle too
    bool idle;   // all work of the time before has ended
};

static inline uint64_t canary_store_base(const struct canary_slab *s, uint32_t number)
{
    return s->base + number * s->stride;
}

// CANARY_SHARED: where in a page of its own more canary lies, behind a buffer of this size: from the buffer's start.
uint64_t canary_store_far(uint64_t size);

// Bytes behind a buffer of this size that are canary, and which of the seed's sequence is the first.
uint32_t canary_store_tail(const struct canary_slab *s, uint64_t size);
static inline uint32_t canary_store_phase(const struct canary_slab *s, uint64_t size)
{
    return s->slots > 1 ? (uint32_t)size : 0;
}
// The number that the head of a buffer holds: its size, or its slot's.
static inline uint64_t canary_store_hidden(const struct canary_slab *s, uint64_t size)
{
    return s->slots > 1 ? s->stride : size;
}

struct canary_seed canary_store_seed(const struct canary_place *place);

// A place for a buffer of the current context: memory comes from cuMemAlloc when there is none left.
enum canary_took {
    CANARY_TOOK,        // its canaries stand
    CANARY_TOOK_STALE,  // they are to be written
    CANARY_FILL,  // none yet: place->slab is a new slab whose canaries are to be written, then canary_store_open
    CANARY_CHECK,  // none yet: many are free in place->slab that no scan has looked at since
    CANARY_NONE,   // no memory
};
// patient: CANARY_CHECK may be the answer.
enum canary_took canary_store_take(struct home *home, uint64_t size, bool patient,
                                   struct canary_place *place);
// filled: the slab's canaries stand, and it is in use from now on; otherwise it goes again. False: so it is, for no memory.
bool canary_store_open(struct canary_slab *s, bool filled);
// A slab's rows when it is opened: where the first starts and how wide they are; one more than it has slots, each the
// end of a slot and the head of the next.
uint64_t canary_store_row(const struct canary_slab *s, uint32_t *width);
void canary_store_make_row(const struct canary_slab *s, uint32_t row, uint32_t width, uint8_t *bytes);

// How much to ask the driver for, and how far into it the buffer starts, for a buffer of a kind that is not ours.
uint64_t canary_store_padded(enum canary_kind kind, uint64_t size);
uint64_t canary_store_offset(enum canary_kind kind);
int canary_store_adopt(struct home *home, enum canary_kind kind, uint64_t real, uint64_t size, CUevent ready,
                       struct canary_place *place);

// The canaries are in place: from now on the buffer is scanned. scan: the number of the last scan that has begun.
void canary_store_publish(const struct canary_place *place, uint64_t scan);
// The buffer that starts there is free, for of several threads one gets it. False: there is none. In memory that we divide
// up it is looked at still, until its place has another buffer or is none; elsewhere no longer.
bool canary_store_withdraw(uint64_t pointer, struct canary_place *place);
// A withdrawn place in the driver's memory, just before that is given back: from then on its addresses may be another
// buffer's. False: no memory to do so. canary_store_show undoes it.
bool canary_store_hide(const struct canary_place *place);
void canary_store_show(const struct canary_place *place);
// A withdrawn place, or one that was never published, is free; what the driver gave is the caller's to give back. In a slab
// of many it is given out again when a scan beyond this one has looked at it.
void canary_store_give(const struct canary_place *place, uint64_t scan);
// A withdrawn place that stays the caller's: whether a scan has looked at it since.
void canary_store_await(const struct canary_place *place, uint64_t scan);
bool canary_store_is_checked(const struct canary_place *place);
// The same buffer again, in a place that it was withdrawn from: its canaries stand, and what was told of them was.
void canary_store_publish_again(const struct canary_place *place, uint64_t scan);

// False: there is no buffer in the slot, or it came after the scan began, or it is changing.
bool canary_store_read(const struct canary_slab *s, uint32_t number, uint64_t scan, struct canary_buffer *b);
uint32_t canary_store_told(const struct canary_slab *s, uint32_t number);
// Marks sides as told; true if one of them was not yet.
bool canary_store_tell(struct canary_slab *s, uint32_t number, uint32_t sides);

// Room for prints of a slab's slots; NULL: no memory. One scan at a time.
struct canary_print *canary_store_prints(struct canary_slab *s);

// The slab at an address. Inside an epoch section.
struct canary_slab *canary_store_find(uint64_t address);
bool canary_store_owns(uint64_t address);  // memory that we divide up, whether there is a slab or not
int canary_store_each(int (*f)(struct index_item *, void *), void *context);  // inside an epoch section
size_t canary_store_slabs(void);

// Slabs without buffers that a scan has looked at are space again, but for one of each kind.
void canary_store_tidy(struct home *home);
// Gives empty regions of the current context back to the driver beyond `keep` bytes; how many bytes. No scan may be
// under way.
uint64_t canary_store_trim(struct home *home, uint64_t keep);
// Bytes held for the home and in no slab.
uint64_t canary_store_spare(struct home *home);
// Bytes in all that canaries and rounding take, now.
uint64_t canary_store_extra(void);

// A context and its memory are gone. No scan may be under way.
void canary_store_context_gone(struct home *home, CUcontext context);
void canary_store_after_fork(void);

#endif
