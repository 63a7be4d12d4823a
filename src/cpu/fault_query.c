// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "cpu/cpu.h"
#include "driver/driver_fault.h"

static void copy(char *to, size_t size, struct str from)
{
    size_t n = from.len < size ? from.len : size - 1;
    if (n)
        memcpy(to, from.ptr, n);
    to[n] = 0;
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
    copy(to->instruction, sizeof to->instruction, f->instruction);
    copy(to->source_file, sizeof to->source_file, f->source_file);
}

__attribute__((visibility("default"))) int moat_driver_fault(CUcontext context, struct driver_fault *out);
int moat_driver_fault(CUcontext context, struct driver_fault *out)
{
    struct CUctx_st *ctx = context;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!ctx)
        context_current_any(&ctx);
    if (!ctx || !handle_is(ctx, HANDLE_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&ctx->lock);
    bool faulted = atomic_load_explicit(&ctx->error, memory_order_relaxed);
    if (faulted)
        *out = ctx->told;
    pthread_mutex_unlock(&ctx->lock);
    return faulted ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
