// SPDX-License-Identifier: MIT
#include "hook/bounds.h"

#include <stdio.h>

#include "base/cancel.h"
#include "base/host_memory.h"
#include "base/readable.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "context/context.h"
#include "launch/kernel_fault.h"
#include "mode/mode.h"
#include "track/track.h"

// NEAR: bytes from a buffer within which an access to no buffer is blamed on it.
enum { NEAR = 2 << 20, NULL_PAGE = 4096 };

enum verdict {
    FINE,
    WRONG,    // the call is refused
    SUSPECT,  // the driver decides, because moat does not know the memory
};

// The calling thread's call with suspect arguments, until the driver has answered. Rarely set, so the way
// back tests only a flag.
static __thread struct {
    bool set;
    enum driver_id call;
    struct bounds_range range;
} suspect __attribute__((tls_model("initial-exec")));

static uint64_t end_of(const struct bounds_range *r)
{
    uint64_t end;
    return __builtin_add_overflow(r->start, r->bytes, &end) ? UINT64_MAX : end;
}

static bool is_device(const struct track_block *b)
{
    return !track_families[b->facts.family].host;
}

// Fills a finding. A finding is large and most calls are right, so nothing is written to it before this.
static void found(struct guard_finding *f, enum report_type type, uint64_t address,
                  const struct track_block *b, bool freed)
{
    *f = (struct guard_finding){.type = type, .address = address, .nbuffers = b != NULL};
    if (b)
        f->buffers[0] = track_copy(b, freed);
}

// Returns the end of the memory that may be accessed from b on: adjacent mapped blocks count as one.
static uint64_t reach(const struct track_block *b, uint64_t end)
{
    uint64_t to = track_end(b);
    while (to < end && b->facts.family == TRACK_MAPPED) {
        b = track_live(to);
        if (!b || b->facts.family != TRACK_MAPPED)
            break;
        to = track_end(b);
    }
    return to;
}

static enum verdict check_in(const struct track_block *b, const struct bounds_range *r, uint64_t end,
                             struct guard_finding *f)
{
    // Registered memory may be part of a larger array; when memory of a graph is valid only the driver knows.
    if (end <= track_end(b) || b->facts.family == TRACK_REGISTERED || b->facts.family == TRACK_GRAPH)
        return FINE;
    uint64_t to = reach(b, end);
    if (end <= to)
        return FINE;
    found(f, b->facts.family == TRACK_VARIABLE ? REPORT_GLOBAL_OVERFLOW : REPORT_HEAP_OVERFLOW, to, b, false);
    return WRONG;
}

// Returns whether the driver knows an allocation there that moat did not see.
static bool is_foreign(const struct bounds_range *r)
{
    CUdeviceptr base;
    size_t size;
    struct mode_answer around;
    cancel_hold();
    bool foreign = mode_ask(r->start, &around) == MODE_NOT_OURS && guard.real.cuMemGetAddressRange_v2 &&
                   !guard.real.cuMemGetAddressRange_v2(&base, &size, r->start);
    cancel_release();
    return foreign;
}

static enum verdict check_nowhere(const struct bounds_range *r, uint64_t end, struct guard_finding *f)
{
    struct track_block *before, *after = track_after(r->start, end);
    if (after && is_device(after)) {
        found(f, REPORT_HEAP_UNDERFLOW, r->start, after, false);
        return WRONG;
    }
    if (r->start < NULL_PAGE)
        return SUSPECT;
    if (!r->device)
        return FINE;
    if (is_foreign(r)) {
        guard_count(GUARD_FOREIGN_POINTERS);
        return FINE;
    }
    before = track_before(r->start, NEAR);
    if (before && is_device(before)) {
        found(f, REPORT_HEAP_OVERFLOW, r->start, before, false);
        return WRONG;
    }
    return SUSPECT;
}

// Returns whether the block's addresses returned to the system at once. Those of other large buffers may have
// too.
static bool went_back(const struct track_block *b)
{
    switch (atomic_load_explicit(&b->freed_by, memory_order_relaxed)) {
    case DRIVER_cuCtxDestroy:
    case DRIVER_cuCtxDestroy_v2:
    case DRIVER_cuCtxDetach:
    case DRIVER_cuGreenCtxDestroy:
    case DRIVER_cuDevicePrimaryCtxRelease:
    case DRIVER_cuDevicePrimaryCtxRelease_v2:
    case DRIVER_cuDevicePrimaryCtxReset:
    case DRIVER_cuDevicePrimaryCtxReset_v2:
    case DRIVER_cuMemUnmap: return true;
    default: return b->facts.family == TRACK_MANAGED;
    }
}

// Returns whether host memory lies there now. The rest of a large freed buffer may still be unmapped.
static bool is_hosts_again(const struct track_block *b, uint64_t address)
{
    const void *p = (const void *)(uintptr_t)address;
    cancel_hold();
    bool readable = went_back(b) ? readable_bytes(p, 1) : readable_surely(p, 1);
    cancel_release();
    return readable;
}

// Call it inside an epoch section.
static enum verdict judge(const struct bounds_range *r, struct guard_finding *f)
{
    uint64_t end = end_of(r);
    struct track_block *b = track_announced(r->start);
    enum verdict v = b ? check_in(b, r, end, f) : FINE;
    if (v)
        return v;
    b = track_live(r->start);
    if (b)
        return check_in(b, r, end, f);
    b = track_freed(r->start);
    if (b && !r->device && is_device(b) && is_hosts_again(b, r->start))
        b = NULL;
    if (b && (r->device || is_device(b))) {
        found(f, REPORT_USE_AFTER_FREE, r->start, b, true);
        return WRONG;
    }
    return check_nowhere(r, end, f);
}

CUresult bounds_check(enum driver_id call, const struct bounds_range *r)
{
    if (!r->bytes || !guard.watching)
        return CUDA_SUCCESS;
    struct guard_finding f;
    unsigned section = epoch_enter();
    enum verdict v = judge(r, &f);
    epoch_leave(section);
    if (v == FINE)
        return CUDA_SUCCESS;
    if (v == WRONG) {
        char note[100];
        snprintf(note, sizeof note, "the size is %lld as a signed number", (long long)r->bytes);
        if (r->bytes >> 63)
            f.more[1] = note;
        suspect.set = false;  // set by the other side, but the driver is not called
        f.call = call;
        f.bytes = r->bytes;
        f.access = r->access;
        cancel_hold();
        guard_report_finding(&f);
        cancel_release();
        return CUDA_ERROR_INVALID_VALUE;
    }
    suspect.set = true;
    suspect.call = call;
    suspect.range = *r;
    return CUDA_SUCCESS;
}

CUresult bounds_check_rows(enum driver_id call, const struct bounds_range *first, uint64_t pitch,
                           uint64_t rows, uint64_t plane, uint64_t planes)
{
    uint64_t by_rows, by_planes, bytes;
    if (!rows || !planes || !first->bytes)
        return CUDA_SUCCESS;
    // The driver refuses sizes that overflow.
    if (__builtin_mul_overflow(rows - 1, pitch, &by_rows) ||
        __builtin_mul_overflow(planes - 1, plane, &by_planes) ||
        __builtin_add_overflow(by_rows, by_planes, &bytes) ||
        __builtin_add_overflow(bytes, first->bytes, &bytes))
        return CUDA_SUCCESS;
    struct bounds_range whole = *first;
    whole.bytes = bytes;
    return bounds_check(call, &whole);
}

// The room of a note that says what an address is.
struct host_note {
    char text[500];
};

// Returns the note if the program's own memory lies at an address where the call needs a device's, else NULL.
static const char *host_note(uint64_t address, struct host_note *n)
{
    char name[400];
    if (!host_memory_name(address, name, sizeof name))
        return NULL;
    snprintf(n->text, sizeof n->text, "the pointer 0x%llx is host memory: %s", (unsigned long long)address,
             name);
    return n->text;
}

static void judge_suspect(CUresult r)
{
    suspect.set = false;
    if (r == CUDA_ERROR_INVALID_VALUE) {
        struct host_note note;
        struct guard_finding f = {
            .type = suspect.range.start < NULL_PAGE ? REPORT_NULL_DEREFERENCE : REPORT_WILD_ACCESS,
            .call = suspect.call,
            .address = suspect.range.start,
            .bytes = suspect.range.bytes,
            .access = suspect.range.access,
            .note = suspect.range.device ? host_note(suspect.range.start, &note) : NULL,
        };
        guard_report_finding(&f);
    } else if (!r) {
        guard_count(GUARD_FOREIGN_POINTERS);
    }
}

// Most calls succeed with memory that is known.
CUresult bounds_done(CUresult r)
{
    mode_order(MODE_ORDER_ALL);
    if (__builtin_expect(suspect.set || r != CUDA_SUCCESS || guard.real_skipped || kernel_fault_contained,
                         0)) {
        cancel_hold();
        if (suspect.set)
            judge_suspect(r);
        r = kernel_fault_seen(r);
        kernel_fault_skipped();
        cancel_release();
    }
    return r;
}

// cuMemGetInfo needs a context as a transfer does, and has no side effects. A stream of the program's own
// knows its context, so it does not matter if none is current; it does matter if the context is destroyed
// (seen on an H200).
CUresult bounds_refused(CUresult r, CUstream stream)
{
    size_t available, all;
    if (!guard.real.cuMemGetInfo_v2)
        return r;
    cancel_hold();
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult context = guard.real.cuMemGetInfo_v2(&available, &all);
    context_capture_restore(mode);
    bool own_stream = stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
    if (!own_stream || context != CUDA_ERROR_INVALID_CONTEXT)
        r = context ? kernel_fault_seen(context) : r;
    cancel_release();
    return r;
}

// Call it inside an epoch section. Finds out what a pointer that cannot be freed is.
static void judge_free(uint64_t pointer, enum track_way way, struct guard_finding *f)
{
    bool array = way == TRACK_BY_ARRAY;
    struct track_block *b = array ? track_handle(pointer) : track_live(pointer);
    if (b) {
        bool start = b->range.base == pointer;
        bool mismatch =
            start && track_families[b->facts.family].freed_by != way && b->facts.family != TRACK_GRAPH;
        found(f, mismatch ? REPORT_MISMATCH : REPORT_BAD_FREE, pointer, b, false);
        f->note = mismatch ? NULL
                  : start  ? "the driver refused to free it"
                           : "it is not the start of the buffer";
        return;
    }
    b = array ? track_freed_handle(pointer) : track_freed(pointer);
    found(f, b && b->range.base == pointer ? REPORT_DOUBLE_FREE : REPORT_BAD_FREE, pointer, b, true);
    if (!b)
        f->note = "no allocation returned this pointer";
}

void bounds_bad_free(enum driver_id call, uint64_t pointer, enum track_way way)
{
    struct guard_finding f;
    unsigned section = epoch_enter();
    judge_free(pointer, way, &f);
    epoch_leave(section);
    f.call = call;
    f.nowhere = way == TRACK_BY_ARRAY;
    struct host_note note;
    if (f.type == REPORT_BAD_FREE && !f.nbuffers && !f.nowhere)
        f.more[0] = host_note(pointer, &note);
    guard_report_finding(&f);
}
