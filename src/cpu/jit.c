// SPDX-License-Identifier: MIT
#include "cpu/jit.h"

#include "cpu/logs.h"
#include "cpu/say.h"

static void emit(struct diag_sink *sink, const struct diag *d)
{
    static const char *const severities[] = {"note", "warning", "error"};
    struct jit *j = (struct jit *)sink;
    struct out *to = d->severity == DIAG_ERROR ? &j->error.text : &j->info.text;
    char where[40] = "";

    if (d->source.text.ptr) {
        struct diag_place place = diag_locate(d->source.text, d->offset);
        snprintf(where, sizeof where, ":%u:%u", place.line, place.column);
    }
    if (d->severity == DIAG_ERROR && !j->first[0])
        snprintf(j->first, sizeof j->first, "%s%s: %s", d->source.name, where, d->message);
    if (to->len)
        out_char(to, '\n');
    out_fmt(to, "%s%s: %s: %s", d->source.name, where, severities[d->severity], d->message);
}

void jit_error(struct jit *j, const char *name, const char *fmt, ...)
{
    struct diag_source source = {.name = name};
    va_list args;
    va_start(args, fmt);
    diag_vreport(&j->sink, DIAG_ERROR, &source, 0, 0, fmt, args);
    va_end(args);
}

static void take_option(struct jit *j, CUjit_option option, void **value)
{
    switch ((int)option) {
    case CU_JIT_WALL_TIME: j->wall_time = value; break;
    case CU_JIT_INFO_LOG_BUFFER: j->info.buffer = *value; break;
    case CU_JIT_ERROR_LOG_BUFFER: j->error.buffer = *value; break;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        j->info.size = (unsigned)(uintptr_t)*value;
        j->info.size_out = value;
        break;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        j->error.size = (unsigned)(uintptr_t)*value;
        j->error.size_out = value;
        break;
    default:  // has no meaning for an executor
        break;
    }
}

CUresult jit_begin(struct jit *j, unsigned count, const CUjit_option *options, void **values)
{
    *j = (struct jit){.sink = {.emit = emit}};
    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
            return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        take_option(j, options[i], &values[i]);
    if (out_to_memory(&j->error.text))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (out_to_memory(&j->info.text)) {
        out_close(&j->error.text);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    clock_gettime(CLOCK_MONOTONIC, &j->began);
    return CUDA_SUCCESS;
}

// The size that is returned does not count the NUL.
static void fill_log(struct jit_log *log)
{
    size_t n = 0;
    if (log->buffer && log->size) {
        n = log->text.len < log->size ? log->text.len : log->size - 1;
        memcpy(log->buffer, log->text.buf, n);
        log->buffer[n] = '\0';
    }
    if (log->size_out)
        *log->size_out = (void *)(uintptr_t)n;
    out_close(&log->text);
}

CUresult jit_end(struct jit *j, CUresult result)
{
    bool asked = j->error.buffer && j->error.size;
    if (j->wall_time) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        float ms =
            (float)(now.tv_sec - j->began.tv_sec) * 1e3f + (float)(now.tv_nsec - j->began.tv_nsec) * 1e-6f;
        memcpy(j->wall_time, &ms, sizeof ms);
    }
    if (result && result != CUDA_ERROR_OUT_OF_MEMORY && j->first[0] && (!asked || j->ours))
        say("%s", j->first);
    fill_log(&j->error);
    fill_log(&j->info);
    return result;
}

CUresult jit_end_notify(struct jit *j, CUresult result)
{
    jit_end(j, result);
    if (result)
        logs_notify();
    return result;
}
