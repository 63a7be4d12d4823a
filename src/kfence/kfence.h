// SPDX-License-Identifier: MIT
// What code on the device and the host of --mode=fence share: where the partition is, the list of further
// ranges that kernels may access, and the functions that judge an address outside of the partition.
//
//   pass_fence inserts      quick test: do the high bits of the address equal those of the partition?
//     outside ──▶ KFENCE_FIND   is it in a further range, or in another space? else it is recorded, and the
//                           access goes to the sink
//     records ──▶ the error ring (client ERROR_RING_FENCE) ──▶ src/fence reports
//   a kernel with the mask  a register notes that an address is outside; its upper half becomes one inside
//     at the end ──▶ a word that the thread writes itself ──▶ src/fence reports
//
// The partition. `size` bytes of addresses, a power of two and at least 4 GiB, at a multiple of the largest
// size that it can grow to. Every address in it is mapped, to a buffer's memory or to a sink, and so are
// KFENCE_FAR + KFENCE_ZONE bytes before and behind it: an access whose pointer lies in the partition, at an
// offset of less than that, never faults. No buffer is nearer than KFENCE_ZONE to its ends, so the pointer of
// a right access lies in the partition whatever constant offset its instruction adds.
#ifndef MOAT_KFENCE_KFENCE_H
#define MOAT_KFENCE_KFENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/error_ring.h"

// Bytes of sinks around the partition, besides its zones: an index of 32 bits with a sign, of elements of 8
// bytes, does not leave them from any pointer in the partition.
#define KFENCE_FAR ((uint64_t)16 << 30)
enum {
    KFENCE_ZONE = 64 << 20,
    KFENCE_OFFSET = 32 << 20,  // larger constant offsets are added before the fence
    KFENCE_RANGES = 8192,      // most further ranges
    KFENCE_SEEN = 1 << 16,     // bits for errors that were recorded
    KFENCE_RING = 1024,        // records of the ring
    KFENCE_GRID = 64,          // bytes by which the blocks of a cooperative launch synchronise
};

// The variant of kernel NAME that masks is KFENCE_PREFIX NAME.
#define KFENCE_PREFIX "__moat_fence_"
// The program's own code of kernel NAME is KFENCE_BARE_PREFIX NAME: only moat launches it.
#define KFENCE_BARE_PREFIX "__moat_bare_"
// The variant of kernel NAME that masks, but for what a proof at the launch may show, is KFENCE_REST_PREFIX
// NAME.
#define KFENCE_REST_PREFIX "__moat_rest_"

// Bytes that calls of recursive functions leave free on the stack, for the frame of the called function and
// what moat's functions need. The host makes the stack larger by them.
#define KFENCE_STACK_RESERVE 1024
// .weak .const .u32 in modules with recursive functions: bytes of the stack after which they call no more.
// The host sets it.
#define KFENCE_STACK "__moat_limit_stack"
// The window of local addresses. A thread's stack grows from one end of it: from the upper one on GPUs.
#define KFENCE_WINDOW (1 << 24)

// --- the module's variable ---------------------------------------------------------------------------------

// .weak .const in every module that pass_fence rewrites. The host sets it, in each context, before any kernel
// of the module is launched there, and again when the partition grows. Until then no address is inside.
#define KFENCE_VARIABLE "__moat_fence_module"
struct kfence_module {
    uint64_t base;
    uint64_t mask;     // size - 1
    uint64_t outside;  // ~mask
    uint64_t sink;     // where a stray access goes: KFENCE_ZONE / 2 bytes before and behind it are mapped
    uint64_t state;    // of the struct kfence_state
    uint64_t number;   // of the module, for records; never 0
    uint64_t pages;    // of 2 MiB in the partition
    uint64_t longest;  // nanoseconds that a thread may be in a loop; 0: none is looked at
    uint64_t notes;    // of KFENCE_NOTES words
    uint64_t tag;      // KFENCE_TAG of the module
    uint64_t last;     // base + mask
    // The longest piece of the module's variables with no gap between them that another variable fits into.
    // Both ends are multiples of KFENCE_GRANULE. Kernels compare pointers that they have loaded with it
    // before they call KFENCE_FIND.
    uint64_t window, window_bytes;
};
enum { KFENCE_GRANULE = 8, KFENCE_GAP = 64 };
_Static_assert(sizeof(struct kfence_module) > KFENCE_GAP, "the window never has a fence's own variable");

// --- notes of masks ----------------------------------------------------------------------------------------

// What a thread of a masked variant leaves when it ends, if a mask had to act: KFENCE_TAG of the module, with
// the kind and the site of the kernel. It writes the word itself, and calls nothing: a kernel that calls
// functions needs their registers, and one that says which thread it was keeps that in registers to its end.
// The place is that of the site, modulo KFENCE_NOTES; a later note replaces one that the host has not read.
// The words are in host memory.
enum { KFENCE_NOTES = 8, KFENCE_NOTE_SITES = 1 << 18, KFENCE_NOTE_NUMBERS = 1 << 12 };
enum kfence_note_kind {
    KFENCE_NOTE_MASKED = 1,     // a pointer was outside of the partition
    KFENCE_NOTE_SKEWED,         // an access was not aligned
    KFENCE_NOTE_OUT_OF_SHARED,  // an address was outside of the block's shared memory
    KFENCE_NOTE_KINDS,          // a power of two
};
#define KFENCE_TAG(number) ((uint32_t)(number) % KFENCE_NOTE_NUMBERS * KFENCE_NOTE_SITES * KFENCE_NOTE_KINDS)
// The last site stands for all that have no number.
#define KFENCE_NOTE_OF(kind, site) \
    ((uint32_t)(kind)*KFENCE_NOTE_SITES + ((site) < KFENCE_NOTE_SITES ? (site) : KFENCE_NOTE_SITES - 1))

// --- the state, in device memory outside of the partition --------------------------------------------------

// Kernels may access [base, end).
struct kfence_range {
    uint64_t base, end;
};

// Sorted, and disjoint. version is odd while the host writes; a reader that finds another version afterwards
// begins anew.
struct kfence_table {
    uint64_t version;
    uint64_t count;
    struct kfence_range ranges[KFENCE_RANGES];
};

// What a kernel may use beside memory. The program's textures, surfaces and tensor maps, by a hash of the
// word: the first place from it on that is 0 ends a search.
enum kfence_object_kind { KFENCE_TEXTURE = 1, KFENCE_SURFACE, KFENCE_MAP };
struct kfence_object {
    uint64_t word;   // KFENCE_OBJECT; 0: none, KFENCE_GONE: none any more
    uint64_t bytes;  // of a tensor map: KFENCE_MAP_OF
};
enum { KFENCE_OBJECTS = 1 << 14, KFENCE_GONE = 1 };
// A handle, or the hash of a tensor map's words.
#define KFENCE_OBJECT(kind, value) ((uint64_t)(kind) << 62 | ((uint64_t)(value) & (UINT64_MAX >> 2)))
enum { KFENCE_MAP_WORDS = 16 };
// The bytes of the elements of the box, the number of dimensions, to which KFENCE_BY_COLUMNS is added for an
// im2col map, and the type, as CUtensorMapDataType numbers it. shape: 0 if it is not known, nor the type.
#define KFENCE_MAP_OF(box, shape, type) ((uint32_t)(box) | (uint64_t)(shape) << 32 | (uint64_t)(type) << 40)
// To be added: units of 16 bytes, at most KFENCE_GAPS_MOST, that the box takes beside its own bytes, where
// its rows are shorter than the span of the swizzle.
#define KFENCE_MAP_GAPS(units) ((uint64_t)(units) << KFENCE_GAPS_AT)
enum { KFENCE_GAPS_AT = 48, KFENCE_GAPS_MOST = 0xffff };
enum { KFENCE_BY_COLUMNS = 8 };
// Types of elements, by their numbers in CUtensorMapDataType.
enum kfence_type {
    KFENCE_UINT8,
    KFENCE_UINT16,
    KFENCE_UINT32,
    KFENCE_INT32,
    KFENCE_UINT64,
    KFENCE_INT64,
    KFENCE_FLOAT16,
    KFENCE_FLOAT32,
    KFENCE_FLOAT64,
    KFENCE_BFLOAT16,
};

struct kfence_state {
    struct error_ring_writer errors;
    uint64_t heap_low, heap_high;  // the lowest byte of blocks that malloc gave, and where the highest ends
    uint64_t faults;               // accesses that left
    uint64_t silent;               // 1: nothing is recorded
    uint64_t current;              // device address of the table that holds
    uint64_t unused[11];
    uint32_t seen[KFENCE_SEEN / 32];  // a bit for each error that is recorded, by a hash
    struct kfence_table tables[2];
    struct kfence_object objects[KFENCE_OBJECTS];
};

// Kernels load both ends of the heap at once. A state is at a multiple of 256.
_Static_assert(offsetof(struct kfence_state, heap_low) % 16 == 0, "a pair of words is aligned");
_Static_assert(offsetof(struct kfence_state, heap_high) == offsetof(struct kfence_state, heap_low) + 8,
               "a pair");

// --- the functions -----------------------------------------------------------------------------------------

// (.param .b64 what, .param .b64 address) returns the address to access instead, often the same.
#define KFENCE_FIND "moat_fence_find"
// (.param .b64 what, .param .b64 address): a record of the KFENCE_KIND in `what`.
#define KFENCE_NOTE "moat_fence_note"
// (.param .b64 what, .param .b64 address) for an address in shared memory outside of the launch's bytes.
#define KFENCE_SHARED "moat_fence_shared"
// (.param .b64 address, .param .b64 bytes): malloc in a kernel returned it.
#define KFENCE_TOOK "moat_fence_took"
// (.param .b64 word): a KFENCE_OBJECT. Returns 0 if the program has none such, else 1 more than its bytes.
#define KFENCE_OBJECT_FIND "moat_fence_object"
// (.param .b64 address) of a tensor map in a kernel's parameters. Returns the same.
#define KFENCE_MAP_FIND "moat_fence_map"
#define KFENCE_WHAT(site, width, flags) \
    ((uint64_t)(uint32_t)(site) | (uint64_t)(uint16_t)(width) << 32 | (uint64_t)(flags) << 48)
enum kfence_flags {
    KFENCE_READS = 1,
    KFENCE_WRITES = 2,  // atomics read and write
    KFENCE_ATOMIC = 4,
    KFENCE_GENERIC = 8,    // the address may be in shared or local memory
    KFENCE_WIDE = 16,      // the width has 24 bits, the upper 8 in bits 56 to 63
    KFENCE_ALIGNED = 128,  // the address must be a multiple of the width
};
#define KFENCE_KIND(kind) ((unsigned)(kind) << 8)  // among the flags of what KFENCE_NOTE gets

// Kinds of records (error_ring_record.kind). payload[0]: what; [1]: number of the module.
enum kfence_kind {
    KFENCE_LEFT = 1,    // the address is in no range that the kernel may access
    KFENCE_MISALIGNED,  // KFENCE_ALIGNED
    KFENCE_MASKED,      // KFENCE_NOTE_MASKED; `site` is the kernel
    KFENCE_OUT_OF_SHARED,
    KFENCE_SKEWED,   // KFENCE_NOTE_SKEWED
    KFENCE_TRAPPED,  // a trap, or what would have been one
    KFENCE_OUT_OF_LOCAL,
    KFENCE_STACK_FULL,   // a call that the stack has no room for
    KFENCE_BAD_CALL,     // address: the pointer, to no function that may be called through it, or the index
                         // of a branch that has no such target
    KFENCE_BAD_HANDLE,   // address: the handle of no texture or surface
    KFENCE_BAD_MAP,      // address: that of a tensor map that no call has encoded for memory of the program
    KFENCE_BAD_STRIDE,   // address: elements
    KFENCE_BAD_SIZE,     // address: bytes of a bulk copy, which must be a multiple of 16
    KFENCE_REFUSED,      // an instruction that cannot be fenced
    KFENCE_ENDLESS,      // a loop has run longer than --fence-watchdog allows
    KFENCE_LEFT_SHARED,  // KFENCE_NOTE_OUT_OF_SHARED
    KFENCE_BAD_BARRIER,  // address: a number or a count that no barrier has
    KFENCE_BAD_BLOCKS,   // address: the blocks of a copy that its cluster does not have, a bit for each
    KFENCE_BEFORE,       // a box that is stored or reduced begins in front of its tensor
    KFENCE_KINDS,
};

// PTX for pass_fence: the functions and the variable, to be inserted into a module behind its own .version,
// .target and .address_size. Needs PTX 6.3 and sm_70. NUL-terminated.
extern const char kfence_functions_ptx[];

#endif
