// SPDX-License-Identifier: MIT
#include "kwatch/kheap_report.h"

#include <stdio.h>
#include <string.h>

#include "core/guard.h"
#include "track/guard_report.h"
#include "launch/launch_ring.h"
#include "kheap/kcanary.h"
#include "context/kernel_filter.h"

enum {
    KERNELS = 6,  // most that a report names
    NOTE = 2000,
    HEAD_BYTES = 16,
    TAIL_BYTES = 8,
    UNIT = 16,             // of a record's capacity
    MOST_TRIES = 1 << 20,  // most sizes that are tried
};

// What the reports of a record share. If only one kernel can have done it, there is no doubt.
struct record_report {
    const struct kheap_record *record;
    const struct canary_occasion *occasion;
    struct driver_fault fault;
    char note[NOTE];
    bool is_certain;  // whether the kernel is
    const char *names[KERNELS];
    unsigned nnames;  // 0 if it is certain
};

static void find_kernels(struct record_report *t, const struct kheap_host *h, const char *note)
{
    const char **names = t->names;
    unsigned n = launch_ring_since(h->clean, names, KERNELS);
    const struct kheap_record *r = t->record;
    t->is_certain = launch_ring_is_certain(names, n);
    t->nnames = t->is_certain ? 0 : n;
    if (t->is_certain)
        snprintf(t->fault.kernel, sizeof t->fault.kernel, "%s", names[0]);
    memcpy(t->fault.block, r->block, sizeof r->block);
    memcpy(t->fault.thread, r->thread, sizeof r->thread);
    size_t used = (size_t)snprintf(t->note, sizeof t->note, "%s", note);
    if (!t->is_certain)
        launch_ring_print(t->note, sizeof t->note, used,
                          "; kernels that may have done it, latest first:", names, n);
}

static struct track_copy buffer_of(const struct kheap_record *r, const struct context *ctx)
{
    return (struct track_copy){
        .base = r->address,
        .size = r->size,
        .facts = {.family = TRACK_PLAIN,
                  .made_by = TRACK_MADE_BY_KERNEL,
                  .device = (int16_t)ctx->device,
                  .bytes = r->size},
        .freed = r->flags & KHEAP_FREED,
        .freed_by = TRACK_MADE_BY_KERNEL,
    };
}

static struct guard_finding finding_of(const struct record_report *t, const struct context *ctx,
                                       enum report_type type)
{
    const struct canary_occasion *o = t->occasion;
    bool by_thread = t->record->flags & KHEAP_BY_THREAD;
    return (struct guard_finding){
        .type = type,
        .call = o->call < DRIVER_CALLS ? o->call : 0,
        .call_name = o->call_name,
        .in_kernel = true,
        .device_known = true,
        .device = ctx->device,
        .stackless = o->ours,
        .fault = t->is_certain || by_thread ? &t->fault : NULL,
        .thread_known = by_thread,
        .suspects = t->names,
        .nsuspects = t->nnames,
        .note = t->note,
    };
}

// --- canaries ----------------------------------------------------------------------------------------------

static uint64_t most_size(const struct kheap_record *r)
{
    uint64_t bytes = (uint64_t)r->capacity * UNIT;
    return bytes > HEAD_BYTES + TAIL_BYTES ? bytes - HEAD_BYTES - TAIL_BYTES : 0;
}

bool kheap_report_recover(const struct kheap *k, struct kheap_record *r)
{
    uint64_t keys = (uintptr_t)k, most = most_size(r), cover = kcanary_cover(keys, r->address);
    for (uint64_t size = 0; size <= most && size < MOST_TRIES; size++) {
        struct kcanary made = kcanary_make(keys, r->address, size, cover);
        bool freed = r->found_head == (made.head ^ kcanary_free(keys));
        if (!freed && r->found_head != made.head)
            continue;
        r->size = size;
        r->made_head = r->found_head;
        r->made_size = made.size;
        r->flags = (r->flags & ~(uint32_t)KHEAP_SIZE_LOST) | (freed ? KHEAP_FREED : 0);
        return true;
    }
    return false;
}

// Reports one side of a buffer.
static void report_side(const struct record_report *t, const struct context *ctx, bool tail)
{
    const struct kheap_record *r = t->record;
    uint8_t found[HEAD_BYTES], made[HEAD_BYTES], touched[HEAD_BYTES / 8];
    uint32_t count = tail ? TAIL_BYTES : HEAD_BYTES, first = 0, last = 0;
    uint64_t base = tail ? r->address + r->size : r->address - HEAD_BYTES;
    memcpy(found, tail ? &r->found_tail : &r->found_head, 8);
    memcpy(made, tail ? &r->made_tail : &r->made_head, 8);
    memcpy(found + 8, &r->found_size, 8);
    memcpy(made + 8, &r->made_size, 8);
    // Nothing is known of the original bytes: all of them may have changed.
    for (uint32_t i = 0; r->flags & KHEAP_SIZE_LOST && i < count; i++)
        made[i] = (uint8_t)~found[i];
    canary_bytes_compare(found, made, count, touched, &first, &last);
    struct guard_finding f = finding_of(t, ctx, tail ? REPORT_HEAP_OVERFLOW : REPORT_HEAP_UNDERFLOW);
    f.address = base + (tail ? first : canary_bytes_run(touched, last));
    f.corrupted = (struct report_bytes){.base = base, .count = count, .bytes = found, .touched = touched};
    f.buffers[f.nbuffers++] = buffer_of(r, ctx);
    guard_report_finding(&f);
}

static void report_overrun(struct record_report *t, const struct context *ctx, const struct kheap_host *h)
{
    struct kheap_record r = *t->record;
    char note[200];
    bool lost = r.flags & KHEAP_SIZE_LOST;
    if (lost && kheap_report_recover(&h->about, &r))
        r.flags = (r.flags & ~(uint32_t)KHEAP_TAIL) | KHEAP_HEAD;  // its tail was not checked
    else if (lost)
        r.size = most_size(&r);
    t->record = &r;
    snprintf(note, sizeof note, "%s%s", t->occasion->note,
             r.flags & KHEAP_SIZE_LOST
                 ? "; its size was overwritten too, and the one shown is the largest possible"
                 : "");
    find_kernels(t, h, note);
    if (r.flags & KHEAP_HEAD)
        report_side(t, ctx, false);
    if (r.flags & KHEAP_TAIL && !(r.flags & KHEAP_SIZE_LOST))
        report_side(t, ctx, true);
}

// --- frees -------------------------------------------------------------------------------------------------

static void report_free(struct record_report *t, const struct context *ctx, const struct kheap_host *h)
{
    const struct kheap_record *r = t->record;
    bool twice = r->kind == KHEAP_DOUBLE_FREE;
    find_kernels(t, h,
                 twice ? "a kernel had freed it before"
                       : "a kernel passed a pointer to free that malloc never returned");
    struct guard_finding f = finding_of(t, ctx, twice ? REPORT_DOUBLE_FREE : REPORT_BAD_FREE);
    f.address = r->address;
    if (twice) {
        f.buffers[f.nbuffers++] = buffer_of(r, ctx);
        f.buffers[0].freed = true;
    }
    guard_report_finding(&f);
}

void kheap_report_record(const struct kheap_record *record, const struct context *ctx,
                         const struct kheap_host *heap, const struct canary_occasion *occasion)
{
    struct record_report t = {.record = record, .occasion = occasion};
    if (!kernel_filter_any(t.names, launch_ring_since(heap->clean, t.names, KERNELS))) {
        guard_count(GUARD_ERRORS_UNWANTED);
        return;
    }
    switch (record->kind) {
    case KHEAP_OVERRUN: report_overrun(&t, ctx, heap); break;
    case KHEAP_DOUBLE_FREE:
    case KHEAP_BAD_FREE: report_free(&t, ctx, heap); break;
    default: break;  // the record was not written by the heap
    }
}
