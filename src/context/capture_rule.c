// SPDX-License-Identifier: MIT
#include "context/capture_rule.h"

#include <pthread.h>
#include <stdatomic.h>

#include "context/context.h"
#include "core/lock.h"

enum { MOST = 256 };  // captures beyond are not recorded

// Captures under way, except relaxed ones, which forbid nothing.
static struct row {
    pthread_t thread;
    CUstream stream;
    CUstreamCaptureMode mode;
    bool used;
} rows[MOST];
static struct lock lock = LOCK_INIT(CAPTURE);  // a leaf
static _Atomic unsigned used;                  // relaxed: only a hint whether to look

_Atomic(bool) capture_rule_any;

void capture_rule_after_fork(void)
{
    lock_after_fork(&lock);
}

void capture_rule_begun(CUstream stream, CUstreamCaptureMode mode)
{
    struct row *r = rows;
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return;
    lock_take(&lock);
    while (r < rows + MOST && r->used)
        r++;
    if (r < rows + MOST) {
        *r = (struct row){pthread_self(), stream, mode, true};
        atomic_fetch_add_explicit(&used, 1, memory_order_relaxed);
    }
    lock_give(&lock);
}

// A capture can only be ended by the thread that began it. Per-thread default streams have the same handle in
// all threads, so the thread is compared too.
void capture_rule_ended(CUstream stream)
{
    pthread_t self = pthread_self();
    if (!atomic_load_explicit(&used, memory_order_relaxed))
        return;
    lock_take(&lock);
    for (struct row *r = rows; r < rows + MOST; r++)
        if (r->used && r->stream == stream && pthread_equal(r->thread, self)) {
            r->used = false;
            atomic_fetch_sub_explicit(&used, 1, memory_order_relaxed);
        }
    lock_give(&lock);
}

bool capture_rule_forbids(void)
{
    bool own = false, global = false;
    pthread_t self = pthread_self();
    if (!atomic_load_explicit(&used, memory_order_relaxed))
        return false;
    CUstreamCaptureMode mode = context_capture_relax();  // the thread's own mode
    context_capture_restore(mode);
    lock_take(&lock);
    for (const struct row *r = rows; r < rows + MOST; r++) {
        bool here = r->used && pthread_equal(r->thread, self);
        own |= here;
        global |= r->used && !here && r->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    }
    lock_give(&lock);
    return mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
           (own || (global && mode == CU_STREAM_CAPTURE_MODE_GLOBAL));
}
