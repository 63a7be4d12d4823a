// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/cpu.h"
#include "driver/driver_fault.h"
#include "ptx/ptx.h"

static void copy(char *to, size_t size, struct str from)
{
    size_t n = from.len < size ? from.len : size - 1;
    if (n)
        memcpy(to, from.ptr, n);
    to[n] = 0;
}

// Copies an instruction, which may stand on several lines, with single spaces.
static void copy_spaced(char *to, size_t size, struct str from)
{
    size_t n = 0;
    for (size_t i = 0; i < from.len && n + 1 < size; i++) {
        bool blank = from.ptr[i] == ' ' || (from.ptr[i] >= '\t' && from.ptr[i] <= '\r');
        if (!blank)
            to[n++] = from.ptr[i];
        else if (n && to[n - 1] != ' ')
            to[n++] = ' ';
    }
    while (n && to[n - 1] == ' ')
        n--;
    to[n] = 0;
}

// Adds a text to `texts`, once, and returns its offset; 0 if it is empty or there is no room.
static uint16_t keep_text(struct driver_fault *to, size_t *used, const char *s)
{
    size_t n = strlen(s) + 1;
    for (size_t at = 1; at < *used; at += strlen(to->texts + at) + 1)
        if (strcmp(to->texts + at, s) == 0)
            return (uint16_t)at;
    if (n == 1 || n > sizeof to->texts - *used)
        return 0;
    memcpy(to->texts + *used, s, n);
    *used += n;
    return (uint16_t)(*used - n);
}

_Static_assert((int)EXEC_FAULT_FRAMES <= (int)DRIVER_FAULT_FRAMES, "every frame is reported");

static void keep_frames(struct driver_fault *to, const struct exec_fault *f)
{
    size_t used = 1;
    char name[2048];
    for (uint32_t i = 0; i < f->nframes; i++) {
        const struct exec_fault_frame *from = &f->frames[i];
        struct driver_fault_frame *frame = &to->frames[to->nframes++];
        if (from->inlined)
            ptx_debug_text(from->function, name, sizeof name);
        else
            copy(name, sizeof name, from->function);
        frame->function = keep_text(to, &used, name);
        copy(name, sizeof name, from->file);
        frame->file = keep_text(to, &used, name);
        frame->line = from->line;
        frame->inlined = from->inlined;
    }
}

static struct str text(const char *s)
{
    return s ? str_from(s) : (struct str){NULL, 0};
}

void fault_query_keep(struct driver_fault *to, const struct exec_fault *f, CUresult result)
{
    *to = (struct driver_fault){.result = (int)result,
                                .address = f->address,
                                .bytes = f->size,
                                .write = f->write,
                                .line = f->line,
                                .column = f->column,
                                .source_line = f->source_line};
    memcpy(to->block, f->block, sizeof to->block);
    memcpy(to->thread, f->thread, sizeof to->thread);
    copy(to->space, sizeof to->space, text(f->space));
    copy(to->kernel, sizeof to->kernel, f->kernel ? f->kernel->name : (struct str){NULL, 0});
    copy(to->module, sizeof to->module, text(f->module));
    copy_spaced(to->instruction, sizeof to->instruction, f->instruction);
    copy(to->source_file, sizeof to->source_file, f->source_file);
    keep_frames(to, f);
}

// Faults that were skipped, until somebody takes them. What finds no room is lost; the guard takes them at
// every call.
enum { SKIPPED = 64 };
static struct {
    pthread_mutex_t lock;
    struct driver_fault *fault[SKIPPED];
    unsigned first, count;
} skipped = {.lock = PTHREAD_MUTEX_INITIALIZER};

void fault_query_skipped(void *owner, const struct exec_fault *f)
{
    struct driver_fault *kept = mem_alloc(sizeof *kept);
    if (!kept)
        return;
    fault_query_keep(kept, f, cpu_context_error_of(f->kind));
    mutex_lock(&skipped.lock);
    if (skipped.count < SKIPPED) {
        skipped.fault[(skipped.first + skipped.count++) % SKIPPED] = kept;
        kept = NULL;
    }
    mutex_unlock(&skipped.lock);
    mem_free(kept);
}

__attribute__((visibility("default"))) int moat_driver_skipped(struct driver_fault *out);
int moat_driver_skipped(struct driver_fault *out)
{
    struct driver_fault *taken = NULL;
    mutex_lock(&skipped.lock);
    if (skipped.count) {
        taken = skipped.fault[skipped.first];
        skipped.first = (skipped.first + 1) % SKIPPED;
        skipped.count--;
    }
    mutex_unlock(&skipped.lock);
    if (!taken)
        return CUDA_ERROR_NOT_FOUND;
    *out = *taken;
    mem_free(taken);
    return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) int moat_driver_fault(CUcontext context, struct driver_fault *out);
int moat_driver_fault(CUcontext context, struct driver_fault *out)
{
    struct CUctx_st *ctx = context ? cpu_context_named(context) : NULL;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context)
        cpu_context_current_any(&ctx);
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    mutex_lock(&ctx->lock);
    bool faulted = atomic_load_explicit(&ctx->error, memory_order_relaxed);
    if (faulted)
        *out = ctx->fault_report;
    mutex_unlock(&ctx->lock);
    return faulted ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
