// SPDX-License-Identifier: MIT
// The watched heap: malloc and its family under libmoat-heap.so. preload.c exports these functions under
// their public names.
#ifndef MOAT_HEAP_HEAP_H
#define MOAT_HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/block.h"

// `from` and `frame`: the return address of the program's call and its stack address. Two values, not a
// struct, because a struct would be passed through memory.
#define HEAP_CALL __builtin_return_address(0), __builtin_dwarf_cfa()

struct heap_settings {
    bool lazy;                  // freed blocks are quarantined before they are reused or given back
    uint64_t quarantine_bytes;  // bound of each thread's quarantine
};
extern __attribute__((visibility("hidden"))) struct heap_settings heap_settings;

void heap_set_lazy(bool lazy);

struct producer;

// Allocates; returns NULL with errno = ENOMEM if out of memory. align: 0 or a power of two. heap_fast.h has
// the inline fast paths.
void *heap_alloc(const void *from, const void *frame, size_t size, size_t align, enum block_kind kind);
void *heap_calloc(const void *from, const void *frame, size_t bytes);
void *heap_realloc(const void *from, const void *frame, void *p, size_t size);
// As heap_realloc, for a live block.
void *heap_resize(struct producer *w, const void *from, const void *frame, void *p, size_t size);
// family, name: those of the function that was called.
void heap_free(const void *from, const void *frame, void *p, enum block_kind family, const char *name);
// Returns the size that the program asked for if p is ours, else what the next allocator says.
size_t heap_usable(void *p);

// Returns the calling thread's record, or NULL if it has none yet.
struct producer *heap_self(void);
void heap_thread_ends(struct producer *w);  // gives back the blocks that its cache and quarantine hold

// --- for heap_resize.c and heap_lazy_free.c ---

#define HEAP_LARGEST ((size_t)PTRDIFF_MAX - (1 << 20))

// Returns the calling thread's record, made if need be; NULL if it cannot be made.
struct producer *heap_join(void);
void *heap_no_memory(void);  // sets errno = ENOMEM and returns NULL
// Returns the word of a block with this room, from the thread cache or from spans; 0 if the next allocator
// must provide one, of heap_room_below(room) bytes.
uint64_t heap_take(struct producer *w, size_t room);
size_t heap_room_below(size_t room);  // room, rounded up to that of its bin
// Records that a block lies here, so that its head may be looked for.
void heap_mark(const void *block, size_t size);
// Makes a live block at `base`, which came from the next allocator. Without a record for the thread (w is
// NULL) the block gets canaries but is not watched.
void *heap_make_block(struct producer *w, const void *from, const void *frame, char *base,
                      struct block_info info);
// Checks a live block that is passed to a call, and reports what is wrong with it.
void heap_check_block(struct producer *w, const void *from, const void *frame, void *p,
                      enum block_kind family, const char *name);
// Returns whether p is a block that went back to the system; then the call frees it a second time, which has
// been reported.
bool heap_is_unmapped(struct producer *w, const void *from, const void *frame, void *p, const char *name);
// Frees a live block that was checked: into the quarantine if frees are lazy and it is not too large, else
// by heap_put_away.
void heap_free_ours(struct producer *w, void *p, struct block_info info, uint32_t site);
void heap_free_without_record(void *p);  // for a thread whose record could not be made
// Put a block that is marked as freed: into a bin of the thread cache; into the thread cache or back to the
// next allocator, by its size; back to the next allocator or its span. If its word cannot be removed now, the
// block stays allocated for good.
struct thread_cache_bin;
void heap_put_into_bin(struct producer *w, void *p, struct thread_cache_bin *b);
void heap_put_away(struct producer *w, void *p, struct block_info info);
void heap_give_back(struct producer *w, void *p, struct block_info info);

#endif
