// SPDX-License-Identifier: MIT
// Frames are in one table that only grows, found by a hash of their texts. Texts are kept by names.h, so
// equal texts have equal addresses.
#include "track/script_frames.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "context/names.h"
#include "core/lock.h"

enum { FRAMES = 1 << 14, SLOTS = 2 * FRAMES, TEXT = 1024 };

// The upper half of the address space is the kernel's.
#define FIRST_PC ((uint64_t)0xffff << 48)

static struct lock lock = LOCK_INIT(SCRIPT_FRAMES);
static struct script_frame frames[FRAMES];
static uint16_t slots[SLOTS];  // index + 1; 0: empty
// Release and acquire: frames below the count are complete.
static _Atomic uint32_t count;
static _Atomic bool given;  // relaxed: nothing follows from it but a sentence

static __thread uint64_t current[SCRIPT_FRAMES_MOST] __attribute__((tls_model("initial-exec")));
static __thread unsigned ncurrent __attribute__((tls_model("initial-exec")));

void script_frames_after_fork(void)
{
    lock_after_fork(&lock);
}

static uint32_t hash_of(const struct script_frame *f)
{
    uint64_t h = (uintptr_t)f->function * 31 + (uintptr_t)f->file;
    h = (h ^ f->line) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 40);
}

// Returns the address of a frame; 0 if the table is full.
static uint64_t intern(const struct script_frame *f)
{
    uint64_t pc = 0;
    lock_take(&lock);
    uint32_t n = atomic_load_explicit(&count, memory_order_relaxed), at = hash_of(f) % SLOTS;
    for (; slots[at]; at = (at + 1) % SLOTS) {
        const struct script_frame *other = &frames[slots[at] - 1];
        if (other->function == f->function && other->file == f->file && other->line == f->line)
            break;
    }
    if (slots[at])
        pc = FIRST_PC + slots[at] - 1;
    else if (n < FRAMES) {
        frames[n] = *f;
        slots[at] = (uint16_t)(n + 1);
        pc = FIRST_PC + n;
        atomic_store_explicit(&count, n + 1, memory_order_release);
    }
    lock_give(&lock);
    return pc;
}

uint64_t script_frames_keep(const char *function, const char *file, uint32_t line)
{
    struct script_frame f = {names_keep(function), names_keep(file), line};
    return f.function && f.file ? intern(&f) : 0;
}

// Reads "FUNCTION\tFILE\tLINE".
static bool read_frame(const char *line, size_t len, uint64_t *pc)
{
    char text[TEXT];
    if (len >= sizeof text)
        return false;
    memcpy(text, line, len);
    text[len] = 0;
    char *file = strchr(text, '\t'), *number = file ? strchr(file + 1, '\t') : NULL;
    if (!number)
        return false;
    *file++ = *number++ = 0;
    *pc = script_frames_keep(text, file, (uint32_t)strtoul(number, NULL, 10));
    return *pc;
}

void script_frames_set(const char *text)
{
    ncurrent = 0;
    if (text && *text)
        atomic_store_explicit(&given, true, memory_order_relaxed);
    while (text && *text && ncurrent < SCRIPT_FRAMES_MOST) {
        uint64_t pc;
        size_t len = strcspn(text, "\n");
        if (read_frame(text, len, &pc))
            current[ncurrent++] = pc;
        text += len + (text[len] == '\n');
    }
}

unsigned script_frames_get(uint64_t *pcs, unsigned most)
{
    unsigned n = ncurrent < most ? ncurrent : most;
    memcpy(pcs, current, n * sizeof *pcs);
    return n;
}

bool script_frames_seen(void)
{
    return atomic_load_explicit(&given, memory_order_relaxed);
}

bool script_frames_find(uint64_t pc, struct script_frame *out)
{
    if (pc < FIRST_PC || pc - FIRST_PC >= atomic_load_explicit(&count, memory_order_acquire))
        return false;
    *out = frames[pc - FIRST_PC];
    return true;
}
