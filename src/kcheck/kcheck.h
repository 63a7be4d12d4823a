// SPDX-License-Identifier: MIT
// What code on the device and the host of --mode=check share: the table of buffers, the variable through
// which kernels reach it, and the function that judges an access which a quick comparison did not accept.
//
//   pass_check inserts          quick comparison: (address - base) < limit, with base and limit of the root
//     fails ──▶ KCHECK_ACCESS   looks the root and the address up, and decides: perform or skip; records
//     records ──▶ the error ring (client ERROR_RING_CHECK) ──▶ src/check reports
//
// The quick comparison is an optimization: whatever it accepts KCHECK_ACCESS would accept too. Therefore a
// pair that accepts nothing is always correct, and the host passes one where it cannot tell.
//
// The table. Addresses below 2^47 are divided into chunks of 2 MiB. A word of the directory describes a
// chunk:
//
//   0                       no tracked block touches the chunk
//   first << 32 | reciprocal   record number first + slot(offset in the chunk, reciprocal) describes the
//                           address
//
// where slot(offset, reciprocal) = (offset >> 7) * reciprocal >> 32. A reciprocal of 0 makes all addresses of
// the chunk share one record; kcheck_reciprocal(stride) cuts it into slots of `stride` bytes, a multiple of
// 256. A lookup is two loads, and cannot fault: the whole directory is readable, and every record that it can
// lead to exists. Kernels cannot write the table.
#ifndef MOAT_KCHECK_KCHECK_H
#define MOAT_KCHECK_KCHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KCHECK_ADDRESS_BITS = 47,
    KCHECK_CHUNK_BITS = 21,
    KCHECK_DIRECTORY_WORDS = 1 << (KCHECK_ADDRESS_BITS - KCHECK_CHUNK_BITS),
    KCHECK_GRANULE = 256,  // blocks of one chunk that share no granule have records of their own
};

// What is known of the addresses of one slot. Invariants:
//   base == 0           no tracked block touches the slot; size == 0
//   size <  2^47        [base, base + size) is live; it contains an address of the slot or ends in it, and no
//                       other live block touches the slot
//   size has FREED      the block of size & KCHECK_SIZE bytes was freed; no live block touches the slot
//   size has LOOSE      a live block, as above, whose surroundings belong to it too (the mappings of one
//                       range of addresses): an access that leaves it is judged by its own address
//   size has POOL       a live block, as above, which an allocator hands out in blocks that it announces: the
//                       shadow (kcheck_shadow.h) says which other bytes of it may be accessed
//   size has MIXED      several blocks touch the slot: size & KCHECK_SIZE is the number of the first record
//                       of a list, innermost blocks first, which a record with base == 0 ends
struct kcheck_record {
    uint64_t base;
    uint64_t size;
};
_Static_assert(sizeof(struct kcheck_record) == 16, "one vector load");
#define KCHECK_SIZE (((uint64_t)1 << KCHECK_ADDRESS_BITS) - 1)
#define KCHECK_FREED ((uint64_t)1 << 63)
#define KCHECK_MIXED ((uint64_t)1 << 62)
#define KCHECK_LOOSE ((uint64_t)1 << 61)
#define KCHECK_POOL ((uint64_t)1 << 60)

// Returns the reciprocal for slots of stride bytes: a multiple of 256, from 256 to 2^20.
static inline uint32_t kcheck_reciprocal(uint32_t stride)
{
    uint32_t units = stride >> 7;  // 2 <= units <= 2^13
    return ((1u << 27) / units + 1) << 5;
}

// Exact: with r = floor(2^27 / units) + 1, x * (r * units - 2^27) < 2^14 * 2^13 = 2^27 for every x < 2^14.
static inline uint32_t kcheck_slot(uint64_t address, uint32_t reciprocal)
{
    uint32_t x = (uint32_t)(address & ((1u << KCHECK_CHUNK_BITS) - 1)) >> 7;
    return (uint32_t)((uint64_t)x * reciprocal >> 32);
}

// --- the module's variable ---------------------------------------------------------------------------------

// .const .align 16 .b8 [sizeof(struct kcheck_module)] in every module that pass_check rewrites, at first
// zeros. The host sets it, in each context, before any kernel of the module is launched there.
#define KCHECK_VARIABLE "__moat_check_module"
struct kcheck_module {
    uint64_t directory;  // device address of KCHECK_DIRECTORY_WORDS words
    uint64_t records;    // device address of the records
    uint64_t state;      // device address of the struct kcheck_state
    uint64_t number;     // of the module, for records of errors; never 0
    // The heap of malloc in kernels (kheap.h) and its size. 0: the context has none whose blocks can be found
    // by their addresses.
    uint64_t heap, heap_bytes;
    // Device address of the shadow (kcheck_shadow.h), a multiple of its size; 0: there is none.
    uint64_t shadow;
    uint32_t shift;  // of the shadow
    uint32_t zero;   // always 0, and no compiler knows it
};

// --- hidden parameters -------------------------------------------------------------------------------------

// The checked variant of kernel NAME is KCHECK_PREFIX NAME. It has one more parameter, the last one: .align
// 16 .b8 [KCHECK_HIDDEN + 16 * pairs], a struct kcheck_hidden followed by the pairs in the order of the
// pass's list.
#define KCHECK_PREFIX "__moat_check_"
// The same for the variant that checks only what a proof does not cover.
#define KCHECK_REST_PREFIX "__moat_rest_"
// The same for the variant that kernels launch: it has the program's parameters only.
#define KCHECK_CHILD_PREFIX "__moat_child_"
struct kcheck_hidden {
    uint64_t launch;  // number of the launch, for records of errors; 0: unknown
    uint64_t reserved;
};
// A launch has room for so many pairs.
enum { KCHECK_HIDDEN = 16, KCHECK_MOST_PAIRS = 126 };

// The bounds of a root for accesses of `span` bytes: an access at `address` is inside if and only if
// address - base < limit, unsigned. limit == size - span + 1, or 0 if span > size or the root is in no live
// block; then base is 0 too, or, with limit == 0, any address of a block whose bounds the host does not know.
struct kcheck_pair {
    uint64_t base;
    uint64_t limit;
};

static inline struct kcheck_pair kcheck_pair(uint64_t base, uint64_t size, uint64_t span)
{
    return span && span <= size ? (struct kcheck_pair){base, size - span + 1} : (struct kcheck_pair){0, 0};
}

// The same for accesses at root + index * scale + at, where the index has 32 bits and is widened as a signed
// or an unsigned number: all that index + more < limit accepts, modulo 2^32, are inside. It refuses others
// that are inside in one case: of 2^32 indices that all are, the last.
struct kcheck_index {
    uint32_t more;
    uint32_t limit;
};
// The largest scale, and the largest size of `at`: nothing wraps where the host computes with them.
#define KCHECK_MOST_SCALE (1u << 20)
#define KCHECK_MOST_CONSTANT ((int64_t)1 << 40)

// Returns x / y rounded down; y > 0.
static inline int64_t kcheck_floor(int64_t x, int64_t y)
{
    return x / y - (x % y < 0);
}

static inline struct kcheck_index kcheck_index(struct kcheck_pair pair, uint64_t root, uint32_t scale,
                                               bool is_signed, int64_t at)
{
    int64_t first = is_signed ? INT32_MIN : 0, last = is_signed ? INT32_MAX : UINT32_MAX;
    const uint64_t most = (uint64_t)1 << KCHECK_ADDRESS_BITS;
    if (!pair.limit || !scale || root >= most || pair.base >= most || pair.limit > most)
        return (struct kcheck_index){0, 0};
    int64_t low = (int64_t)pair.base - (int64_t)root - at, high = low + (int64_t)pair.limit - 1;
    int64_t from = -kcheck_floor(-low, scale), to = kcheck_floor(high, scale);
    from = from < first ? first : from;
    to = to > last ? last : to;
    if (from > to)
        return (struct kcheck_index){0, 0};
    uint64_t n = (uint64_t)(to - from) + 1;
    return (struct kcheck_index){(uint32_t)-from, n > UINT32_MAX ? UINT32_MAX : (uint32_t)n};
}

// Returns what the hidden parameter has for a pair: of addresses that are `at` less, or with a scale a struct
// kcheck_index.
static inline struct kcheck_pair kcheck_placed(struct kcheck_pair pair, uint64_t root, uint32_t scale,
                                               bool is_signed, int64_t at)
{
    union {
        struct kcheck_index index;
        struct kcheck_pair pair;
    } placed = {.pair = {0, 0}};
    if (scale)
        placed.index = kcheck_index(pair, root, scale, is_signed, at);
    else
        placed.pair = (struct kcheck_pair){pair.base - (uint64_t)at, pair.limit};
    return placed.pair;
}

// --- tensor maps -------------------------------------------------------------------------------------------

// What the host knows of a tensor map among the parameters; in the hidden parameter, it takes the places of
// KCHECK_MAP_PAIRS pairs in a row. A box at the coordinates c touches, of each dimension d, the elements from
// max(c[d], 0) to min(c[d] + extra[d], last[d]), and none if one of these ranges is empty.
enum { KCHECK_MAP_RANK = 5, KCHECK_MAP_PAIRS = 6 };
struct kcheck_map {
    // Of the tensor. 0: nothing has to be compared, because all of the tensor is in one live buffer, or
    // because the host does not know the map.
    uint64_t address;
    uint32_t box;                          // bytes of a box in shared memory; 0: the map is not known
    uint32_t element;                      // bytes
    uint64_t stride[KCHECK_MAP_RANK - 1];  // bytes, of the second dimension and the following ones
    uint32_t last[KCHECK_MAP_RANK], extra[KCHECK_MAP_RANK];
    uint64_t reserved;
};
_Static_assert(sizeof(struct kcheck_map) == KCHECK_MAP_PAIRS * sizeof(struct kcheck_pair), "it fills pairs");

// --- the judge ---------------------------------------------------------------------------------------------

// .func (.param .b32 verdict) KCHECK_ACCESS (.param .b64 what, .param .b64 address, .param .b64 root,
//                                            .param .b64 launch)
// what: KCHECK_WHAT(site, width, flags). root: the pointer that the address was made from, or any address in
// its block, with KCHECK_ROOT; ignored without. launch: kcheck_hidden.launch; in functions, which do not have
// it, 0: then it is what KCHECK_ENTER noted for the block. Returns KCHECK_PERFORM or KCHECK_SKIP; with
// --on-error=trap it does not return from an error.
#define KCHECK_ACCESS "moat_check_access"
// .func KCHECK_ENTER (.param .b64 launch): a kernel that may call checked functions calls it first.
#define KCHECK_ENTER "moat_check_enter"
// PTX for the pass: KCHECK_ACCESS and KCHECK_VARIABLE, to be inserted into a module behind its own .version,
// .target and .address_size, which this text lacks. Needs PTX 6.3 and sm_70. NUL-terminated.
extern const char kcheck_functions_ptx[];
#define KCHECK_WHAT(site, width, flags) \
    ((uint64_t)(uint32_t)(site) | (uint64_t)(uint16_t)(width) << 32 | (uint64_t)(flags) << 48)
// .func (.param .b64 found) KCHECK_BOUNDS (.param .b64 pointer): (pointer - base) << 32 | size of the live
// block that the pointer is in; 0: there is none, or it has 4 GiB or more. For what the inserted lookup
// cannot find: blocks of the heap of malloc in kernels. One value, since a function that returns several has
// no ABI.
#define KCHECK_BOUNDS "moat_check_bounds"
// A site is the tag of a text, one of several that may be linked into a module, and the number of an access.
enum { KCHECK_SITE_BITS = 20, KCHECK_TAG_BITS = 12 };
#define KCHECK_SITE(tag, number) \
    ((uint32_t)(number) >> KCHECK_SITE_BITS ? UINT32_MAX : (uint32_t)(tag) << KCHECK_SITE_BITS | (number))
enum kcheck_flags {
    KCHECK_READS = 1,
    KCHECK_WRITES = 2,  // atomics read and write
    KCHECK_ATOMIC = 4,
    KCHECK_GENERIC = 8,         // the address may be in shared or local memory: then the access is performed
    KCHECK_ROOT = 16,           // `root` is valid; without it only the address itself is looked up
    KCHECK_VARIABLE_LEFT = 32,  // the root is a variable, of any space, and the access is outside of it
    KCHECK_DYNAMIC = 64,        // the variable is all of the dynamic shared memory
    KCHECK_ALIGNED = 128,       // the address must be a multiple of the width
    KCHECK_INSIDE = 256,        // the access is inside, or is not made; only ALIGNED can be wrong
    KCHECK_FREES = 512,         // no access: the address is about to be passed to free
};
enum kcheck_verdict { KCHECK_PERFORM, KCHECK_SKIP };

// Kinds of records (error_ring_record.kind). payload[0]: what; [1]: root; [2], [3]: base and size of the
// block that the judgement rests on, with its flags, or of the dynamic shared memory, or 0; [4]: launch; [5]:
// number of the module; [6]: number of the counter (kcheck_state.h), or KCHECK_COUNTERS. site and address are
// members of the record.
enum kcheck_kind {
    KCHECK_LEFT = 1,          // the root's block is live and the access is not inside it
    KCHECK_USE_FREED,         // the root's block, or that of the address, was freed
    KCHECK_NULL,              // the root is null, or the address is in the first 64 KiB
    KCHECK_OUTSIDE_VARIABLE,  // KCHECK_VARIABLE_LEFT
    KCHECK_MISALIGNED,        // KCHECK_ALIGNED, and nothing else is wrong
    KCHECK_STRAY,        // the address is in no block that is tracked: performed; the host asks the driver
    KCHECK_REDZONE,      // the same, and the shadow says that there is nothing
    KCHECK_IN_HEAP,      // the address is in the heap of malloc in kernels, and in no block of it
    KCHECK_DOUBLE_FREE,  // KCHECK_FREES: the block was freed
    KCHECK_BAD_FREE,     // KCHECK_FREES: malloc never returned the address
    KCHECK_KINDS,
};

#endif
