// SPDX-License-Identifier: MIT
// Settings of core dumps of the device. They are stored and returned; no core dump is ever written, which is
// reported when a program enables them. moat's report contains the cause of a kernel's death.
#include <string.h>

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/cpu.h"

enum { TEXT = 1024 };

// One setting per member. LIGHTWEIGHT and TRIGGER_HOST are older names of some flags.
struct coredump {
    bool on_exception, user_trigger;
    unsigned flags;
    char file[TEXT], pipe[TEXT];
};

// Guards the global settings and those of all contexts. A leaf.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct coredump global;

static void set_default(char *text, const char *what)
{
    char host[256] = "";
    if (*text)
        return;
    gethostname(host, sizeof host - 1);
    snprintf(text, TEXT, "%s.cuda.%s.%d", what, host, (int)getpid());
}

// Returns the settings that hold for the context, or the global ones. own: the context gets its own if it has
// none; NULL if out of memory. The lock must be held.
static struct coredump *settings_of(struct CUctx_st *ctx, bool own)
{
    set_default(global.file, "core");
    set_default(global.pipe, "corepipe");
    if (!ctx)
        return &global;
    if (own && !ctx->coredump && (ctx->coredump = mem_alloc(sizeof *ctx->coredump)))
        *ctx->coredump = global;
    return ctx->coredump ? ctx->coredump : own ? NULL : &global;
}

void coredump_context_free(struct CUctx_st *ctx)
{
    mutex_lock(&lock);
    mem_free(ctx->coredump);
    ctx->coredump = NULL;
    mutex_unlock(&lock);
}

static const char *text_of(const struct coredump *s, CUcoredumpSettings a)
{
    return a == CU_COREDUMP_FILE ? s->file : a == CU_COREDUMP_PIPE ? s->pipe : NULL;
}

static bool is_set(const struct coredump *s, CUcoredumpSettings a)
{
    switch ((int)a) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION: return s->on_exception;
    case CU_COREDUMP_ENABLE_USER_TRIGGER: return s->user_trigger;
    case CU_COREDUMP_TRIGGER_HOST: return !(s->flags & CU_COREDUMP_SKIP_ABORT);
    default: return (s->flags & CU_COREDUMP_LIGHTWEIGHT_FLAGS) == CU_COREDUMP_LIGHTWEIGHT_FLAGS;
    }
}

static CUresult get(struct CUctx_st *ctx, CUcoredumpSettings a, void *value, size_t *size)
{
    if (a < CU_COREDUMP_ENABLE_ON_EXCEPTION || a >= CU_COREDUMP_MAX || !size)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&lock);
    const struct coredump *s = settings_of(ctx, false);
    const char *text = text_of(s, a);
    bool flag = is_set(s, a), flags = a == CU_COREDUMP_GENERATION_FLAGS;
    const void *from = text ? text : flags ? (const void *)&s->flags : &flag;
    size_t need = text ? strlen(text) + 1 : flags ? sizeof s->flags : sizeof flag;
    bool fits = value && *size >= need;
    if (fits)
        memcpy(value, from, need);
    if (!value)
        *size = need;
    mutex_unlock(&lock);
    return fits || !value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void set_flag(unsigned *flags, unsigned which, bool on)
{
    *flags = on ? *flags | which : *flags & ~which;
}

static bool set_text(char *to, const char *from, size_t size)
{
    size_t len = strnlen(from, size);
    if (len >= TEXT)
        return false;
    memcpy(to, from, len);
    to[len] = 0;
    return true;
}

// Stores a setting. Returns false if the value is invalid. The lock must be held.
static bool store(struct coredump *s, CUcoredumpSettings a, const void *value, size_t size)
{
    bool on = size >= sizeof on && *(const unsigned char *)value;
    unsigned flags, known = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT;
    switch ((int)a) {
    case CU_COREDUMP_FILE: return set_text(s->file, value, size);
    case CU_COREDUMP_PIPE: return set_text(s->pipe, value, size);
    case CU_COREDUMP_GENERATION_FLAGS:
        if (size < sizeof flags)
            return false;
        memcpy(&flags, value, sizeof flags);
        if (flags & ~known)
            return false;
        s->flags = flags;
        return true;
    case CU_COREDUMP_ENABLE_ON_EXCEPTION: s->on_exception = on; break;
    case CU_COREDUMP_ENABLE_USER_TRIGGER: s->user_trigger = on; break;
    case CU_COREDUMP_TRIGGER_HOST: set_flag(&s->flags, CU_COREDUMP_SKIP_ABORT, !on); break;
    default: set_flag(&s->flags, CU_COREDUMP_LIGHTWEIGHT_FLAGS, on);
    }
    return size >= sizeof on;
}

static CUresult set(struct CUctx_st *ctx, CUcoredumpSettings a, const void *value, const size_t *size)
{
    if (a < CU_COREDUMP_ENABLE_ON_EXCEPTION || a >= CU_COREDUMP_MAX || !size || !value)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&lock);
    struct coredump *s = settings_of(ctx, true);
    bool good = s && store(s, a, value, *size);
    bool asks = good && (s->on_exception || s->user_trigger);
    mutex_unlock(&lock);
    if (asks)
        not_supported_notify("writing core files of kernels");
    return good ? CUDA_SUCCESS : s ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuCoredumpGetAttribute(CUcoredumpSettings a, void *value, size_t *size)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current_any(&ctx);
    return r ? r : get(ctx, a, value, size);
}

CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings a, void *value, size_t *size)
{
    return get(NULL, a, value, size);
}

CUresult cuCoredumpSetAttribute(CUcoredumpSettings a, void *value, size_t *size)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current_any(&ctx);
    if (!r && (a == CU_COREDUMP_ENABLE_USER_TRIGGER || a == CU_COREDUMP_PIPE))
        r = CUDA_ERROR_NOT_PERMITTED;
    return r ? r : set(ctx, a, value, size);
}

CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings a, void *value, size_t *size)
{
    return set(NULL, a, value, size);
}
