// SPDX-License-Identifier: MIT
#include "canary/canary_scan.h"

#include "canary/canary_staging.h"
#include "context/context_copy.h"
#include "core/guard.h"

enum {
    NARROW = 64,  // bytes behind a buffer that every scan verifies
    FEW = 256,    // in slabs with at most this many buffers, every scan reads all canaries
    HEADS = 4,    // in others, one scan in so many reads the heads
    BATCHES = CANARY_BATCHES,
    STAGING = CANARY_STAGING,
    JOBS = 256,   // copies in a batch
    SEVERAL = 2,  // at least this many copies ...
    ROWS = 8,     // ... of at most this many rows each are made by one call, ...
    CHEAPER = 8,  // ... in which so many rows cost about as much as a copy of its own
};

// Contents of the rows of a copy.
enum what {
    LONE,    // two rows: what ends where the buffer starts, and what starts where it ends
    FIRSTS,  // row k: the first bytes of slot k
    WHOLE,   // row k: the tail of slot k - 1 and the head of slot k, and so all canaries
    // Row k: the head of slot k, if heads are read; behind all of these, a row for the first bytes of each
    // tail. For slabs whose buffers have about the same size.
    NARROWS
};

// Rows [row, row + rows) of a slab.
struct job {
    struct canary_slab *slab;  // NULL: the driver refused to copy it
    enum what what;
    bool last;      // the last of its slab, all of whose canaries are read
    bool waits;     // it is copied together with others, when the batch is full
    uint64_t size;  // of a lone buffer, or of the smallest in the slab
    uint32_t width, row, rows, offset;
    uint64_t from, pitch;  // source of a copy that waits
    uint32_t head, tail;   // widths of the rows of heads (may be 0) and tails, where read separately
};

struct batch {
    uint8_t *staging;
    CUevent read;  // recorded when all has been copied
    unsigned njobs;
    uint32_t used;  // bytes of staging
    struct job jobs[JOBS];
};

struct scan {
    struct context *ctx;
    struct canary_staging *staging;
    const struct canary_occasion *occasion;
    uint64_t number;
    bool managed, whole;
    bool partly;                 // not everything was verified
    struct canary_slab *missed;  // the last slab with a slot that could not be read
    unsigned found;
    struct batch *batch, *other;  // the one being filled, and the one being copied, or empty
    CUresult result;
};

static struct batch batches[BATCHES];  // of the only scan at a time
static _Atomic uint64_t scans;
_Atomic uint64_t canary_scan_ended;
_Atomic uint64_t canary_scan_calls;

uint64_t canary_scan_number(void)
{
    // Pairs with the increment in scan_slabs: both are seq_cst, so a scan that the caller does not see yet
    // sees what the caller wrote before.
    return atomic_load(&scans);
}

// --- copies ------------------------------------------------------------------------------------------------

// Verifies the tail of a buffer in a row that starts behind the smallest buffer of the slab. A buffer smaller
// than that came after the scan began.
static void verify_tail_in_row(struct scan *scan, const struct job *j, uint32_t number,
                               const struct canary_buffer *b, const uint8_t *row, uint32_t width)
{
    uint64_t skip = b->size - j->size;
    if (b->size >= j->size && skip < width)
        scan->found +=
            canary_verify_tail(j->slab, number, b, row + skip, width - (uint32_t)skip, scan->occasion);
}

static bool read_slot(struct scan *scan, struct canary_slab *s, uint32_t number, struct canary_buffer *b)
{
    bool is_there = canary_slot_read(s, number, scan->number, b);
    if (b->changing)
        scan->missed = s;
    // A later scan verifies what this one did not, and must still name kernels that ran before.
    scan->partly |= b->changing || (!is_there && b->freed && b->size);
    return is_there;
}

static void verify_wholes(struct scan *scan, const struct job *j, const uint8_t *row)
{
    struct canary_slab *s = j->slab;
    struct canary_buffer b;
    for (uint32_t n = j->row; n < j->row + j->rows; n++, row += j->width) {
        if (n && read_slot(scan, s, n - 1, &b))
            verify_tail_in_row(scan, j, n - 1, &b, row, j->width);
        if (n < s->slots && read_slot(scan, s, n, &b))
            scan->found += canary_verify_head(s, n, &b, row + j->width - CANARY_HEAD, scan->occasion);
    }
}

static void verify_narrows(struct scan *scan, const struct job *j, const uint8_t *head)
{
    const uint8_t *tail = head + (size_t)j->rows * j->head;
    struct canary_buffer b;
    for (uint32_t n = j->row; n < j->row + j->rows; n++, head += j->head, tail += j->tail) {
        if (!read_slot(scan, j->slab, n, &b))
            continue;
        if (j->head)
            scan->found += canary_verify_head(j->slab, n, &b, head, scan->occasion);
        verify_tail_in_row(scan, j, n, &b, tail, j->tail);
    }
}

static void verify_firsts(struct scan *scan, const struct job *j, const uint8_t *row)
{
    struct canary_buffer b;
    for (uint32_t n = j->row; n < j->row + j->rows; n++, row += j->width) {
        if (!canary_slot_read(j->slab, n, scan->number, &b) || !b.freed || !b.idle)
            continue;
        uint32_t count = b.size < j->width ? (uint32_t)b.size : j->width;
        scan->found += canary_verify_inside(j->slab, n, &b, row, count, scan->occasion);
    }
}

static void verify_job(struct scan *scan, const struct job *j, const uint8_t *rows)
{
    struct canary_slab *s = j->slab;
    struct canary_buffer b;
    if (!s)
        return;
    if (j->what == WHOLE) {
        verify_wholes(scan, j, rows);
    } else if (j->what == NARROWS) {
        verify_narrows(scan, j, rows);
    } else if (j->what == FIRSTS) {
        verify_firsts(scan, j, rows);
    } else if (read_slot(scan, s, 0, &b) && b.size == j->size) {
        scan->found += canary_verify_head(s, 0, &b, rows + j->width - CANARY_HEAD, scan->occasion);
        scan->found += canary_verify_tail(s, 0, &b, rows + j->width, j->width, scan->occasion);
    }
    // Release pairs with the acquire in canary_slot_is_checked: whoever reuses a place sees what was reported
    // of it.
    if (j->last && scan->missed != s)
        atomic_store_explicit(&s->checked, scan->number, memory_order_release);
}

// Waits for the copies of a batch and verifies them.
static void verify_batch(struct scan *scan, struct batch *b)
{
    if (!scan->result && b->njobs)
        scan->result = guard.real.cuEventSynchronize(b->read);
    for (unsigned i = 0; i < b->njobs && !scan->result; i++)
        verify_job(scan, &b->jobs[i], b->staging + b->jobs[i].offset);
    b->njobs = b->used = 0;
}

static void count_calls(unsigned n)
{
    atomic_fetch_add_explicit(&canary_scan_calls, n, memory_order_relaxed);
}

static void read_rows(struct scan *scan, uint64_t from, uint64_t pitch, uint32_t width, uint32_t rows,
                      uint32_t offset)
{
    count_calls(1);
    if (!scan->result)
        scan->result = context_copy_rows(scan->staging->stream, false, from, pitch, width, rows,
                                         scan->batch->staging + offset);
}

// Copies all rows of a job, or defers that if they are few.
static void read_job(struct scan *scan, struct job *j, uint64_t from, uint64_t pitch)
{
    j->from = from;
    j->pitch = pitch;
    j->waits = j->rows <= ROWS;
    if (!j->waits)
        read_rows(scan, from, pitch, j->width, j->rows, j->offset);
}

// Marks the slab as unreadable if the driver refused to copy from it, so that the scan of the context goes
// on. Returns whether that was the case.
static bool give_up_slab(struct scan *scan, struct canary_slab *s)
{
    if (scan->result != CUDA_ERROR_INVALID_VALUE)
        return false;
    scan->result = CUDA_SUCCESS;
    if (!atomic_exchange_explicit(&s->unreadable, true, memory_order_relaxed))
        guard_count(GUARD_UNGUARDED);
    return true;
}

// Marks the slab as unreadable if the driver refused the last job's copy, and removes the job from the batch.
// Returns whether that was the case.
static bool take_back_job(struct scan *scan, struct canary_slab *s)
{
    if (!give_up_slab(scan, s))
        return false;
    scan->batch->used = scan->batch->jobs[--scan->batch->njobs].offset;
    return true;
}

// Copies the deferred jobs by one call, since other threads wait while one is in the driver. Returns false if
// they must be copied one by one.
static bool read_together(struct scan *scan, const struct batch *b)
{
    // Static, as there is one scan at a time.
    static CUdeviceptr to[ROWS * JOBS], from[ROWS * JOBS];
    static size_t bytes[ROWS * JOBS];
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
                              .flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE};
    size_t n = 0, copies = 0, first = 0;
    if (!guard.real.cuMemcpyBatchAsync_v2)
        return false;
    for (const struct job *j = b->jobs; j < b->jobs + b->njobs; j++) {
        copies += j->waits;
        for (uint32_t row = 0; row < j->rows && j->waits; row++, n++) {
            to[n] = (uintptr_t)b->staging + j->offset + row * j->width;
            from[n] = j->from + row * j->pitch;
            bytes[n] = j->width;
        }
    }
    if (copies < SEVERAL)
        return false;
    count_calls((unsigned)n / CHEAPER + 1);
    return !guard.real.cuMemcpyBatchAsync_v2(to, from, bytes, n, &how, &first, 1, scan->staging->stream);
}

static void read_waiting(struct scan *scan)
{
    struct batch *b = scan->batch;
    if (scan->result || read_together(scan, b))
        return;
    for (struct job *j = b->jobs; j < b->jobs + b->njobs && !scan->result; j++) {
        if (!j->waits)
            continue;
        read_rows(scan, j->from, j->pitch, j->width, j->rows, j->offset);
        if (give_up_slab(scan, j->slab))
            j->slab = NULL;
    }
}

// Starts the copies of the full batch, and verifies the other one meanwhile.
static void turn_over(struct scan *scan)
{
    struct batch *full = scan->batch;
    read_waiting(scan);
    if (!scan->result && full->njobs)
        scan->result = guard.real.cuEventRecord(full->read, scan->staging->stream);
    verify_batch(scan, scan->other);
    scan->batch = scan->other;
    scan->other = full;
}

// Adds a job to the batch, with as many of the rows as fit into its staging buffer.
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

// Reads the first bytes of freed buffers.
static void read_firsts(struct scan *scan, struct canary_slab *s, uint32_t rows)
{
    if (!canary_slab_fingerprints(s))
        return;
    for (uint32_t row = 0; row < rows && !scan->result;) {
        struct job *j = new_job(scan, s, CANARY_FINGERPRINT, rows - row);
        j->what = FIRSTS;
        j->row = row;
        row += j->rows;
        read_job(scan, j, s->base + j->row * s->stride, s->stride);
        if (take_back_job(scan, s))
            return;
    }
}

static void read_lone(struct scan *scan, struct canary_slab *s)
{
    struct canary_buffer b;
    if (!read_slot(scan, s, 0, &b)) {
        // It is being freed; that thread will verify it.
        scan->partly |= s->memory->kind != CANARY_SUBALLOCATED && s->memory->kind != CANARY_POOL;
        return;
    }
    if ((uint32_t)b.reported == (CANARY_HEAD_SIDE | CANARY_TAIL_SIDE))
        return;
    uint32_t tail = canary_slab_tail(s, b.size), width = canary_verify_width(s, b.size);
    if (canary_slab_is_direct(s)) {
        const uint8_t *at = (const uint8_t *)(uintptr_t)s->base;
        scan->found += canary_verify_head(s, 0, &b, at - CANARY_HEAD, scan->occasion);
        if (s->memory->verify_more)
            scan->found += s->memory->verify_more(s, &b, scan->occasion);
        if (!s->memory->tails_rarely || scan->whole)
            scan->found += canary_verify_tail(s, 0, &b, at + b.size, tail, scan->occasion);
        return;
    }
    struct job *j = new_job(scan, s, width, 2);
    j->size = b.size;
    j->last = true;
    read_job(scan, j, s->base - width, b.size + width);
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
        read_job(scan, j, s->base - width + j->row * s->stride, s->stride);
        if (take_back_job(scan, s))
            return;
    }
}

static void read_narrow(struct scan *scan, struct canary_slab *s, uint32_t rows, uint64_t least,
                        uint32_t tail)
{
    uint32_t head = scan->staging->scans % HEADS ? 0 : CANARY_HEAD;
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
        if (take_back_job(scan, s))
            return;
    }
}

static void read_slab(struct scan *scan, struct canary_slab *s)
{
    uint32_t used = atomic_load_explicit(&s->high, memory_order_relaxed);
    uint64_t least = atomic_load_explicit(&s->least, memory_order_relaxed);
    uint64_t spread = atomic_load_explicit(&s->most, memory_order_relaxed) - least;
    // Places of freed buffers are waiting for reuse.
    bool whole = scan->whole || atomic_load_explicit(&s->freed, memory_order_relaxed) >
                                    atomic_load_explicit(&s->checked, memory_order_relaxed);
    if (!used)
        return;
    // In slabs with many buffers, most bytes of the tails are verified only now and then.
    if (!whole && used > FEW && spread <= NARROW && s->stride - least > 4 * NARROW)
        read_narrow(scan, s, used, least, (uint32_t)spread + NARROW);
    else
        read_whole(scan, s, used + 1, least);
    if (atomic_load_explicit(&s->idle, memory_order_relaxed) && (scan->whole || used <= FEW))
        read_firsts(scan, s, used);
}

// Pool memory exists once its stream has reached the allocation.
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
    if (s->ctx != scan->ctx || (s->memory->kind == CANARY_MANAGED && !scan->managed) ||
        atomic_load_explicit(&s->unreadable, memory_order_relaxed))
        return 0;
    // Damage by an earlier buffer in this place must be reported first, in its name.
    if (s->memory->kind == CANARY_POOL && atomic_load_explicit(&s->pending_reads, memory_order_relaxed)) {
        scan->partly = true;
        return 0;
    }
    // The event may be queried only while there is a buffer: before, it is not recorded, and afterwards
    // destroyed.
    if (s->memory->kind == CANARY_POOL && (!canary_slot_read(s, 0, scan->number, &b) || !is_there(s)))
        return 0;
    if (s->slots == 1)
        read_lone(scan, s);
    else
        read_slab(scan, s);
    return scan->result != CUDA_SUCCESS;
}

// Runs a scan of one slab, or of all if slab == NULL.
static CUresult scan_slabs(struct scan *scan, struct canary_slab *slab)
{
    CUstreamCaptureMode mode = context_capture_relax();
    struct canary_staging *staging = canary_staging_of(scan->ctx);
    scan->staging = staging;
    // Pairs with canary_scan_number; the fence pairs with threads that store before they read the number.
    scan->number = atomic_fetch_add(&scans, 1) + 1;
    atomic_thread_fence(memory_order_seq_cst);
    if (!staging) {
        context_capture_restore(mode);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    scan->batch = &batches[0];
    scan->other = &batches[1];
    for (unsigned i = 0; i < BATCHES; i++) {
        batches[i].staging = staging->pinned->staging[i];
        batches[i].read = staging->read[i];
        batches[i].njobs = batches[i].used = 0;
    }
    unsigned section = epoch_enter();
    staging->scans += !slab;
    if (slab)
        read_one(&slab->range, scan);
    else
        canary_store_each(read_one, scan);
    turn_over(scan);
    verify_batch(scan, scan->other);
    epoch_leave(section);
    context_capture_restore(mode);
    return scan->result;
}

CUresult canary_scan_context(struct context *ctx, bool managed, bool whole,
                             const struct canary_occasion *occasion)
{
    uint64_t ended = atomic_load_explicit(&canary_scan_ended, memory_order_relaxed);
    struct scan scan = {.ctx = ctx, .occasion = occasion, .managed = managed, .whole = whole};
    if (scan_slabs(&scan, NULL))
        return scan.staging ? scan.result : CUDA_ERROR_OUT_OF_MEMORY;
    if (!scan.found && !scan.partly)
        canary_verify_clean(ctx, ended, managed && whole);
    return CUDA_SUCCESS;
}

CUresult canary_scan_slab(struct context *ctx, struct canary_slab *slab,
                          const struct canary_occasion *occasion)
{
    struct scan scan = {.ctx = ctx, .occasion = occasion, .whole = true};
    CUresult r = scan_slabs(&scan, slab);
    return scan.staging ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

// --- single buffers ----------------------------------------------------------------------------------------

static struct canary_buffer buffer_of(const struct canary_place *place)
{
    return (struct canary_buffer){.size = place->size,
                                  .seed = canary_slab_seed(place),
                                  .reported = canary_slot_report_state(place->slab, place->number),
                                  .withdrawn = true,
                                  .clean = place->clean};
}

static void verify_place(const struct canary_place *place, const uint8_t *head, const uint8_t *tail,
                         const struct canary_occasion *occasion)
{
    struct canary_buffer b = buffer_of(place);
    canary_verify_head(place->slab, place->number, &b, head, occasion);
    canary_verify_tail(place->slab, place->number, &b, tail, CANARY_TAIL_MOST, occasion);
}

CUresult canary_scan_place(struct context *ctx, const struct canary_place *place,
                           const struct canary_occasion *occasion)
{
    uint8_t head[CANARY_HEAD], tail[CANARY_TAIL_MOST];
    uint32_t count = canary_slab_tail(place->slab, place->size);
    uint32_t width = canary_verify_width(place->slab, place->size);
    uint64_t behind = place->base + place->size;
    struct canary_staging *b = canary_staging_of(ctx);
    CUresult r;
    if (canary_slab_is_direct(place->slab)) {
        struct canary_buffer buffer = buffer_of(place);
        if (place->slab->memory->verify_more)
            place->slab->memory->verify_more(place->slab, &buffer, occasion);
        verify_place(place, (const uint8_t *)(uintptr_t)place->base - CANARY_HEAD,
                     (const uint8_t *)(uintptr_t)behind, occasion);
        return CUDA_SUCCESS;
    }
    bool room =
        canary_slab_is_lone_suballocated(place->slab) || width <= place->base - place->slab->range.base;
    int row_buffer = b && room ? canary_staging_take_rows(b) : -1;
    if (row_buffer >= 0) {
        uint8_t *rows = b->pinned->row_buffer[row_buffer];
        r = context_read_rows(ctx, place->base - width, place->size + width, width, rows);
        if (!r)
            verify_place(place, rows + width - CANARY_HEAD, rows + width, occasion);
        canary_staging_give_rows(b, row_buffer);
        return r;
    }
    const struct context_copy copies[] = {{place->base - CANARY_HEAD, head, CANARY_HEAD},
                                          {behind, tail, count}};
    r = context_read(ctx, copies, 2);
    if (!r)
        verify_place(place, head, tail, occasion);
    return r;
}
