// SPDX-License-Identifier: MIT
// The depot is address space reserved once: a table of chains, and then records, one after another, that are
// never changed after publication nor freed. An id is a record's offset in 8-byte words; 0, where the table
// is, identifies none. A record is written in full and then made the head of its chain by a compare-and-swap,
// so readers need no lock, nobody waits, and the child of a fork has a consistent depot.
#include "track/stack.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "track/python_frames.h"
#include "track/script_frames.h"
#include "track/stack_cache.h"

enum {
    CHAINS = 1 << 16,
    TABLE_WORDS = CHAINS / 2,
    DEFAULT_BYTES = 64 << 20,
    LOOK_FURTHER = 16,  // frames beyond the depth in which skip_until is still searched for
};

struct record {
    uint32_t hash;
    uint32_t next;  // next record of the chain
    uint32_t count;
    uint32_t check;  // the record's id, by which invalid ids are recognised
    uint64_t pc[];
};

static uint64_t *depot;        // set once, before other threads use it
static uint64_t room;          // words
static _Atomic uint64_t used;  // words
static _Atomic uint64_t stacks, refused;
static uint64_t own_from, own_to;

static _Atomic uint32_t *chain_of(uint32_t hash)
{
    return (_Atomic uint32_t *)depot + hash % CHAINS;
}

static struct record *record_at(uint32_t id)
{
    return (struct record *)(depot + id);
}

static uint32_t hash_of(const uint64_t *pcs, unsigned n)
{
    uint64_t h = n;
    for (unsigned i = 0; i < n; i++) {
        h = (h ^ pcs[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return (uint32_t)(h >> 32);
}

// Returns the record of these frames among those from `id` up to `end`; 0 if there is none.
static uint32_t look_up(uint32_t id, uint32_t end, uint32_t hash, const uint64_t *pcs, unsigned n)
{
    for (; id != end; id = record_at(id)->next) {
        const struct record *r = record_at(id);
        if (r->hash == hash && r->count == n && !memcmp(r->pc, pcs, n * sizeof *pcs))
            return id;
    }
    return 0;
}

static uint64_t words_for(unsigned n)
{
    return (sizeof(struct record) + n * sizeof(uint64_t)) / sizeof(uint64_t);
}

static uint32_t take_room(unsigned n)
{
    // Acquire: pairs with give_room_back, whose caller wrote there. Records are published through their
    // chains.
    uint64_t at = atomic_load_explicit(&used, memory_order_relaxed);
    do
        if (room - at < words_for(n))
            return 0;
    while (!atomic_compare_exchange_weak_explicit(&used, &at, at + words_for(n), memory_order_acquire,
                                                  memory_order_relaxed));
    return (uint32_t)at;
}

// Returns space that was taken last and never published, if no other thread has taken more since.
static void give_room_back(uint32_t id, unsigned n)
{
    uint64_t end = id + words_for(n);
    // Release: pairs with take_room.
    atomic_compare_exchange_strong_explicit(&used, &end, id, memory_order_release, memory_order_relaxed);
}

uint32_t stack_keep(const uint64_t *pcs, unsigned n)
{
    if (!n || !depot)
        return 0;
    uint32_t hash = hash_of(pcs, n);
    _Atomic uint32_t *chain = chain_of(hash);
    // Acquire, here and where the swap fails: pairs with the swap that published the record.
    uint32_t head = atomic_load_explicit(chain, memory_order_acquire);
    uint32_t id = look_up(head, 0, hash, pcs, n);
    if (id)
        return id;
    uint32_t new = take_room(n);
    if (!new) {
        atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
        return 0;
    }
    struct record *r = record_at(new);
    *r = (struct record){.hash = hash, .next = head, .count = n, .check = new};
    memcpy(r->pc, pcs, n * sizeof *pcs);
    // Release: pairs with the acquires above and in stack_frames.
    while (!atomic_compare_exchange_weak_explicit(chain, &head, new, memory_order_acq_rel,
                                                  memory_order_acquire)) {
        id = look_up(head, r->next, hash, pcs, n);
        if (id) {
            give_room_back(new, n);
            return id;
        }
        r->next = head;
    }
    atomic_fetch_add_explicit(&stacks, 1, memory_order_relaxed);
    return new;
}

struct walk {
    uint64_t skip_until;
    bool found;
    unsigned depth, n, seen;
    uint64_t pcs[STACK_DEPTH_MAX];
    bool inside;  // past the first frame, that of stack_capture itself
    struct stack_cache_walk kept;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *opaque)
{
    struct walk *walk = opaque;
    uint64_t pc = _Unwind_GetIP(context);
    if (!pc)
        return _URC_END_OF_STACK;
    if (walk->inside)
        stack_cache_add(&walk->kept, pc, _Unwind_GetCFA(context));
    walk->inside = true;
    if (pc >= own_from && pc < own_to)
        return _URC_NO_REASON;
    if (!walk->found && pc == walk->skip_until) {
        walk->found = true;
        walk->n = 0;
    }
    if (walk->n < walk->depth)
        walk->pcs[walk->n++] = pc;
    bool full = walk->n == walk->depth;
    bool done = walk->found || !walk->skip_until || walk->seen++ >= walk->depth + LOOK_FURTHER;
    return full && done ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static _Atomic uint64_t walked;  // relaxed: only counted

uint64_t stack_walked(void)
{
    return atomic_load_explicit(&walked, memory_order_relaxed);
}

// Returns the stack from the caller of this function on. It has a frame of its own, the unwinder's first.
static __attribute__((noinline)) uint32_t capture_code(const void *skip_until, unsigned depth)
{
    const void *frame = __builtin_frame_address(0);
    uint32_t id = skip_until ? 0 : stack_cache_find(frame, depth);
    if (id)
        return id;
    struct walk walk;
    walk.skip_until = (uintptr_t)skip_until;
    walk.found = walk.inside = false;
    walk.depth = depth < STACK_DEPTH_MAX ? depth : STACK_DEPTH_MAX;
    walk.n = walk.seen = 0;
    stack_cache_start(&walk.kept, frame, depth);
    atomic_fetch_add_explicit(&walked, 1, memory_order_relaxed);
    _Unwind_Backtrace(step, &walk);
    id = stack_keep(walk.pcs, walk.n);
    if (!skip_until)
        stack_cache_keep(&walk.kept, id);
    return id;
}

// Stacks of Python code that were captured before. A word has a stack's id and above it the upper half of the
// hash of what it was made of.
enum { WITH_PYTHON = 1 << 12 };
static _Atomic uint64_t with_python[WITH_PYTHON];

// Returns the stack that consists of another, of machine code, and of Python's frames.
static __attribute__((noinline)) uint32_t keep_with_python(uint32_t code_id, const struct python_walk *walk)
{
    uint64_t pcs[STACK_DEPTH_MAX], python[PYTHON_FRAMES_MOST];
    uint64_t hash = (walk->hash ^ code_id) * 0x9e3779b97f4a7c15u;
    _Atomic uint64_t *slot = &with_python[(hash ^ hash >> 20) % WITH_PYTHON];
    // Acquire: pairs with the release below, whose thread saw the record published.
    uint64_t word = atomic_load_explicit(slot, memory_order_acquire);
    if (word && word >> 32 == hash >> 32)
        return (uint32_t)word;
    unsigned n = python_frames_get(walk, python), most = STACK_DEPTH_MAX - n;
    unsigned code = stack_frames(code_id, pcs, most);
    code = code < most ? code : most;
    memcpy(pcs + code, python, n * sizeof *python);
    uint32_t id = stack_keep(pcs, code + n);
    if (id && n == walk->count)
        atomic_store_explicit(slot, hash >> 32 << 32 | id, memory_order_release);
    return id;
}

uint32_t stack_capture(const void *skip_until, unsigned depth)
{
    uint64_t script[SCRIPT_FRAMES_MOST];
    struct python_walk walk;
    if (!depot || !depth)
        return 0;
    unsigned n = script_frames_get(script, depth < SCRIPT_FRAMES_MOST ? depth : SCRIPT_FRAMES_MOST);
    if (n)
        return stack_keep(script, n);
    uint32_t id = capture_code(skip_until, depth);
    return python_frames_walk(&walk, depth) ? keep_with_python(id, &walk) : id;
}

unsigned stack_frames(uint32_t id, uint64_t *pcs, unsigned most)
{
    // Relaxed: a thread that has an id got it from one that saw the record published.
    uint64_t end = atomic_load_explicit(&used, memory_order_relaxed);
    if (!depot || id < TABLE_WORDS || id + words_for(0) > end)
        return 0;
    const struct record *r = record_at(id);
    if (r->check != id || r->count > STACK_DEPTH_MAX)
        return 0;
    memcpy(pcs, r->pc, (r->count < most ? r->count : most) * sizeof *pcs);
    return r->count;
}

void stack_stats(struct stack_stats *stats)
{
    stats->stacks = atomic_load_explicit(&stacks, memory_order_relaxed);
    stats->bytes = atomic_load_explicit(&used, memory_order_relaxed) * sizeof(uint64_t);
    stats->refused = atomic_load_explicit(&refused, memory_order_relaxed);
}

struct place {
    uint64_t pc, offset;
    uint64_t from, to;  // bounds of the segment
    bool found, program;
    char *object;
    size_t size;
};

// Runs under the dynamic loader's lock: it must not call anything that may take that lock.
static int look_into(struct dl_phdr_info *info, size_t size, void *opaque)
{
    struct place *place = opaque;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t from = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || place->pc - from >= segment->p_memsz)
            continue;
        place->found = true;
        place->offset = place->pc - info->dlpi_addr;
        place->from = from;
        place->to = from + segment->p_memsz;
        place->program = !info->dlpi_name || !*info->dlpi_name;
        if (place->size && !place->program) {
            size_t length = strnlen(info->dlpi_name, place->size - 1);
            memcpy(place->object, info->dlpi_name, length);
            place->object[length] = 0;
        }
        return 1;
    }
    return 0;
}

// The program's path, as it was when the process began to be watched: a process that has changed its root may
// not find it any more.
static char program[PATH_MAX];

static void find_program(void)
{
    int saved = errno;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    errno = saved;
    program[length < 0 ? 0 : length] = 0;
}

bool stack_locate(uint64_t pc, char *object, size_t size, uint64_t *offset)
{
    struct place place = {.pc = pc, .object = object, .size = size};
    dl_iterate_phdr(look_into, &place);
    if (!place.found)
        return false;
    if (place.program)
        snprintf(object, size, "%s", program);
    *offset = place.offset;
    return true;
}

void stack_own(uint64_t from, uint64_t to)
{
    own_from = from;
    own_to = to;
    stack_cache_clear();
}

int stack_init(size_t bytes)
{
    assert(!depot);
    struct place here = {.pc = (uintptr_t)stack_init};
    bytes = bytes ? bytes : DEFAULT_BYTES;
    uint64_t words = TABLE_WORDS + bytes / sizeof(uint64_t);
    if (words > UINT32_MAX)
        words = UINT32_MAX;
    int saved = errno;
    void *memory = mmap(NULL, words * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = saved;
    if (memory == MAP_FAILED)
        return -ENOMEM;
    find_program();
    python_frames_init();
    dl_iterate_phdr(look_into, &here);
    // Linked into a program, as opposed to a library, moat's frames cannot be separated from the program's.
    if (here.found && !here.program)
        stack_own(here.from, here.to);
    room = words;
    atomic_store_explicit(&used, TABLE_WORDS, memory_order_relaxed);
    depot = memory;
    stack_capture(NULL, 1);
    return 0;
}

void stack_forget(void)
{
    if (depot)
        munmap(depot, room * sizeof(uint64_t));
    depot = NULL;
    stack_own(0, 0);
    for (unsigned i = 0; i < WITH_PYTHON; i++)
        atomic_store_explicit(&with_python[i], 0, memory_order_relaxed);
    atomic_store_explicit(&used, 0, memory_order_relaxed);
    atomic_store_explicit(&stacks, 0, memory_order_relaxed);
    atomic_store_explicit(&refused, 0, memory_order_relaxed);
}
