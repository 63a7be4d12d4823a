// SPDX-License-Identifier: MIT
// The watched heap: what malloc and its family do under libmoat-heap.so. preload.c gives these the names that programs know.
#ifndef MOAT_HEAP_HEAP_H
#define MOAT_HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/block.h"

// `from` and `frame`: the return address of the program's call, and where the stack was then. Not a struct: that would pass
// through memory.
#define HEAP_CALL __builtin_return_address(0), __builtin_dwarf_cfa()

struct heap_settings {
    bool lazy;            // freed blocks wait before they are given back
    uint64_t wait_bytes;  // as many of them for each thread
};
extern __attribute__((visibility("hidden"))) struct heap_settings heap_settings;

void heap_set_lazy(bool lazy);

struct producer;

// NULL and errno = ENOMEM as malloc's. align: 0 or a power of two. heap_fast.h has the short ways in.
void *heap_alloc(const void *from, const void *frame, size_t size, size_t align, enum block_kind kind);
void *heap_calloc(const void *from, const void *frame, size_t bytes);
void *heap_realloc(const void *from, const void *frame, void *p, size_t size);
// The like for a block that lives.
void *heap_resize(struct producer *w, const void *from, const void *frame, void *p, size_t size);
// family, name: of the function that was called.
void heap_free(const void *from, const void *frame, void *p, enum block_kind family, const char *name);
size_t heap_usable(void *p);

// The calling thread's record; NULL: it has none yet.
struct producer *heap_self(void);
void heap_thread_ends(struct producer *w);  // what it freed and kept is given back

// --- for heap_resize.c and heap_lazy_free.c ---

#define HEAP_LARGEST ((size_t)PTRDIFF_MAX - (1 << 20))

struct producer *
heap_join(void);  // the calling thread's record, a new one if need be; NULL: there cannot be one
void *heap_no_memory(void);
// The word of a block that has such a room, from the shelf or what fills it; 0: the allocator below must give one, with this room.
uint64_t heap_take(struct producer *w, size_t room);
size_t heap_room_below(size_t room);
void heap_mark(const void *block, size_t size);  // there is one: its head may be looked for
// A block in what came from below. Without a record for the thread it gets canaries all the same.
void *heap_dress(struct producer *w, const void *from, const void *frame, char *base, struct block_info info);
// A block that lives is given to a call: reports what is wrong with it.
void heap_check_block(struct producer *w, const void *from, const void *frame, void *p,
                      enum block_kind family, const char *name);
// Whether p is a block that went back to the system and is given to a call once more: that has been reported.
bool heap_is_gone(struct producer *w, const void *from, const void *frame, void *p, const char *name);
void heap_free_ours(struct producer *w, void *p, struct block_info info, uint32_t site);
void heap_free_without_record(void *p);
// A block that is marked as freed goes to a bin of the shelf; to the shelf or back to the allocator below; there. If nobody can be told now,
// it stays where it is.
struct thread_cache_bin;
void heap_put_into_bin(struct producer *w, void *p, struct thread_cache_bin *b);
void heap_put_away(struct producer *w, void *p, struct block_info info);
void heap_give_back(struct producer *w, void *p, struct block_info info);

#endif
