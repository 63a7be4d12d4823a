// SPDX-License-Identifier: MIT
// The heap behind malloc and free inside kernels: what host and device share.
//
//     base ──▶ struct kheap | counts | arrays | states, bitmaps, hints ... | entries | pool of 64 KiB chunks
//
// There is one heap per context. All of it lies in one allocation of device memory, except the error ring
// (error_ring.h), which lies in memory that the host reads while kernels run (pinned and mapped). The host
// sets it up like this:
//
//     struct kheap k;
//     kheap_plan(&k, limit, arrays, keys);     // sets k.bytes, the memory needed
//     base = cuMemAlloc(k.bytes);
//     ring = cuMemHostAlloc(kheap_ring_bytes(), PORTABLE | DEVICEMAP), cleared by the host
//     kheap_place(&k, base, ring's device address);
//     cuMemsetD8(base, 0, k.clear); cuMemcpyHtoD(base, &k, sizeof k);
//
// and then stores base in the variable KHEAP_VARIABLE of each rewritten module. While that is 0, malloc
// returns NULL and free does nothing. The functions that replace malloc and free, and the kernel that scans,
// are named below. The host must not trust what the device writes: records are bytes from a program that may
// be broken or hostile.
#ifndef MOAT_KHEAP_KHEAP_H
#define MOAT_KHEAP_KHEAP_H

#include <stdint.h>

#include "ring/error_ring.h"

// Device functions: (.param .b64 result) malloc(.param .b64 size), free(.param .b64 pointer), on generic
// addresses.
#define KHEAP_MALLOC "moat_kheap_malloc"
#define KHEAP_FREE "moat_kheap_free"
// (.param .b64 result) (.param .b64 size, .param .b64 align): align is a power of 2 from 16 to
// KHEAP_ALIGN_MOST, and 16 unless the heap has `bounds`.
#define KHEAP_ALIGNED "moat_kheap_aligned"
// .weak .global .align 8 .u64: the heap's address for the module. The host sets it after loading.
#define KHEAP_VARIABLE "moat_kheap_base"
// The kernel that verifies every canary and releases freed blocks: (.u64 base, .u32 0). Any number of blocks
// of KHEAP_SCAN_THREADS threads, which share the work. It runs concurrently with malloc, free and other
// scans, and terminates by itself.
#define KHEAP_SCAN "moat_kheap_scan"

enum {
    KHEAP_ARRAYS = 32,  // byte arrays by default
    KHEAP_ARRAYS_LEAST = 32,
    KHEAP_ARRAYS_MOST = 128,
    KHEAP_SCAN_THREADS = 256,
    KHEAP_SCAN_BLOCKS = 32,  // blocks that are enough for a large heap; one per array is plenty
    KHEAP_RECORDS = 256,     // in the ring
    KHEAP_KEYS = 4,
    KHEAP_ALIGN_MOST = 4096,
};

// PTX for the pass: functions and the variable, to be inserted into a module that calls malloc or free,
// behind its own .version, .target and .address_size, which this text lacks. Needs PTX 6.3 and sm_70.
// NUL-terminated.
extern const char kheap_functions_ptx[];
// A complete module with the kernel KHEAP_SCAN, .version 6.3, .target sm_70, to be loaded by the guard.
// NUL-terminated.
extern const char kheap_scan_ptx[];

enum kheap_kind {
    KHEAP_OVERRUN = 1,  // canaries have changed: flags say which
    KHEAP_DOUBLE_FREE,  // by the thread in the record
    KHEAP_BAD_FREE,     // of a pointer that malloc never returned, by the thread in the record
};

enum kheap_flags {
    KHEAP_HEAD = 1,        // bytes before the buffer were overwritten
    KHEAP_TAIL = 2,        // bytes behind it were overwritten
    KHEAP_FREED = 4,       // the buffer had been freed
    KHEAP_SIZE_LOST = 8,   // the size is unknown: size and tail are meaningless
    KHEAP_BY_THREAD = 16,  // grid, block and thread are those of the caller of free
};

// An error that the heap has found. It travels as a record of the client ERROR_RING_KHEAP.
struct kheap_record {
    uint32_t kind;     // enum kheap_kind
    uint32_t flags;    // enum kheap_flags
    uint64_t address;  // what malloc returned, or what free was given
    uint64_t size;     // that malloc was asked for
    // The 16 bytes before the buffer and the 8 behind it, as found and as they should be.
    uint64_t found_head, found_size, found_tail;
    uint64_t made_head, made_size, made_tail;
    uint64_t grid;
    uint32_t block[3], thread[3];
    // The array in whose entries it was found; 0 with KHEAP_BY_THREAD. An allocating thread first tries the
    // array of its number modulo the number of arrays.
    uint32_t array;
    uint32_t capacity;  // size of the block it lies in, in units of 16 bytes; 0 if unknown
};

// The payload of its record in the ring, one word each.
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

// Counters, spread over several copies so that multiprocessors do not contend. Only their sums matter.
struct kheap_counts {
    uint64_t mallocs, frees, failed;  // successful mallocs; correct frees; mallocs that returned NULL
    uint64_t unused[13];
};
enum { KHEAP_COUNTS = 64 };

struct kheap {
    uint64_t magic;
    uint64_t base;  // its own address
    uint64_t key[KHEAP_KEYS];
    // The memory it needs; how much of that, from base on, must be zeroed before use.
    uint64_t bytes, clear;
    // Addresses of the parts.
    uint64_t counts, arrays_at, states, runs, bitmaps, free_hints, class_hints, actives, entries, pool;
    uint32_t chunks, arrays, buckets, hint_words;
    // plain: if not 0, malloc is the driver's from now on. foreign: if not 0, free may be given the driver's
    // blocks. Written while kernels run, and read by the code that the pass inserts before malloc and free;
    // the functions here ignore them.
    uint64_t plain, foreign;
    uint64_t bounds;  // address of what kfind.h needs; 0: the heap does not keep it
    uint64_t unused[9];
    // Written by the device from here on, each in a cache line of its own.
    uint64_t pending[16];    // [0]: bytes that were freed and not released yet
    uint64_t cursor[16];     // [0], low half: the next group of entries for a malloc that helps to scan
    uint64_t gatherers[16];  // [0]: threads now searching for runs; [1]: threads that have finished
    struct error_ring_writer errors;
};

// Lays out a heap for `limit` bytes (cudaLimitMallocHeapSize). keys: random. Returns 0, or -EINVAL if arrays
// is out of range or limit is too large.
int kheap_plan(struct kheap *k, uint64_t limit, uint32_t arrays, const uint64_t keys[KHEAP_KEYS]);
// The same for a heap in which the block of any address can be found (kfind.h); it takes a quarter more.
int kheap_plan_found(struct kheap *k, uint64_t limit, uint32_t arrays, const uint64_t keys[KHEAP_KEYS]);
// Turns offsets into device addresses. base must be aligned to 256; ring is the device's address of the ring.
void kheap_place(struct kheap *k, uint64_t base, uint64_t ring);
uint64_t kheap_ring_bytes(void);
// Decodes a record of the ring. Returns false if it is not the heap's, or of an unknown kind.
bool kheap_record_read(const struct error_ring_record *from, struct kheap_record *r);

#endif
