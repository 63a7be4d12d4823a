// SPDX-License-Identifier: MIT
// Functions that the system provides to kernels: printf, assert, malloc, free. They run in a frame of their own,
// where their parameters lie in local memory as those of any function.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/control.h"
#include "exec/mem.h"

enum { MOST_TEXT = 4096 };

#define FOR_LANES(mask) \
    for (uint32_t left_ = (mask), l = 0; left_ && (l = (uint32_t)__builtin_ctz(left_), true); left_ &= left_ - 1)

static const struct exec_host *host(const struct exec_warp *w)
{
    return &w->frame->func->program->host;
}

static uint64_t argument(const struct exec_warp *w, unsigned n, unsigned lane)
{
    const struct exec_place *p = &w->frame->func->params[n];
    uint64_t value = 0;
    mem_local_read(w, lane, w->frame->local_base + p->offset, &value, p->size < 8 ? p->size : 8);
    return value;
}

static void give(struct exec_warp *w, unsigned lane, uint64_t value)
{
    const struct exec_place *p = &w->frame->func->rets[0];
    mem_local_write(w, lane, w->frame->local_base + p->offset, &value, p->size < 8 ? p->size : 8);
}

static bool has_signature(const struct exec_warp *w, unsigned nparams, unsigned nrets)
{
    return w->frame->func->nparams == nparams && w->frame->func->nrets == nrets;
}

// The accesses of these functions are generic.
static const struct exec_insn generic = {.flags = MEM_GENERIC << MEM_SPACE_SHIFT};

// --- printf -------------------------------------------------------------------------------------------------

struct text {
    char bytes[MOST_TEXT];
    size_t len;
};

static void append(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void append(struct text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->bytes + t->len, sizeof t->bytes - t->len, fmt, args);
    va_end(args);
    if (n > 0)
        t->len = t->len + (size_t)n < sizeof t->bytes ? t->len + (size_t)n : sizeof t->bytes - 1;
}

struct conversion {
    char spec[32];  // as for the C library, without the argument's length
    char letter;
    bool wide;  // 64 bits
};

// Reads a conversion behind '%'. Returns what is behind it, NULL if there is none.
static const char *read_conversion(const char *p, struct conversion *c, bool star[2])
{
    size_t n = 0;
    star[0] = star[1] = false;
    c->wide = false;
    c->spec[n++] = '%';
    bool precision = false;
    for (; *p && n < sizeof c->spec - 4; p++) {
        if (strchr("-+ #0123456789", *p)) {
            c->spec[n++] = *p;
        } else if (*p == '.') {
            precision = true;
            c->spec[n++] = *p;
        } else if (*p == '*') {
            star[precision] = true;
            c->spec[n++] = *p;
        } else if (strchr("hljztL", *p)) {
            c->wide |= *p != 'h' && *p != 'L';
        } else {
            c->letter = *p;
            c->spec[n] = 0;
            return p + 1;
        }
    }
    return NULL;
}

// Arguments lie in a buffer as a struct of promoted values: 4 or 8 bytes, aligned to their size.
struct arguments {
    struct exec_warp *w;
    const struct exec_insn *call;
    unsigned lane;
    uint64_t at;
    int count;
};

static bool next(struct arguments *a, unsigned size, uint64_t *value)
{
    a->at = (a->at + size - 1) & ~(uint64_t)(size - 1);
    *value = 0;
    a->count++;
    bool ok = mem_read(a->w, &generic, a->lane, a->at, value, size);
    a->at += size;
    return ok;
}

static void finish(struct conversion *c, const char *length, char letter)
{
    size_t n = strlen(c->spec);
    snprintf(c->spec + n, sizeof c->spec - n, "%s%c", length, letter);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#define EMIT(value)                                                                                       \
    (star[0] && star[1] ? append(t, c->spec, width, precision, value)                                     \
     : star[0] || star[1] ? append(t, c->spec, star[0] ? width : precision, value)                        \
                          : append(t, c->spec, value))

static bool print_one(struct text *t, struct arguments *a, struct conversion *c, const bool star[2])
{
    uint64_t v = 0, number = 0;
    int width = 0, precision = 0;
    if (star[0] && !next(a, 4, &number))
        return false;
    width = (int)number;
    if (star[1] && !next(a, 4, &number))
        return false;
    precision = (int)number;
    switch (c->letter) {
    case 'd':
    case 'i':
        if (!next(a, c->wide ? 8 : 4, &v))
            return false;
        finish(c, "ll", 'd');
        EMIT(c->wide ? (long long)v : (long long)(int32_t)v);
        return true;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        if (!next(a, c->wide ? 8 : 4, &v))
            return false;
        finish(c, "ll", c->letter);
        EMIT((unsigned long long)v);
        return true;
    case 'c':
        if (!next(a, 4, &v))
            return false;
        finish(c, "", 'c');
        EMIT((int)v);
        return true;
    case 'p':
        if (!next(a, 8, &v))
            return false;
        finish(c, "", 'p');
        EMIT((void *)(uintptr_t)v);
        return true;
    case 's': {
        char string[1024];
        if (!next(a, 8, &v) || !mem_string(a->w, &generic, a->lane, v, string, sizeof string))
            return false;
        finish(c, "", 's');
        EMIT(string);
        return true;
    }
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
        double real;
        if (!next(a, 8, &v))
            return false;
        memcpy(&real, &v, sizeof real);
        finish(c, "", c->letter);
        EMIT(real);
        return true;
    }
    default:
        append(t, "%s%c", c->spec, c->letter);
        return true;
    }
}
#pragma GCC diagnostic pop

static bool format(struct text *t, struct arguments *a, const char *p)
{
    while (*p) {
        if (*p != '%') {
            const char *end = strchrnul(p, '%');
            append(t, "%.*s", (int)(end - p), p);
            p = end;
        } else if (p[1] == '%') {
            append(t, "%%");
            p += 2;
        } else {
            struct conversion c;
            bool star[2];
            const char *end = read_conversion(p + 1, &c, star);
            if (!end) {
                append(t, "%s", p);
                return true;
            }
            if (!print_one(t, a, &c, star))
                return false;
            p = end;
        }
    }
    return true;
}

static const struct exec_insn *print(struct exec_warp *w, const struct exec_insn *i)
{
    if (!has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask) {
        char fmt[2048];
        struct text t = {.len = 0};
        struct arguments a = {w, i, l, argument(w, 1, l), 0};
        if (!mem_string(w, &generic, l, argument(w, 0, l), fmt, sizeof fmt) || !format(&t, &a, fmt))
            return NULL;
        host(w)->print(host(w)->ctx, t.bytes, t.len);
        give(w, l, (uint64_t)(int64_t)a.count);
    }
    return control_ret(w, i);
}

// --- assert -------------------------------------------------------------------------------------------------

// __assertfail(expression, file, line, function, size of a character)
static const struct exec_insn *assert_fail(struct exec_warp *w, const struct exec_insn *i)
{
    if (!has_signature(w, 5, 0))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask) {
        char expression[512], file[512], function[512];
        if (!mem_string(w, &generic, l, argument(w, 0, l), expression, sizeof expression) ||
            !mem_string(w, &generic, l, argument(w, 1, l), file, sizeof file) ||
            !mem_string(w, &generic, l, argument(w, 3, l), function, sizeof function))
            return NULL;
        struct text t = {.len = 0};
        const uint32_t *block = w->block->ctaid;
        append(&t, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
               (unsigned)argument(w, 2, l), function, block[0], block[1], block[2], w->tid[0][l], w->tid[1][l],
               w->tid[2][l], expression);
        host(w)->print(host(w)->ctx, t.bytes, t.len);
    }
    // The caller's frame knows the line.
    frame_enter(w, w->frame->caller);
    return fault_raise(w, i, EXEC_ASSERT);
}

// --- malloc, free -------------------------------------------------------------------------------------------

static const struct exec_insn *allocate(struct exec_warp *w, const struct exec_insn *i)
{
    if (!has_signature(w, 1, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask) {
        uint64_t size = argument(w, 0, l);
        give(w, l, host(w)->heap_alloc(host(w)->ctx, size));
    }
    return control_ret(w, i);
}

static const struct exec_insn *release(struct exec_warp *w, const struct exec_insn *i)
{
    if (!has_signature(w, 1, 0))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask) {
        uint64_t address = argument(w, 0, l);
        if (address && !host(w)->heap_free(host(w)->ctx, address)) {
            frame_enter(w, w->frame->caller);
            return fault_memory(w, i, EXEC_LAUNCH_FAILED, l, address, 0, true, "heap");
        }
    }
    return control_ret(w, i);
}

exec_fn *intrinsic_find(struct str name)
{
    static const struct {
        struct str name;
        exec_fn *fn;
    } rows[] = {
        {{"vprintf", 7}, print},
        {{"__assertfail", 12}, assert_fail},
        {{"malloc", 6}, allocate},
        {{"free", 4}, release},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (str_eq(rows[k].name, name))
            return rows[k].fn;
    return NULL;
}
