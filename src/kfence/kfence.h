// SPDX-License-Identifier: MIT
// What code on the device and the host of --mode=fence share: where the partition is, the list of further
// ranges that kernels may access, and the functions that judge an address outside of the partition.
//
//   pass_fence inserts      quick test: do the high bits of the address equal those of the partition?
//     outside ──▶ KFENCE_FIND   is it in a further range, or in another space? else it is recorded, and the
//                           access goes to the sink
//   a kernel with the mask  address = (address & mask) | base, and a register notes that it had to act
//     at the end ──▶ KFENCE_NOTE   records that
//     records ──▶ the error ring (client ERROR_RING_FENCE) ──▶ src/fence reports
//
// The partition. `size` bytes of addresses, a power of two and at least 4 GiB, at a multiple of the largest
// size that it can grow to. Every address in it is mapped, to a buffer's memory or to a sink, and so are
// KFENCE_ZONE bytes before and behind it: an access whose pointer lies in the partition, at an offset of less
// than that, never faults. No buffer is nearer than KFENCE_ZONE to its ends, so the pointer of a right access
// lies in the partition whatever constant offset its instruction adds.
#ifndef MOAT_KFENCE_KFENCE_H
#define MOAT_KFENCE_KFENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/error_ring.h"

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
};

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
    uint64_t bytes;  // of a tensor map's box, in shared memory
};
enum { KFENCE_OBJECTS = 1 << 14, KFENCE_GONE = 1 };
// A handle, or the hash of a tensor map's words.
#define KFENCE_OBJECT(kind, value) ((uint64_t)(kind) << 62 | ((uint64_t)(value) & (UINT64_MAX >> 2)))
enum { KFENCE_MAP_WORDS = 16 };

struct kfence_state {
    struct error_ring_writer errors;
    uint64_t faults;               // accesses that left, and threads that noted one
    uint64_t silent;               // 1: nothing is recorded
    uint64_t current;              // device address of the table that holds
    uint64_t heap_low, heap_high;  // the lowest byte of blocks that malloc gave, and where the highest ends
    uint64_t unused[11];
    uint32_t seen[KFENCE_SEEN / 32];  // a bit for each error that is recorded, by a hash
    struct kfence_table tables[2];
    struct kfence_object objects[KFENCE_OBJECTS];
};

// --- the functions -----------------------------------------------------------------------------------------

// (.param .b64 what, .param .b64 address) returns the address to access instead, often the same.
#define KFENCE_FIND "moat_fence_find"
// (.param .b64 what, .param .b64 bits): a thread ends whose mask had to act: the lower half of the bits, or
// whose accesses were not aligned: the upper half. With a KFENCE_KIND in `what`, a record of that kind.
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
    KFENCE_MASKED,      // a thread's mask had to act; `site` is the function, address the bits that differed
    KFENCE_OUT_OF_SHARED,
    KFENCE_SKEWED,   // as KFENCE_MASKED, of accesses that were not aligned
    KFENCE_TRAPPED,  // a trap, or what would have been one
    KFENCE_OUT_OF_LOCAL,
    KFENCE_STACK_FULL,  // a call that the stack has no room for
    KFENCE_BAD_CALL,    // address: the pointer, to no function that may be called through it
    KFENCE_BAD_HANDLE,  // address: the handle of no texture or surface
    KFENCE_BAD_MAP,     // address: that of a tensor map that no call has encoded for memory of the program
    KFENCE_BAD_STRIDE,  // address: elements
    KFENCE_BAD_SIZE,    // address: bytes of a bulk copy, which must be a multiple of 16
    KFENCE_REFUSED,     // an instruction that cannot be fenced
    KFENCE_ENDLESS,     // a loop has run longer than --fence-watchdog allows
    KFENCE_KINDS,
};

// PTX for pass_fence: the functions and the variable, to be inserted into a module behind its own .version,
// .target and .address_size. Needs PTX 6.3 and sm_70. NUL-terminated.
extern const char kfence_functions_ptx[];

#endif
