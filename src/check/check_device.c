// SPDX-License-Identifier: MIT
#include "check/check_device.h"

#include <string.h>

#include "context/context_copy.h"
#include "core/guard.h"

enum {
    UNIT = 2 << 20,      // bytes of a page of the directory, and of a piece of the records
    SPAN = 8,            // pages of the directory that one mapping covers if they are all zeros
    BATCH = 64,          // copies by one call
    MOST_IN_ORDER = 64,  // changes that are made by memsets
};
#define DIRECTORY_BYTES ((size_t)KCHECK_DIRECTORY_WORDS * sizeof(uint64_t))
#define RECORDS_BYTES ((size_t)CHECK_TABLE_PIECES * UNIT)
_Static_assert(CHECK_TABLE_PAGE_WORDS * sizeof(uint64_t) == UNIT, "a page is a unit");
_Static_assert(CHECK_TABLE_PAGES % SPAN == 0, "the directory is made of whole spans");
_Static_assert(CHECK_TABLE_PIECE * sizeof(struct kcheck_record) == UNIT, "a piece is a unit");

static bool has_calls(void)
{
    const struct driver *d = &guard.real;
    return d->cuMemAddressReserve && d->cuMemAddressFree && d->cuMemCreate && d->cuMemMap && d->cuMemUnmap &&
           d->cuMemSetAccess && d->cuMemRelease && d->cuMemHostAlloc && d->cuMemHostGetDevicePointer_v2 &&
           d->cuMemFreeHost && d->cuMemsetD2D32Async && d->cuMemsetD8Async;
}

// --- mappings ----------------------------------------------------------------------------------------------

static CUresult create(CUdevice device, size_t size, CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    return guard.real.cuMemCreate(handle, size, &prop, 0);
}

static CUresult set_access(CUdevice device, CUdeviceptr at, size_t size, CUmemAccess_flags flags)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                              .flags = flags};
    return guard.real.cuMemSetAccess(at, size, &access, 1);
}

// Maps memory for copies, and clears it.
static CUresult map_cleared(struct context *ctx, CUdeviceptr at, size_t size,
                            CUmemGenericAllocationHandle handle)
{
    CUresult r = guard.real.cuMemMap(at, size, 0, handle, 0);
    if (!r)
        r = set_access(ctx->device, at, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    // Fresh memory of the CPU device, of which only the driver describes faults, is zero, and takes no memory
    // until it is written.
    if (!r && !guard.real_fault)
        r = context_fill(ctx, at, 0, size);
    return r;
}

// Maps a unit for kernels, which may only read it, and for copies, and clears it.
static CUresult map_both(struct context *ctx, CUdeviceptr for_kernels, CUdeviceptr for_copies,
                         CUmemGenericAllocationHandle handle)
{
    const struct driver *d = &guard.real;
    CUresult r = map_cleared(ctx, for_copies, UNIT, handle);
    if (!r && for_kernels)
        r = d->cuMemMap(for_kernels, UNIT, 0, handle, 0);
    if (!r && for_kernels)
        r = set_access(ctx->device, for_kernels, UNIT, CU_MEM_ACCESS_FLAGS_PROT_READ);
    return r;
}

static bool is_zero(const char *bytes, size_t n)
{
    return !bytes[0] && !memcmp(bytes, bytes + 1, n - 1);
}

// Writes the bytes from `first` to `end` of a unit to cleared memory. Most of a table is zero, and was never
// touched on the host, where it takes no memory until it is read.
static CUresult write_unit(struct context *ctx, CUdeviceptr to, const void *unit, size_t first, size_t end)
{
    enum { PART = 4096 };
    struct context_copy copies[BATCH];
    unsigned n = 0;
    CUresult r = CUDA_SUCCESS;
    for (size_t at = first / PART * PART; at < end && !r; at += PART) {
        const char *part = (const char *)unit + at;
        if (is_zero(part, PART))
            continue;
        copies[n++] = (struct context_copy){to + at, (void *)part, PART};
        if (n == BATCH)
            r = context_write(ctx, copies, n), n = 0;
    }
    return r || !n ? r : context_write(ctx, copies, n);
}

// Creates memory that is zero, through addresses that are given back.
static CUresult create_zeros(struct context *ctx, size_t size, CUmemGenericAllocationHandle *handle)
{
    const struct driver *d = &guard.real;
    CUdeviceptr at = 0;
    CUresult r = create(ctx->device, size, handle);
    if (!r)
        r = d->cuMemAddressReserve(&at, size, UNIT, 0, 0);
    if (!r)
        r = map_cleared(ctx, at, size, *handle);
    if (!r)
        r = d->cuMemUnmap(at, size);
    if (!r)
        d->cuMemAddressFree(at, size);
    return r;
}

// Maps a span for kernels. A handle is mapped whole, so that a span with one page of contents takes a mapping
// for each of its pages.
static CUresult map_span(const struct check_device *d, unsigned first, CUdeviceptr at)
{
    bool zero = true;
    CUresult r = CUDA_SUCCESS;
    for (unsigned i = 0; i < SPAN; i++)
        zero = zero && !d->pages[first + i];
    if (zero)
        return guard.real.cuMemMap(at, (size_t)SPAN * UNIT, 0, d->zeros, 0);
    for (unsigned i = 0; i < SPAN && !r; i++) {
        CUmemGenericAllocationHandle page = d->pages[first + i];
        r = guard.real.cuMemMap(at + (uint64_t)i * UNIT, UNIT, 0, page ? page : d->zero_page, 0);
    }
    return r;
}

// Makes addresses for kernels from the pages that there are.
static CUresult map_directory(struct check_device *d, struct context *ctx)
{
    CUdeviceptr at = 0;
    CUresult r = guard.real.cuMemAddressReserve(&at, DIRECTORY_BYTES, UNIT, 0, 0);
    if (!r)
        d->directories[d->ndirectories++] = at;
    for (unsigned i = 0; i < CHECK_TABLE_PAGES && !r; i += SPAN)
        r = map_span(d, i, at + (uint64_t)i * UNIT);
    if (!r)
        r = set_access(ctx->device, at, DIRECTORY_BYTES, CU_MEM_ACCESS_FLAGS_PROT_READ);
    if (r)
        return r;
    d->directory = at;
    d->version++;
    return r;
}

// Gives memory to the pages of the directory that have contents now. *more: there are such pages.
static CUresult grow_directory(struct check_device *d, struct context *ctx, const struct check_table *t,
                               bool *more)
{
    CUresult r = CUDA_SUCCESS;
    *more = false;
    for (unsigned i = 0; i < CHECK_TABLE_PAGES && !r; i++) {
        CUmemGenericAllocationHandle handle;
        const uint64_t *words = check_table_page(t, i);
        if (!words || d->pages[i])
            continue;
        r = create(ctx->device, UNIT, &handle);
        if (!r)
            r = map_both(ctx, 0, d->directory_write + (uint64_t)i * UNIT, handle);
        const struct check_table_run used = check_table_page_used(t, i);
        if (!r)
            r = write_unit(ctx, d->directory_write + (uint64_t)i * UNIT, words, used.first * sizeof *words,
                           (used.first + (size_t)used.count) * sizeof *words);
        if (!r)
            d->pages[i] = handle;
        *more = true;
    }
    return r;
}

static CUresult grow_records(struct check_device *d, struct context *ctx, const struct check_table *t)
{
    CUresult r = CUDA_SUCCESS;
    for (; !r && d->pieces * CHECK_TABLE_PIECE < check_table_records(t); d->pieces++) {
        CUmemGenericAllocationHandle handle;
        uint64_t offset = (uint64_t)d->pieces * UNIT;
        uint32_t used = check_table_records(t) - d->pieces * CHECK_TABLE_PIECE;
        r = create(ctx->device, UNIT, &handle);
        if (!r)
            r = map_both(ctx, d->records + offset, d->records_write + offset, handle);
        struct kcheck_record *records = check_table_piece(t, d->pieces);
        if (!r && records)
            r = write_unit(ctx, d->records_write + offset, records, 0,
                           (used < CHECK_TABLE_PIECE ? used : CHECK_TABLE_PIECE) * sizeof *records);
        if (!r)
            guard.real.cuMemRelease(handle);  // the mappings keep it
    }
    return r;
}

// --- making it ---------------------------------------------------------------------------------------------

static CUresult make_state(struct check_device *d, struct context *ctx, bool trap)
{
    const struct driver *real = &guard.real;
    void *p = NULL;
    CUdeviceptr ring = 0;
    struct error_ring_writer writer;
    uint64_t traps = trap;
    CUresult r = real->cuMemHostAlloc(&p, error_ring_bytes(KCHECK_RING),
                                      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (r)
        return r;
    d->ring = p;
    memset(p, 0, error_ring_bytes(KCHECK_RING));
    error_ring_reader_start(&d->reader, d->ring, KCHECK_RING);
    r = real->cuMemHostGetDevicePointer_v2(&ring, p, 0);
    if (!r)
        r = real->cuMemAlloc_v2(&d->state, sizeof(struct kcheck_state));
    if (!r)
        r = context_fill(ctx, d->state, 0, sizeof(struct kcheck_state));
    error_ring_writer_start(&writer, ring, KCHECK_RING);
    const struct context_copy copies[] = {
        {d->state + offsetof(struct kcheck_state, errors), &writer, sizeof writer},
        {d->state + offsetof(struct kcheck_state, trap), &traps, sizeof traps},
    };
    return r ? r : context_write(ctx, copies, 2);
}

static CUresult make_table(struct check_device *d, struct context *ctx, const struct check_table *t)
{
    const struct driver *real = &guard.real;
    bool more;
    CUresult r = real->cuMemAddressReserve(&d->directory_write, DIRECTORY_BYTES, UNIT, 0, 0);
    if (!r)
        r = real->cuMemAddressReserve(&d->records, RECORDS_BYTES, UNIT, 0, 0);
    if (!r)
        r = real->cuMemAddressReserve(&d->records_write, RECORDS_BYTES, UNIT, 0, 0);
    if (!r)
        r = create_zeros(ctx, UNIT, &d->zero_page);
    if (!r)
        r = create_zeros(ctx, (size_t)SPAN * UNIT, &d->zeros);
    if (!r)
        r = grow_records(d, ctx, t);
    if (!r)
        r = grow_directory(d, ctx, t, &more);
    return r ? r : map_directory(d, ctx);
}

CUresult check_device_make(struct check_device *d, struct context *ctx, const struct check_table *t,
                           bool trap)
{
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r = has_calls() ? make_state(d, ctx, trap) : CUDA_ERROR_NOT_SUPPORTED;
    if (!r)
        r = make_table(d, ctx, t);
    context_capture_restore(mode);
    return r;
}

static void release(CUmemGenericAllocationHandle handle)
{
    if (handle)
        guard.real.cuMemRelease(handle);
}

static void unmap(CUdeviceptr at, size_t mapped, size_t reserved)
{
    if (at && mapped)
        guard.real.cuMemUnmap(at, mapped);
    if (at)
        guard.real.cuMemAddressFree(at, reserved);
}

// Mapped memory belongs to the process, and outlives a context.
void check_device_drop(struct check_device *d)
{
    const size_t records = (size_t)d->pieces * UNIT;
    if (!has_calls())
        return;
    for (unsigned i = 0; i < d->ndirectories; i++)
        unmap(d->directories[i], DIRECTORY_BYTES, DIRECTORY_BYTES);
    for (unsigned i = 0; i < CHECK_TABLE_PAGES; i++)
        if (d->pages[i]) {
            guard.real.cuMemUnmap(d->directory_write + (uint64_t)i * UNIT, UNIT);
            release(d->pages[i]);
        }
    unmap(d->directory_write, 0, DIRECTORY_BYTES);
    unmap(d->records, records, RECORDS_BYTES);
    unmap(d->records_write, records, RECORDS_BYTES);
    release(d->zero_page);
    release(d->zeros);
    *d = (struct check_device){.stage = CHECK_DEVICE_NONE};
}

void check_device_unmake(struct check_device *d)
{
    const struct driver *real = &guard.real;
    if (d->ring)
        real->cuMemFreeHost(d->ring);
    if (d->state)
        real->cuMemFree_v2(d->state);
    check_device_drop(d);
    *d = (struct check_device){.stage = CHECK_DEVICE_FAILED};
}

// --- changes -----------------------------------------------------------------------------------------------

// Copies runs, of words or of records, from units of `per` items.
struct source {
    CUdeviceptr to;
    size_t bytes;  // of an item
    uint32_t per;
    const void *(*unit)(const struct check_table *t, uint32_t n);
};

static const void *records_of(const struct check_table *t, uint32_t n)
{
    return check_table_piece(t, n);
}

static const void *words_of(const struct check_table *t, uint32_t n)
{
    return check_table_page(t, n);
}

static CUresult copy_runs(struct context *ctx, const struct check_table *t, const struct source *from,
                          const struct check_table_run *runs, size_t count)
{
    struct context_copy copies[BATCH];
    unsigned n = 0;
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < count && !r; i++) {
        for (uint32_t at = runs[i].first, left = runs[i].count; left && !r;) {
            uint32_t in_unit = from->per - at % from->per, now = left < in_unit ? left : in_unit;
            const char *unit = from->unit(t, at / from->per);
            copies[n++] = (struct context_copy){from->to + at * from->bytes,
                                                (void *)(unit + at % from->per * from->bytes),
                                                (uint32_t)(now * from->bytes)};
            at += now;
            left -= now;
            if (n == BATCH)
                r = context_write(ctx, copies, n), n = 0;
        }
    }
    return r || !n ? r : context_write(ctx, copies, n);
}

CUresult check_device_flush(struct check_device *d, struct context *ctx, const struct check_table *t)
{
    size_t nrecords, nwords;
    bool more = false;
    const struct check_table_run *records = check_table_records_changed(t, &nrecords);
    const struct check_table_run *words = check_table_words_changed(t, &nwords);
    const struct source from_records = {d->records_write, sizeof(struct kcheck_record), CHECK_TABLE_PIECE,
                                        records_of};
    const struct source from_words = {d->directory_write, sizeof(uint64_t), CHECK_TABLE_PAGE_WORDS, words_of};
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r = grow_records(d, ctx, t);
    if (!r)
        r = copy_runs(ctx, t, &from_records, records, nrecords);
    if (!r && nwords)
        r = grow_directory(d, ctx, t, &more);
    if (!r)
        r = copy_runs(ctx, t, &from_words, words, nwords);
    if (!r && more)
        r = map_directory(d, ctx);
    context_capture_restore(mode);
    return r;
}

// Sets one of the four words of `count` equal records.
static CUresult set_words(CUdeviceptr at, unsigned word, uint32_t value, uint32_t count, CUstream stream,
                          bool per_thread)
{
    const struct driver *d = &guard.real;
    return (per_thread ? d->cuMemsetD2D32Async_ptsz : d->cuMemsetD2D32Async)(
        at + 4 * word, sizeof(struct kcheck_record), value, 1, count, stream);
}

static CUresult set_records(CUdeviceptr at, const struct kcheck_record *r, uint32_t count, CUstream stream,
                            bool per_thread)
{
    uint32_t words[4];
    CUresult result = CUDA_SUCCESS;
    memcpy(words, r, sizeof words);
    for (unsigned i = 0; i < 4 && !result; i++)
        result = set_words(at, i, words[i], count, stream, per_thread);
    return result;
}

static const struct kcheck_record *record_of(const struct check_table *t, uint32_t n)
{
    return &check_table_piece(t, n / CHECK_TABLE_PIECE)[n % CHECK_TABLE_PIECE];
}

// Returns how many records from `first` on, at most `most`, are equal.
static uint32_t equal_records(const struct check_table *t, uint32_t first, uint32_t most)
{
    uint32_t n = 1;
    while (n < most && !memcmp(record_of(t, first), record_of(t, first + n), sizeof(struct kcheck_record)))
        n++;
    return n;
}

static bool is_short(const struct check_table *t, const struct check_table_run *runs, size_t count)
{
    unsigned changes = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t at = runs[i].first, end = at + runs[i].count; at < end; changes++) {
            if (changes == MOST_IN_ORDER)
                return false;
            at += equal_records(t, at, end - at);
        }
    return true;
}

bool check_device_flush_in(struct check_device *d, const struct check_table *t, CUstream stream,
                           bool per_thread)
{
    size_t nrecords, nwords;
    const struct check_table_run *runs = check_table_records_changed(t, &nrecords);
    check_table_words_changed(t, &nwords);
    if (nwords || d->pieces * CHECK_TABLE_PIECE < check_table_records(t) || !is_short(t, runs, nrecords))
        return false;
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < nrecords && !r; i++)
        for (uint32_t at = runs[i].first, end = at + runs[i].count; at < end && !r;) {
            uint32_t n = equal_records(t, at, end - at);
            r = set_records(d->records_write + at * sizeof(struct kcheck_record), record_of(t, at), n, stream,
                            per_thread);
            at += n;
        }
    return !r;
}
