// SPDX-License-Identifier: MIT
#include "heap/heap_report.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cancel.h"
#include "heap/own_fds.h"
#include "heap/monitor.h"
#include "heap/cycle.h"
#include "heap/deliver.h"
#include "heap/safe_read.h"
#include "heap/site.h"
#include "heap/producer.h"
#include "report/channel.h"
#include "report/text_buffer.h"

enum { MOST_REPORTS = 1000, KNOWN = MOST_REPORTS, OURS = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // rank 3: the last
// One for the program's threads, and one for each of ours that has descriptors of its own.
static struct channel channels[1 + OURS];
static char program[512];
static uint64_t reports, suppressed;
static bool started;
static int halt_status = -1;

static _Atomic uint64_t known[KNOWN];
static _Atomic unsigned nknown;

static __thread bool busy __attribute__((tls_model("initial-exec")));

static unsigned channels_taken;  // by our threads

// The lock must be held.
static struct channel *channel(void)
{
    static __thread unsigned own __attribute__((tls_model("initial-exec")));
    if (!own_fds_has())
        return &channels[0];
    if (!own)
        own = channels_taken < OURS ? ++channels_taken : OURS;
    return &channels[own];
}

static void lock_reports(void)
{
    cancel_hold();
    pthread_mutex_lock(&lock);
    busy = true;
}

static void unlock_reports(void)
{
    busy = false;
    pthread_mutex_unlock(&lock);
    cancel_release();
}

bool heap_report_is_busy(void)
{
    return busy;
}

void heap_report_init(const char *log_file, int status)
{
    halt_status = status;
    for (unsigned i = 0; i <= OURS; i++) {
        channel_init(&channels[i], log_file);
        channels[i].standard_error = i ? own_fds_standard_error : NULL;
    }
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
}

void heap_report_before_threads(void)
{
    channel_prepare(&channels[0]);
}

bool heap_report_is_known(uint64_t name)
{
    // Relaxed, all: a caller that must be sure uses heap_report_make_known.
    unsigned n = atomic_load_explicit(&nknown, memory_order_relaxed);
    for (unsigned i = 0; i < n && i < KNOWN; i++)
        if (atomic_load_explicit(&known[i], memory_order_relaxed) == name)
            return true;
    return false;
}

// Returns whether this thread can report. One of ours may not get at standard error; then a thread of the
// program reports, when it frees the block or at exit.
static bool can_report(void)
{
    const struct channel *c = &channels[0];
    if (!own_fds_has() || (c->path[0] && !c->failed) || c->log_file[0] || halt_status >= 0)
        return true;
    int fd = own_fds_standard_error();
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

// Under the lock, as the monitor and a free may detect the same error at the same time.
bool heap_report_make_known(uint64_t name)
{
    lock_reports();
    bool fresh = !heap_report_is_known(name) && can_report();
    if (fresh) {
        unsigned i = atomic_fetch_add_explicit(&nknown, 1, memory_order_relaxed);
        atomic_store_explicit(&known[i % KNOWN], name, memory_order_relaxed);
    }
    unlock_reports();
    return fresh;
}

// --- stacks ---

struct stack_room {
    uint64_t pcs[SITE_FRAMES];
    struct report_frame frames[SITE_FRAMES];
};

static struct report_frame frame_of(uint64_t pc)
{
    struct report_frame f = {.pc = pc};
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1((void *)(uintptr_t)(pc - 1), &info, (void **)&map, RTLD_DL_LINKMAP) && map) {
        f.object = map->l_name && *map->l_name ? map->l_name : program;
        f.offset = pc - map->l_addr;
        f.function = NULL;
    }
    return f;
}

static struct report_stack stack_of(uint32_t site, struct stack_room *room)
{
    uint32_t count = (uint32_t)site_frames(site, room->pcs);
    for (uint32_t i = 0; i < count; i++)
        room->frames[i] = frame_of(room->pcs[i]);
    return (struct report_stack){count, room->frames};
}

// --- reports ---

struct buffer_room {
    struct stack_room made, freed;
    char thread[32];
};

// Writes the id of the thread that the place names. After that thread has ended, the record may belong to a
// younger one.
static void name_thread(uint64_t place, char *name, size_t size)
{
    struct text_buffer b;
    text_buffer_init(&b, name, size - 1);
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed))
        if (place != PRODUCER_UNWATCHED && place >> 48 == w->id >> 48)
            text_buffer_fmt(&b, "%d", (int)atomic_load_explicit(&w->tid, memory_order_relaxed));
    name[b.len] = 0;
}

// Returns whether the head's first three words are intact: the tail is where they say and matches them.
static bool head_is_sound(const char *block, const struct block_head *h)
{
    uint64_t tail, size = block_info_of(block, h).size;
    return size < BLOCK_HIGHEST && safe_read_one(block + size, sizeof tail, &tail) &&
           tail == block_tail_canary(block_live_canary((uint64_t)(uintptr_t)block, h));
}

// Describes a block whose head is known to be intact.
static struct report_buffer buffer_by_head(const char *block, const struct block_head *h,
                                           struct buffer_room *room)
{
    struct block_info info = block_info_of(block, h);
    struct report_buffer b = {
        .base = (uint64_t)(uintptr_t)block,
        .size = info.size,
        .made_by = block_kind_name(info.kind),
        .made_at = stack_of(block_made_at(h->ticket), &room->made),
    };
    name_thread(h->place, room->thread, sizeof room->thread);
    if (room->thread[0])
        b.thread = room->thread;
    if (block_is_freed(block, h)) {
        b.freed_by = "free";
        b.freed_at = stack_of(block_freed_at(block, h), &room->freed);
    }
    return b;
}

static struct report_buffer buffer_of(const char *block, const struct block_head *h, struct buffer_room *room)
{
    struct report_buffer b = buffer_by_head(block, h, room);
    // Freed and not intact: the allocator has the block, and keeps a list where the size was.
    if (b.freed_by && !head_is_sound(block, h)) {
        b.size = 0;
        b.made_by = b.thread = NULL;
    }
    return b;
}

static void start(void)
{
    if (started || !channels[0].path[0])
        return;
    started = true;
    struct report_line line = {
        .event = REPORT_START,
        .start = {.pid = getpid(), .parent = getppid(), .program = program, .mode = "heap"}};
    channel_send(channel(), &line);
}

static void send(struct report *r)
{
    lock_reports();
    if (reports < MOST_REPORTS) {
        start();
        r->pid = getpid();
        r->device = -1;
        r->library = "heap";
        r->id = ++reports;
        r->count = 1;
        struct report_line line = {.event = REPORT_ERROR, .error = *r};
        bool counts = channel_send(channel(), &line) != CHANNEL_SUPPRESSED;
        suppressed += !counts;
        if (counts && halt_status >= 0)
            syscall(SYS_exit_group, halt_status);
    }
    unlock_reports();
}

// Returns a bit mask of the bytes in which two words differ, with the first and the number of them.
static uint8_t differing(uint64_t is, uint64_t should_be, unsigned *first, unsigned *count)
{
    uint8_t bits = 0;
    for (unsigned i = 0; i < 8; i++)
        bits |= (uint8_t)(((is ^ should_be) >> 8 * i & 255 ? 1u : 0u) << i);
    *first = bits ? (unsigned)__builtin_ctz(bits) : 0;
    *count = (unsigned)__builtin_popcount(bits);
    return bits;
}

// Marks the bytes in which a tail, from `is` on, differs from what it should be.
static void differing_tail(const char *is, struct block_info info, uint64_t canary,
                           uint8_t touched[BLOCK_TAIL_MOST / 8], unsigned *first, unsigned *count)
{
    uint32_t bits = differing(block_tail(is, 0), canary, first, count);
    uint64_t fill = heap_key.word[HEAP_KEY_FILLER] & 255;
    for (uint64_t i = BLOCK_TAIL; i < block_tail_bytes(info.size, info.step); i++)
        bits |= (uint32_t)((unsigned char)is[i] != fill) << i;
    for (int i = 0; i < BLOCK_TAIL_MOST / 8; i++)
        touched[i] = (uint8_t)(bits >> 8 * i);
    *first = bits ? (unsigned)__builtin_ctz(bits) : 0;
    *count = (unsigned)__builtin_popcount(bits);
}

void heap_report_tail(const char *block, const struct block_head *head, const char tail[BLOCK_TAIL_MOST],
                      const char *found_by)
{
    struct buffer_room room;
    struct report_buffer b = buffer_of(block, head, &room);
    struct block_info info = block_info_of(block, head);
    unsigned first, count;
    uint8_t touched[BLOCK_TAIL_MOST / 8];
    differing_tail(tail, info, block_tail_canary(block_live_canary(b.base, head)), touched, &first, &count);
    char text[80];
    struct text_buffer t;
    text_buffer_init(&t, text, sizeof text - 1);
    text_buffer_fmt(&t, "found when the block was given to %s", found_by ? found_by : "");
    text[t.len] = 0;
    const char *note = text;
    struct report r = {
        .type = REPORT_HEAP_OVERFLOW,
        .has_address = true,
        .address = b.base + b.size + first,
        .access = REPORT_WRITE,
        .bytes = count,
        .nbuffers = 1,
        .buffers = &b,
        .corrupted = {b.base + b.size, block_tail_bytes(info.size, info.step), (const uint8_t *)tail,
                      touched},
        .nnotes = found_by ? 1 : 0,
        .notes = &note,
    };
    send(&r);
}

void heap_report_head(const char *block, const struct block_head *head)
{
    uint64_t address = (uint64_t)(uintptr_t)block;
    unsigned first, count;
    uint8_t touched[4] = {0, 0, 0, differing(head->canary, block_live_canary(address, head), &first, &count)};
    // If more than the canary was overwritten, neither size nor stack is known.
    bool canary_only = head_is_sound(block, head);
    static const char *const notes[] = {"the bytes before the block were overwritten, by a write before its "
                                        "start or past the end of another block",
                                        "its size and the place that allocated it were overwritten too"};
    struct report_buffer b = {.base = address, .made_by = "an allocation"};
    struct buffer_room room;
    if (canary_only)
        b = buffer_of(block, head, &room);
    struct report r = {
        .type = REPORT_HEAP_UNDERFLOW,
        .has_address = true,
        .address = address - 8 + first,
        .access = REPORT_WRITE,
        .nbuffers = 1,
        .buffers = &b,
        .corrupted = {address - BLOCK_HEAD, BLOCK_HEAD, (const uint8_t *)head, touched},
        .nnotes = canary_only ? 1 : 2,
        .notes = notes,
    };
    send(&r);
}

void heap_report_unused_head(const char *block, const struct block_head *head, const char *before)
{
    struct block_head owner;
    if (!before || !safe_read_one(before - BLOCK_HEAD, sizeof owner, &owner) ||
        !head_is_sound(before, &owner)) {
        heap_report_head(block, head);
        return;
    }
    static const char *const notes[] = {"these bytes are the head of a block behind it that is not in use"};
    struct buffer_room room;
    struct report_buffer b = buffer_of(before, &owner, &room);
    uint64_t address = (uint64_t)(uintptr_t)block - BLOCK_HEAD;
    // Which bytes were written is not known, only that the head is not one that we wrote.
    uint8_t touched[4] = {255, 255, 255, 255};
    struct report r = {
        .type = REPORT_HEAP_OVERFLOW,
        .has_address = true,
        .address = address,
        .access = REPORT_WRITE,
        .nbuffers = 1,
        .buffers = &b,
        .corrupted = {address, BLOCK_HEAD, (const uint8_t *)head, touched},
        .nnotes = 1,
        .notes = notes,
    };
    send(&r);
}

void heap_report_freed_write(const char *block, const struct block_head *head, int64_t at)
{
    struct buffer_room room;
    struct report_buffer b = buffer_of(block, head, &room);
    struct report r = {
        .type = REPORT_USE_AFTER_FREE,
        .has_address = true,
        .address = b.base + (uint64_t)at,
        .access = REPORT_WRITE,
        .nbuffers = 1,
        .buffers = &b,
    };
    uint8_t touched[2] = {1, 0};
    r.corrupted = (struct report_bytes){r.address, 1, (const uint8_t *)block + at, touched};
    send(&r);
}

static void report_free(enum report_type type, const struct report_buffer *b, const char *call, uint32_t site)
{
    struct stack_room here;
    struct report r = {
        .type = type,
        .has_address = true,
        .address = b->base,
        .call = call,
        .stack = stack_of(site, &here),
        .nbuffers = 1,
        .buffers = b,
    };
    send(&r);
}

void heap_report_double_free(const char *block, const struct block_head *head, const char *call,
                             uint32_t site)
{
    struct buffer_room room;
    struct report_buffer b = buffer_of(block, head, &room);
    report_free(REPORT_DOUBLE_FREE, &b, call, site);
}

void heap_report_unmapped_free(const char *block, const struct block_head *head, const char *call,
                               uint32_t site)
{
    struct buffer_room room;
    struct report_buffer b = buffer_by_head(block, head, &room);
    report_free(REPORT_DOUBLE_FREE, &b, call, site);
}

void heap_report_mismatch(const char *block, const struct block_head *head, const char *call, uint32_t site)
{
    struct buffer_room room;
    struct report_buffer b = buffer_of(block, head, &room);
    report_free(REPORT_MISMATCH, &b, call, site);
}

void heap_report_bad_free(const void *p, const char *call, uint32_t site, const char *owner,
                          const struct block_head *owner_head)
{
    const char *why =
        owner ? "the pointer points into a block, not to its start" : "no live block contains this address";
    struct buffer_room room;
    struct stack_room here;
    struct report_buffer b = {0};
    if (owner)
        b = buffer_of(owner, owner_head, &room);
    struct report r = {
        .type = REPORT_BAD_FREE,
        .has_address = true,
        .address = (uint64_t)(uintptr_t)p,
        .call = call,
        .stack = stack_of(site, &here),
        .nbuffers = owner ? 1 : 0,
        .buffers = owner ? &b : NULL,
        .nnotes = 1,
        .notes = &why,
    };
    send(&r);
}

void heap_report_leak(const char *block, const struct block_head *head, uint64_t blocks, uint64_t bytes)
{
    struct buffer_room room;
    struct report_buffer b = buffer_of(block, head, &room);
    char text[120];
    struct text_buffer t;
    text_buffer_init(&t, text, sizeof text - 1);
    text_buffer_fmt(
        &t, "%lu blocks, %lu bytes in total, were allocated here and never freed, and nothing points to them",
        (unsigned long)blocks, (unsigned long)bytes);
    text[t.len] = 0;
    const char *note = text;
    struct report r = {
        .type = REPORT_LEAK,
        .has_address = true,
        .address = b.base,
        .bytes = bytes,
        .nbuffers = 1,
        .buffers = &b,
        .nnotes = blocks > 1 ? 1 : 0,
        .notes = &note,
    };
    send(&r);
}

uint64_t heap_report_count(void)
{
    lock_reports();
    uint64_t count = reports;
    unlock_reports();
    return count;
}

void heap_report_note(const char *text)
{
    lock_reports();
    struct report_line line = {.event = REPORT_NOTE, .note = {getpid(), text}};
    channel_send(channel(), &line);
    unlock_reports();
}

void heap_report_end(void)
{
    uint64_t unwatched = 0, live = 0, passes = 0, made = 0;
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed)) {
        unwatched += atomic_load_explicit(&w->unwatched, memory_order_relaxed);
        made += producer_made(w);
    }
    for (unsigned i = 0; i < deliver_lists(); i++) {
        live += monitor_stats(i).live;
        passes += monitor_stats(i).passes;
    }
    const struct report_value values[] = {
        {"heap_blocks", "heap blocks allocated", made},
        {"heap_blocks_at_end", "heap blocks left at the end", live},
        {"heap_cruises", "scans of all heap blocks", passes},
        {"heap_cycle_us_p50", "microseconds between two scans, median", cycle_quantile(50)},
        {"heap_cycle_us_p99", "microseconds between two scans, 99th percentile", cycle_quantile(99)},
    };
    const struct report_value left_out = {"heap_unwatched", "heap blocks allocated inside a signal handler",
                                          unwatched};
    struct report_line line = {.event = REPORT_END,
                               .end = {.pid = getpid(),
                                       .library = "heap",
                                       .errors = reports - suppressed,
                                       .suppressed = suppressed,
                                       .nvalues = sizeof values / sizeof *values,
                                       .values = values,
                                       .nuncovered = unwatched ? 1 : 0,
                                       .uncovered = &left_out}};
    lock_reports();
    // Without a listener, a program without errors ends without output, as it would without us.
    if (channels[0].path[0] || reports) {
        start();
        channel_send(channel(), &line);
    }
    unlock_reports();
}

void heap_report_before_fork(void)
{
    lock_reports();
}

void heap_report_after_fork(bool child)
{
    if (child) {
        reports = suppressed = 0;
        channels_taken = 0;
        started = false;
    }
    unlock_reports();
}
