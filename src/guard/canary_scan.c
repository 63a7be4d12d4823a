// SPDX-License-Identifier: MIT
#include "guard/canary_scan.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "guard/guard.h"
#include "guard/guard_report.h"
#include "guard/launch_ring.h"

enum {
    NARROW = 64,        // bytes behind a buffer that every scan looks at
    FEW = 256,          // buffers of a slab of which every scan reads all canary
    HEADS = 4,          // of others, one scan in so many reads the heads
    BATCHES = 2,        // one is read while the other is looked at
    STAGING = 1 << 19,  // bytes of a batch
    JOBS = 256,         // copies of a batch
    FILLING = 128 << 10,
    TRAYS = 16,   // buffers that may be looked at at once
    KERNELS = 6,  // that a report names
    NOTE = 2000,
    HEAD_SIDE = 1,
    TAIL_SIDE = 2,
    INSIDE = 4,
};

// What the rows of a copy hold.
enum what {
    LONE,    // two of them: what ends where the buffer starts, and what starts where it ends
    FIRSTS,  // row k: the first bytes of slot k
    WHOLE,   // row k: the tail of slot k - 1 and the head of slot k, and so all that is canary
    NARROWS  // row k: the head of slot k, if heads are read; behind all of them, the first bytes of the tails, a row
             // each: where all buffers of a slab are about as large
};

// Rows [row, row + rows) of a slab.
struct job {
    struct canary_slab *slab;
    enum what what;
    bool last;      // of its slab, all of whose canary is read
    uint64_t size;  // of a lone buffer; of the smallest in the slab
    uint32_t width, row, rows, offset;
    uint32_t head,
        tail;  // width of the rows of heads, may be 0, and of those of tails, where these are apart
};

struct batch {
    uint8_t *staging;
    CUevent read;  // when all is there
    unsigned njobs;
    uint32_t used;  // of the staging
    struct job jobs[JOBS];
};

// Pinned memory of a home, for what the device writes; the filling is read by it. Less than 2 MiB in all: so much a driver
// takes at a time, and may have at hand.
struct pinned {
    uint8_t staging[BATCHES][STAGING];          // a scan's
    uint8_t tray[TRAYS][2 * CANARY_TAIL_MOST];  // of whoever looks at one buffer
    struct canary_landing landing[CANARY_LANDINGS];
    uint8_t filling[FILLING];  // under fill_lock
};

// For one home. The stream, the staging and what follows are one scan's at a time.
struct bench {
    _Atomic(bool) asked, ready;
    _Atomic uint32_t trays;  // taken, a bit each
    struct pinned *pinned;
    CUstream stream, filler;
    CUevent read[BATCHES];
    unsigned turns;  // scans of all that there is
    // Kernels up to that one had ended when the last scan began that found nothing, of any kind and of those that look at all.
    _Atomic uint64_t clean, all_clean;
};

struct scan {
    struct home *home;
    struct bench *bench;
    const struct canary_occasion *occasion;
    uint64_t number;
    bool managed, whole;
    bool partly;  // not all heads were read
    unsigned found;
    struct batch *batch, *other;  // that is being filled, and that is being read, or is empty
    CUresult result;
};

static struct bench benches[HOME_CONTEXTS];
static struct batch batches[BATCHES];                          // of the one scan that there is at a time
static pthread_mutex_t fill_lock = PTHREAD_MUTEX_INITIALIZER;  // a leaf, held while rows are copied
static _Atomic uint64_t scans;
_Atomic uint64_t canary_scan_ended;
_Atomic uint64_t canary_scan_told;
_Atomic uint64_t canary_scan_copies;

uint64_t canary_scan_number(void)
{
    // Pairs with the increment in canary_scan_home: both are seq_cst, so a scan that the caller does not see yet sees
    // what the caller wrote before.
    return atomic_load(&scans);
}

void canary_scan_after_fork(void)
{
    pthread_mutex_init(&fill_lock, NULL);
}

void canary_scan_context_gone(struct home *home)
{
    benches[home_number(home)] = (struct bench){0};
}

void canary_scan_prepare(struct home *home)
{
    struct bench *b = &benches[home_number(home)];
    CUstreamCaptureMode mode = home_calm();
    void *p = NULL;
    bool made = !guard.real.cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING) &&
                !guard.real.cuStreamCreate(&b->filler, CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; i < BATCHES; i++)
        made = made && !guard.real.cuEventCreate(&b->read[i], CU_EVENT_DISABLE_TIMING);
    if (!b->pinned && guard.real.cuMemHostAlloc && !guard.real.cuMemHostAlloc(&p, sizeof *b->pinned, 0))
        b->pinned = p;
    home_stir(mode);
    // Release pairs with the acquire in bench_of: who finds it ready finds what it stands for.
    atomic_store_explicit(&b->ready, made && b->pinned && guard.real.cuEventSynchronize,
                          memory_order_release);
    atomic_store_explicit(&b->asked, true, memory_order_relaxed);
}

bool canary_scan_prepared(const struct home *home)
{
    return atomic_load_explicit(&benches[home_number(home)].asked, memory_order_relaxed);
}

static struct bench *bench_of(const struct home *home)
{
    struct bench *b = &benches[home_number(home)];
    return atomic_load_explicit(&b->ready, memory_order_acquire) ? b : NULL;
}

struct canary_landing *canary_scan_landings(const struct home *home)
{
    const struct bench *b = bench_of(home);
    return b ? b->pinned->landing : NULL;
}

// --- reports ------------------------------------------------------------------------------------------------

static void add_kernels(char text[NOTE], const char *note, uint64_t since)
{
    const char *names[KERNELS];
    unsigned n = launch_ring_since(since, names, KERNELS);
    launch_ring_print(text, NOTE, (size_t)snprintf(text, NOTE, "%s", note),
                      "; kernels that may have done it, the latest first:", names, n);
}

// A side of a buffer that is not as it was made.
struct damage {
    uint64_t buffer,
        base;  // base: of the canary, or of the buffer, where nobody may write into that any more
    const uint8_t *now, *made;
    uint32_t count;
    const struct track_copy *block;  // NULL: what the books know now
    uint64_t clean;                  // kernels up to that one cannot have done it
};

// A buffer or a byte that not every scan looks at was clean when one last looked at all.
static uint64_t clean_of(const struct home *home, bool all)
{
    const struct bench *b = &benches[home_number(home)];
    return atomic_load_explicit(all ? &b->all_clean : &b->clean, memory_order_relaxed);
}

static void report(const struct damage *d, const struct canary_occasion *o)
{
    uint8_t touched[(CANARY_TAIL_MOST + 7) / 8];
    uint32_t first = 0, last = 0;
    bool tail = d->base > d->buffer;
    if (!canary_bytes_compare(d->now, d->made, d->count, touched, &first, &last))
        return;
    char text[NOTE];
    add_kernels(text, o->note, d->clean);
    bool inside = d->base == d->buffer;
    struct guard_finding f = {
        .type = inside ? REPORT_USE_AFTER_FREE
                : tail ? REPORT_HEAP_OVERFLOW
                       : REPORT_HEAP_UNDERFLOW,
        .call = o->call < DRIVER_CALLS ? o->call : 0,
        .call_name = o->call_name,
        .in_kernel = o->call == DRIVER_CALLS && !o->call_name,
        .stackless = o->ours,

        .address =
            d->base + (tail || inside ? first : canary_bytes_run(touched, last)),  // nearest to the buffer

        .note = text,
        .corrupted = {.base = d->base, .count = d->count, .bytes = d->now, .touched = touched},
    };
    unsigned section = epoch_enter();
    struct timespec from, to;
    struct track_block *t = d->block ? NULL : track_live(d->buffer);
    bool freed = !t;
    if (d->block)
        f.buffers[f.nbuffers++] = *d->block;
    else if (t || (t = track_freed(d->buffer)))
        f.buffers[f.nbuffers++] = track_copy(t, freed);
    epoch_leave(section);
    clock_gettime(CLOCK_MONOTONIC, &from);
    guard_report_finding(&f);
    clock_gettime(CLOCK_MONOTONIC, &to);
    // Of frees too, in any thread: it is taken off what a scan took, and a little too much does no harm. Relaxed.
    uint64_t took = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000u + (uint64_t)(to.tv_nsec - from.tv_nsec);
    atomic_fetch_add_explicit(&canary_scan_told, took, memory_order_relaxed);
}

// These are true for damage that no report told of before.
static bool look_at_head(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                         const uint8_t *now, const struct canary_occasion *o)
{
    uint8_t made[CANARY_HEAD];
    uint64_t base = canary_store_base(s, number);
    canary_bytes_head(&b->seed, canary_store_hidden(s, b->size), made);
    if (memcmp(now, made, CANARY_HEAD) == 0)
        return false;
    if (!canary_store_tell(s, number, HEAD_SIDE))
        return false;
    report(
        &(struct damage){base, base - CANARY_HEAD, now, made, CANARY_HEAD, NULL, clean_of(s->home, o->all)},
        o);
    return true;
}

// seen: how much of it was read.
static bool look_at_tail(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                         const uint8_t *now, uint32_t seen, const struct canary_occasion *o)
{
    uint8_t made[CANARY_TAIL_MOST];
    uint32_t count = canary_store_tail(s, b->size);
    uint64_t base = canary_store_base(s, number);
    count = seen < count ? seen : count;
    uint32_t phase = canary_store_phase(s, b->size);
    if (canary_bytes_slot_same(&b->seed, phase, now, count) == count)
        return false;
    if (!canary_store_tell(s, number, TAIL_SIDE))
        return false;
    canary_bytes_slot(&b->seed, phase, made, count);
    report(&(struct damage){base, base + b->size, now, made, count, NULL, clean_of(s->home, o->all)}, o);
    return true;
}

// The page behind a buffer of CANARY_SHARED.
static bool look_far(struct canary_slab *s, const struct canary_buffer *b, const struct canary_occasion *o)
{
    uint8_t made[CANARY_HEAD];
    uint64_t at = s->base + canary_store_far(b->size);
    const uint8_t *now = (const uint8_t *)(uintptr_t)at;
    canary_bytes_far(&b->seed, made);
    if (memcmp(now, made, CANARY_HEAD) == 0)
        return false;
    if (!canary_store_tell(s, 0, TAIL_SIDE))
        return false;
    report(&(struct damage){s->base, at, now, made, CANARY_HEAD, NULL, clean_of(s->home, o->all)}, o);
    return true;
}

// Of a row that holds a head or a tail.
static uint32_t width_of(uint32_t tail)
{
    return tail < CANARY_HEAD ? CANARY_HEAD : tail;
}

// --- copies -------------------------------------------------------------------------------------------------

// Where the tail of a buffer starts in a row that starts where that of the smallest does. A smaller one than any before came
// after the scan began.
static void look_at_rest(struct scan *scan, const struct job *j, uint32_t number,
                         const struct canary_buffer *b, const uint8_t *row, uint32_t width)
{
    uint64_t skip = b->size - j->size;
    if (b->size >= j->size && skip < width)
        scan->found += look_at_tail(j->slab, number, b, row + skip, width - (uint32_t)skip, scan->occasion);
}

static void look_at_wholes(struct scan *scan, const struct job *j, const uint8_t *row)
{
    struct canary_slab *s = j->slab;
    struct canary_buffer b;
    for (uint32_t n = j->row; n < j->row + j->rows; n++, row += j->width) {
        if (n && canary_store_read(s, n - 1, scan->number, &b))
            look_at_rest(scan, j, n - 1, &b, row, j->width);
        if (n < s->slots && canary_store_read(s, n, scan->number, &b))
            scan->found += look_at_head(s, n, &b, row + j->width - CANARY_HEAD, scan->occasion);
    }
}

static void look_at_narrows(struct scan *scan, const struct job *j, const uint8_t *head)
{
    const uint8_t *tail = head + (size_t)j->rows * j->head;
    struct canary_buffer b;
    for (uint32_t n = j->row; n < j->row + j->rows; n++, head += j->head, tail += j->tail) {
        if (!canary_store_read(j->slab, n, scan->number, &b))
            continue;
        if (j->head)
            scan->found += look_at_head(j->slab, n, &b, head, scan->occasion);
        look_at_rest(scan, j, n, &b, tail, j->tail);
    }
}

// Into a freed buffer, since a scan saw it last, nobody may have written.
static void look_inside(struct scan *scan, const struct job *j, const uint8_t *row)
{
    struct canary_slab *s = j->slab;
    struct canary_buffer b;
    for (uint32_t n = j->row; n < j->row + j->rows; n++, row += j->width) {
        if (!canary_store_read(s, n, scan->number, &b) || !b.freed || !b.idle)
            continue;
        struct canary_print *p = &s->prints[n];
        uint32_t count = b.size < j->width ? (uint32_t)b.size : j->width;
        uint64_t base = canary_store_base(s, n);
        if (p->taken && p->turn == b.turn && memcmp(p->bytes, row, count) != 0 &&
            canary_store_tell(s, n, INSIDE)) {
            report(&(struct damage){base, base, row, p->bytes, count, NULL, clean_of(s->home, true)},
                   scan->occasion);
            scan->found++;
        }
        p->taken = true;
        p->turn = b.turn;
        memcpy(p->bytes, row, count);
    }
}

static void look_at_job(struct scan *scan, const struct job *j, const uint8_t *rows)
{
    struct canary_slab *s = j->slab;
    struct canary_buffer b;
    if (j->what == WHOLE) {
        look_at_wholes(scan, j, rows);
    } else if (j->what == NARROWS) {
        look_at_narrows(scan, j, rows);
    } else if (j->what == FIRSTS) {
        look_inside(scan, j, rows);
    } else if (canary_store_read(s, 0, scan->number, &b) && b.size == j->size) {
        scan->found += look_at_head(s, 0, &b, rows + j->width - CANARY_HEAD, scan->occasion);
        scan->found += look_at_tail(s, 0, &b, rows + j->width, j->width, scan->occasion);
    }
    // Release pairs with the acquire in canary_store: who gives a place out again sees what was told of it.
    if (j->last)
        atomic_store_explicit(&s->checked, scan->number, memory_order_release);
}

// What was being read is there, and is looked at.
static void look_at_batch(struct scan *scan, struct batch *b)
{
    if (!scan->result && b->njobs)
        scan->result = guard.real.cuEventSynchronize(b->read);
    for (unsigned i = 0; i < b->njobs && !scan->result; i++)
        look_at_job(scan, &b->jobs[i], b->staging + b->jobs[i].offset);
    b->njobs = b->used = 0;
}

// The batch is full: the device reads it while we look at the one before.
static void turn_over(struct scan *scan)
{
    struct batch *full = scan->batch;
    if (!scan->result && full->njobs)
        scan->result = guard.real.cuEventRecord(full->read, scan->bench->stream);
    look_at_batch(scan, scan->other);
    scan->batch = scan->other;
    scan->other = full;
}

static void read_rows(struct scan *scan, uint64_t from, uint64_t pitch, uint32_t width, uint32_t rows,
                      uint32_t offset)
{
    atomic_fetch_add_explicit(&canary_scan_copies, 1, memory_order_relaxed);
    if (!scan->result)
        scan->result = home_copy_rows(scan->bench->stream, false, from, pitch, width, rows,
                                      scan->batch->staging + offset);
}

// Takes back a copy that the driver would not make. One slab is given up for it, not the context.
static bool refused(struct scan *scan, struct canary_slab *s)
{
    if (scan->result != CUDA_ERROR_INVALID_VALUE)
        return false;
    const struct job *j = &scan->batch->jobs[--scan->batch->njobs];
    scan->batch->used = j->offset;
    scan->result = CUDA_SUCCESS;
    if (!atomic_exchange_explicit(&s->unreadable, true, memory_order_relaxed))
        guard_count(GUARD_UNGUARDED);
    return true;
}

// A job that fits; its rows are cut to what is left of the staging.
static struct job *new_job(struct scan *scan, struct canary_slab *s, uint32_t width, uint32_t rows)
{
    if (scan->batch->njobs == JOBS || scan->batch->used + (uint64_t)width * (s->slots == 1 ? 2 : 1) > STAGING)
        turn_over(scan);
    struct batch *b = scan->batch;
    struct job *j = &b->jobs[b->njobs++];
    uint32_t room = (STAGING - b->used) / width;
    *j = (struct job){.slab = s, .width = width, .rows = rows < room ? rows : room, .offset = b->used};
    b->used += j->rows * width;
    return j;
}

// The host reads its canaries where they are.
static bool is_direct(const struct canary_slab *s)
{
    return s->kind == CANARY_HOST || s->kind == CANARY_SHARED;
}

// Of freed buffers.
static void read_firsts(struct scan *scan, struct canary_slab *s, uint32_t rows)
{
    if (!canary_store_prints(s))
        return;
    for (uint32_t row = 0; row < rows && !scan->result;) {
        struct job *j = new_job(scan, s, CANARY_PRINT, rows - row);
        j->what = FIRSTS;
        j->row = row;
        row += j->rows;
        read_rows(scan, s->base + j->row * s->stride, s->stride, CANARY_PRINT, j->rows, j->offset);
        if (refused(scan, s))
            return;
    }
}

static void read_lone(struct scan *scan, struct canary_slab *s)
{
    struct canary_buffer b;
    if (!canary_store_read(s, 0, scan->number, &b) || b.told == (HEAD_SIDE | TAIL_SIDE))
        return;
    uint32_t tail = canary_store_tail(s, b.size), width = width_of(tail);
    if (is_direct(s)) {
        const uint8_t *at = (const uint8_t *)(uintptr_t)s->base;
        scan->found += look_at_head(s, 0, &b, at - CANARY_HEAD, scan->occasion);
        if (s->kind == CANARY_SHARED)
            scan->found += look_far(s, &b, scan->occasion);
        // Behind a buffer in managed memory starts the page that its end is in.
        if (s->kind == CANARY_HOST || scan->whole)
            scan->found += look_at_tail(s, 0, &b, at + b.size, tail, scan->occasion);
        return;
    }
    struct job *j = new_job(scan, s, width, 2);
    j->size = b.size;
    j->last = true;
    read_rows(scan, s->base - width, b.size + width, width, 2, j->offset);
    refused(scan, s);
    if (b.freed)
        read_firsts(scan, s, 1);
}

static void read_whole(struct scan *scan, struct canary_slab *s, uint32_t rows, uint64_t least)
{
    uint32_t width = (uint32_t)(s->stride - least);
    for (uint32_t row = 0; row < rows && !scan->result;) {
        struct job *j = new_job(scan, s, width, rows - row);
        j->what = WHOLE;
        j->size = least;
        j->row = row;
        row += j->rows;
        j->last = row == rows;
        read_rows(scan, s->base - width + j->row * s->stride, s->stride, width, j->rows, j->offset);
        if (refused(scan, s))
            return;
    }
}

static void read_narrow(struct scan *scan, struct canary_slab *s, uint32_t rows, uint64_t least,
                        uint32_t tail)
{
    uint32_t head = scan->bench->turns % HEADS ? 0 : CANARY_HEAD;
    scan->partly |= !head;
    for (uint32_t row = 0; row < rows && !scan->result;) {
        struct job *j = new_job(scan, s, head + tail, rows - row);
        j->what = NARROWS;
        j->size = least;
        j->head = head;
        j->tail = tail;
        j->row = row;
        row += j->rows;
        uint64_t slot = s->base + j->row * s->stride;
        if (head)
            read_rows(scan, slot - head, s->stride, head, j->rows, j->offset);
        read_rows(scan, slot + least, s->stride, tail, j->rows, j->offset + j->rows * head);
        if (refused(scan, s))
            return;
    }
}

static void read_slab(struct scan *scan, struct canary_slab *s)
{
    uint32_t used = atomic_load_explicit(&s->high, memory_order_relaxed);
    uint64_t least = atomic_load_explicit(&s->least, memory_order_relaxed);
    uint64_t spread = atomic_load_explicit(&s->most, memory_order_relaxed) - least;
    // Places of freed buffers are wanted again.
    bool whole = scan->whole || atomic_load_explicit(&s->freed, memory_order_relaxed) >
                                    atomic_load_explicit(&s->checked, memory_order_relaxed);
    if (!used)
        return;
    // Most of the tails' bytes are looked at now and then only, where there are many.
    if (!whole && used > FEW && spread <= NARROW && s->stride - least > 4 * NARROW)
        read_narrow(scan, s, used, least, (uint32_t)spread + NARROW);
    else
        read_whole(scan, s, used + 1, least);
    if (atomic_load_explicit(&s->idle, memory_order_relaxed) && (scan->whole || used <= FEW))
        read_firsts(scan, s, used);
}

// A pool's memory is there when its stream has come to the allocation.
static bool is_there(struct canary_slab *s)
{
    if (atomic_load_explicit(&s->is_ready, memory_order_relaxed))
        return true;
    if (guard.real.cuEventQuery(s->ready))
        return false;
    atomic_store_explicit(&s->is_ready, true, memory_order_relaxed);
    return true;
}

static int read_one(struct index_item *item, void *context)
{
    struct scan *scan = context;
    struct canary_slab *s = (struct canary_slab *)item;
    struct canary_buffer b;
    if (s->home != scan->home || (s->kind == CANARY_MANAGED && !scan->managed) ||
        atomic_load_explicit(&s->unreadable, memory_order_relaxed))
        return 0;
    // Only a buffer's event may be asked: before, it is not recorded, and afterwards destroyed.
    // What an earlier buffer there left is told first, under its own name.
    if (s->kind == CANARY_POOL && (atomic_load_explicit(&s->unread, memory_order_relaxed) ||
                                   !canary_store_read(s, 0, scan->number, &b) || !is_there(s)))
        return 0;
    if (s->slots == 1)
        read_lone(scan, s);
    else
        read_slab(scan, s);
    return scan->result != CUDA_SUCCESS;
}

// One scan, of all slabs or of one.
static CUresult scan_slabs(struct scan *scan, struct canary_slab *slab)
{
    CUstreamCaptureMode mode = home_calm();
    struct bench *bench = bench_of(scan->home);
    scan->bench = bench;
    // Pairs with canary_scan_number; the fence, with those who store before they ask for the number.
    scan->number = atomic_fetch_add(&scans, 1) + 1;
    atomic_thread_fence(memory_order_seq_cst);
    if (!bench) {
        home_stir(mode);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    scan->batch = &batches[0];
    scan->other = &batches[1];
    for (unsigned i = 0; i < BATCHES; i++) {
        batches[i].staging = bench->pinned->staging[i];
        batches[i].read = bench->read[i];
        batches[i].njobs = batches[i].used = 0;
    }
    unsigned section = epoch_enter();
    bench->turns += !slab;
    if (slab)
        read_one(&slab->range, scan);
    else
        canary_store_each(read_one, scan);
    turn_over(scan);
    look_at_batch(scan, scan->other);
    epoch_leave(section);
    home_stir(mode);
    return scan->result;
}

CUresult canary_scan_home(struct home *home, bool managed, bool whole, const struct canary_occasion *occasion)
{
    uint64_t ended = atomic_load_explicit(&canary_scan_ended, memory_order_relaxed);
    struct scan scan = {.home = home, .occasion = occasion, .managed = managed, .whole = whole};
    if (scan_slabs(&scan, NULL))
        return scan.bench ? scan.result : CUDA_ERROR_OUT_OF_MEMORY;
    if (!scan.found && !scan.partly) {
        atomic_store_explicit(&scan.bench->clean, ended, memory_order_relaxed);
        if (managed && whole)
            atomic_store_explicit(&scan.bench->all_clean, ended, memory_order_relaxed);
    }
    return CUDA_SUCCESS;
}

CUresult canary_scan_slab(struct home *home, struct canary_slab *slab, const struct canary_occasion *occasion)
{
    struct scan scan = {.home = home, .occasion = occasion, .whole = true};
    CUresult r = scan_slabs(&scan, slab);
    return scan.bench ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

// --- single buffers -----------------------------------------------------------------------------------------

uint32_t canary_scan_width(const struct canary_place *place)
{
    return width_of(canary_store_tail(place->slab, place->size));
}

struct canary_relic canary_scan_relic(const struct canary_place *place)
{
    struct canary_relic relic = {
        .slab = place->slab,
        .base = place->base,
        .size = place->size,
        .tail = canary_store_tail(place->slab, place->size),
        .seed = canary_store_seed(place),
        .told = canary_store_told(place->slab, place->number),
        .clean = clean_of(place->slab->home, true),
    };
    unsigned section = epoch_enter();
    struct track_block *t = track_freed(place->base);
    relic.known = t;
    if (t)
        relic.block = track_copy(t, true);
    epoch_leave(section);
    return relic;
}

// Of a place that is kept, the next buffer has the same canaries: it is not to be told of what it got.
static bool is_news(const struct canary_relic *relic, uint32_t side)
{
    return !(relic->told & side) && (!relic->slab || canary_store_tell(relic->slab, 0, side));
}

void canary_scan_relic_rows(const struct canary_relic *relic, const uint8_t *rows,
                            const struct canary_occasion *occasion)
{
    const uint8_t *head = rows + width_of(relic->tail) - CANARY_HEAD, *tail = rows + width_of(relic->tail);
    uint8_t made[CANARY_TAIL_MOST];
    const struct track_copy *block = relic->known ? &relic->block : NULL;
    uint64_t base = relic->base;
    canary_bytes_head(&relic->seed, relic->size, made);
    if (memcmp(head, made, CANARY_HEAD) != 0 && is_news(relic, HEAD_SIDE))
        report(&(struct damage){base, base - CANARY_HEAD, head, made, CANARY_HEAD, block, relic->clean},
               occasion);
    canary_bytes_tail(&relic->seed, made, relic->tail);
    if (memcmp(tail, made, relic->tail) != 0 && is_news(relic, TAIL_SIDE))
        report(&(struct damage){base, base + relic->size, tail, made, relic->tail, block, relic->clean},
               occasion);
}

static void look_at_place(const struct canary_place *place, const uint8_t *head, const uint8_t *tail,
                          const struct canary_occasion *occasion)
{
    struct canary_buffer b = {.size = place->size, .seed = canary_store_seed(place)};
    look_at_head(place->slab, place->number, &b, head, occasion);
    look_at_tail(place->slab, place->number, &b, tail, CANARY_TAIL_MOST, occasion);
}

// A tray, or -1.
static int take_tray(struct bench *b)
{
    // Relaxed but for the exchange, whose acquire pairs with the release in give_tray.
    uint32_t taken = atomic_load_explicit(&b->trays, memory_order_relaxed);
    for (;;) {
        int free = __builtin_ffs(~(int)taken & ((1 << TRAYS) - 1)) - 1;
        if (free < 0 || atomic_compare_exchange_weak_explicit(&b->trays, &taken, taken | 1u << free,
                                                              memory_order_acquire, memory_order_relaxed))
            return free;
    }
}

static void give_tray(struct bench *b, int tray)
{
    atomic_fetch_and_explicit(&b->trays, ~(1u << tray), memory_order_release);
}

CUresult canary_scan_place(struct home *home, const struct canary_place *place,
                           const struct canary_occasion *occasion)
{
    uint8_t head[CANARY_HEAD], tail[CANARY_TAIL_MOST];
    uint32_t count = canary_store_tail(place->slab, place->size), width = width_of(count);
    uint64_t behind = place->base + place->size;
    struct bench *b = bench_of(home);
    CUresult r;
    if (is_direct(place->slab)) {
        struct canary_buffer buffer = {.size = place->size, .seed = canary_store_seed(place)};
        if (place->slab->kind == CANARY_SHARED)
            look_far(place->slab, &buffer, occasion);
        look_at_place(place, (const uint8_t *)(uintptr_t)place->base - CANARY_HEAD,
                      (const uint8_t *)(uintptr_t)behind, occasion);
        return CUDA_SUCCESS;
    }
    int tray = b && width <= place->base - place->slab->range.base ? take_tray(b) : -1;
    if (tray >= 0) {
        uint8_t *rows = b->pinned->tray[tray];
        r = home_read_rows(home, place->base - width, place->size + width, width, rows);
        if (!r)
            look_at_place(place, rows + width - CANARY_HEAD, rows + width, occasion);
        give_tray(b, tray);
        return r;
    }
    const struct home_copy copies[] = {{place->base - CANARY_HEAD, head, CANARY_HEAD}, {behind, tail, count}};
    r = home_read(home, copies, 2);
    if (!r)
        look_at_place(place, head, tail, occasion);
    return r;
}

void canary_scan_make(const struct canary_place *place, uint8_t head[CANARY_HEAD],
                      uint8_t tail[CANARY_TAIL_MOST], uint32_t *count)
{
    struct canary_seed seed = canary_store_seed(place);
    *count = canary_store_tail(place->slab, place->size);
    canary_bytes_head(&seed, canary_store_hidden(place->slab, place->size), head);
    canary_bytes_slot(&seed, canary_store_phase(place->slab, place->size), tail, *count);
}

// So many rows at a time as there is room for.
CUresult canary_scan_fill(struct home *home, const struct canary_slab *slab)
{
    struct bench *b = bench_of(home);
    uint32_t width;
    uint64_t at = canary_store_row(slab, &width);
    CUresult r = b ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    CUstreamCaptureMode mode = home_calm();
    pthread_mutex_lock(&fill_lock);
    for (uint32_t row = 0, n; row <= slab->slots && !r; row += n) {
        uint8_t *filling = b->pinned->filling;
        n = slab->slots + 1 - row < FILLING / width ? slab->slots + 1 - row : FILLING / width;
        for (uint32_t i = 0; i < n; i++)
            canary_store_make_row(slab, row + i, width, filling + (size_t)i * width);
        const CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                 .srcHost = filling,
                                 .srcPitch = width,
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = at + row * slab->stride,
                                 .dstPitch = slab->stride,
                                 .WidthInBytes = width,
                                 .Height = n};
        r = guard.real.cuMemcpy2DAsync_v2(&c, b->filler);
        if (!r)
            r = guard.real.cuStreamSynchronize(b->filler);
    }
    pthread_mutex_unlock(&fill_lock);
    home_stir(mode);
    return r;
}

CUresult canary_scan_write(struct home *home, const struct canary_place *place)
{
    uint8_t head[CANARY_HEAD], tail[CANARY_TAIL_MOST];
    uint32_t count;
    uint64_t behind = place->base + place->size;
    canary_scan_make(place, head, tail, &count);
    if (is_direct(place->slab)) {
        if (place->slab->kind == CANARY_SHARED) {
            struct canary_seed seed = canary_store_seed(place);
            canary_bytes_far(&seed, (uint8_t *)(uintptr_t)(place->base + canary_store_far(place->size)));
        }
        memcpy((uint8_t *)(uintptr_t)place->base - CANARY_HEAD, head, CANARY_HEAD);
        memcpy((uint8_t *)(uintptr_t)behind, tail, count);
        return CUDA_SUCCESS;
    }
    const struct home_copy copies[] = {{place->base - CANARY_HEAD, head, CANARY_HEAD}, {behind, tail, count}};
    return home_write(home, copies, 2);
}
