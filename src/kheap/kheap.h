// SPDX-License-Identifier: MIT
// The heap behind malloc and free inside kernels: what host and device share.
//
//     base ──▶ struct kheap | counts | arrays | states, bitmaps, hints ... | entries | pool of 64 KiB chunks
//
// One heap per context. All of it lies in one piece of device memory, the ring of errors (error_ring.h) in
// memory that the host reads while kernels run (pinned and mapped). How the host sets it up:
//
//     struct kheap k;
//     kheap_plan(&k, limit, arrays, keys);     // how much memory is k.bytes
//     base = cuMemAlloc(k.bytes); ring = cuMemHostAlloc(kheap_ring_bytes(), PORTABLE | DEVICEMAP), cleared by the host
//     kheap_place(&k, base, ring as the device sees it);
//     cuMemsetD8(base, 0, k.clear); cuMemcpyHtoD(base, &k, sizeof k);
//
// and then, in each module that was rewritten, stores base in the variable KHEAP_VARIABLE. While that is 0, malloc returns
// NULL and free does nothing. Which functions take the place of malloc and free, and which kernel scans: see below.
// What the device writes is not to be trusted by the host: records are bytes from a program that may be broken or hostile.
#ifndef MOAT_KHEAP_KHEAP_H
#define MOAT_KHEAP_KHEAP_H

#include <stdint.h>

#include "ring/error_ring.h"

// Device functions: (.param .b64 result) malloc(.param .b64 size), free(.param .b64 pointer). Generic addresses.
#define KHEAP_MALLOC "moat_kheap_malloc"
#define KHEAP_FREE "moat_kheap_free"
// .weak .global .align 8 .u64: where the module finds the heap. The host sets it after loading.
#define KHEAP_VARIABLE "moat_kheap_base"
// The kernel that verifies every canary and releases what was freed: (.u64 base, .u32 0). Blocks of KHEAP_SCAN_THREADS
// threads, any number of them: they share the work. Runs beside malloc, free and other scans. Ends by itself.
#define KHEAP_SCAN "moat_kheap_scan"

enum {
    KHEAP_ARRAYS = 32,  // byte arrays, if nobody says otherwise
    KHEAP_ARRAYS_LEAST = 32,
    KHEAP_ARRAYS_MOST = 128,
    KHEAP_SCAN_THREADS = 256,
    KHEAP_SCAN_BLOCKS = 32,  // that are enough for a large heap; a block per array is plenty
    KHEAP_RECORDS = 256,     // in the ring
    KHEAP_KEYS = 4,
};

// PTX for the pass: functions and the variable, to be put into a module that calls malloc or free, behind its own
// .version, .target and .address_size; without these lines itself. Needs PTX 6.3 and sm_70. NUL-terminated.
extern const char kheap_functions_ptx[];
// A whole module with the kernel KHEAP_SCAN, .version 6.3, .target sm_70, to be loaded by the guard. NUL-terminated.
extern const char kheap_scan_ptx[];

enum kheap_kind {
    KHEAP_OVERRUN = 1,  // canaries are not as they were made: sides says where
    KHEAP_DOUBLE_FREE,  // by the thread that the record names
    KHEAP_BAD_FREE,     // of what malloc never returned: likewise
};

enum kheap_flags {
    KHEAP_HEAD = 1,        // something was written before the buffer
    KHEAP_TAIL = 2,        // behind it
    KHEAP_FREED = 4,       // the buffer had been freed already
    KHEAP_SIZE_LOST = 8,   // the size is not known any more: size and tail say nothing
    KHEAP_BY_THREAD = 16,  // grid, block and thread are those of the caller of free
};

// What the heap has found. Travels as a record of the client ERROR_RING_KHEAP.
struct kheap_record {
    uint32_t kind;     // enum kheap_kind
    uint32_t flags;    // enum kheap_flags
    uint64_t address;  // what malloc returned, or what free was given
    uint64_t size;     // that malloc was asked for
    // The 16 bytes before the buffer and the 8 behind it, as found and as they were made.
    uint64_t found_head, found_size, found_tail;
    uint64_t made_head, made_size, made_tail;
    uint64_t grid;
    uint32_t block[3], thread[3];
    uint32_t
        array;  // in whose entries it was found; its thread's number modulo the number of arrays allocated it
    uint32_t capacity;  // bytes of the block it lies in, in units of 16; 0 if not known
};

// The payload of its record in the ring, a word each.
enum kheap_word {
    KHEAP_WORD_FLAGS,  // array << 32 | flags
    KHEAP_WORD_CAPACITY,
    KHEAP_WORD_SIZE,
    KHEAP_WORD_FOUND_HEAD,
    KHEAP_WORD_FOUND_SIZE,
    KHEAP_WORD_FOUND_TAIL,
    KHEAP_WORD_MADE_HEAD,
    KHEAP_WORD_MADE_SIZE,
    KHEAP_WORD_MADE_TAIL,
    KHEAP_WORDS,
};
_Static_assert((int)KHEAP_WORDS <= (int)ERROR_RING_WORDS, "fits a payload");

// Counters, spread so that multiprocessors do not meet. Sums are what matters.
struct kheap_counts {
    uint64_t mallocs, frees, failed;  // calls of malloc that returned memory; of free that were right; NULLs
    uint64_t unused[13];
};
enum { KHEAP_COUNTS = 64 };

struct kheap {
    uint64_t magic;
    uint64_t base;  // its own address
    uint64_t key[KHEAP_KEYS];
    uint64_t bytes,
        clear;  // how much memory it needs; how much of that, from base on, must be zero before it is used
    // Where the parts lie.
    uint64_t counts, arrays_at, states, runs, bitmaps, free_hints, class_hints, actives, entries, pool;
    uint32_t chunks, arrays, buckets, hint_words;
    // Not 0: plain: malloc is the driver's from now on; foreign: so may be what free is given. Written while kernels run, and
    // read by what the pass puts before malloc and free: the functions here need not know.
    uint64_t plain, foreign;
    uint64_t unused[10];
    // Written by the device from here on, each in a line of its own.
    uint64_t pending[16];    // [0]: bytes that were freed and not released
    uint64_t cursor[16];     // [0]: next group of entries that a helping malloc looks at, in the low half
    uint64_t gatherers[16];  // [0]: threads that look for large blocks now; [1]: that have ended doing so
    struct error_ring_writer errors;
};

// How a heap for `limit` bytes (cudaLimitMallocHeapSize) is laid out. keys: random. 0, or -EINVAL if arrays is out of range
// or limit beyond what there can be.
int kheap_plan(struct kheap *k, uint64_t limit, uint32_t arrays, const uint64_t keys[KHEAP_KEYS]);
// base must be aligned to 256. Addresses are the device's.
void kheap_place(struct kheap *k, uint64_t base, uint64_t ring);
uint64_t kheap_ring_bytes(void);
// Reads a record of the ring. Returns false if it is not the heap's, or of no kind that the heap writes.
bool kheap_record_read(const struct error_ring_record *from, struct kheap_record *r);

#endif
