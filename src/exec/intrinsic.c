// SPDX-License-Identifier: MIT
// printf, assert, malloc, free, graph conditionals.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/control.h"
#include "exec/intrinsic.h"

enum { MOST_TEXT = 4096 };

// --- printf ------------------------------------------------------------------------------------------------

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

// A conversion in the C library's terms: flags, width, precision, letter.
struct conversion {
    char flags[8];
    bool star[2], precise;
    int width, precision;
    unsigned bytes;  // of an integer argument
    char letter;
};

// Widths and precisions beyond the text's size have no visible effect, but cost memory and time.
static int at_most(int64_t n)
{
    return (int)(n > MOST_TEXT ? MOST_TEXT : n < -MOST_TEXT ? -MOST_TEXT : n);
}

static const char *read_number(const char *p, bool *star, int *number)
{
    *star = *p == '*';
    *number = 0;
    if (*star)
        return p + 1;
    for (; *p >= '0' && *p <= '9'; p++)
        *number = at_most(*number * 10 + (*p - '0'));
    return p;
}

static const char *read_length(const char *p, struct conversion *c)
{
    c->bytes = 4;
    for (; *p && strchr("hljztL", *p); p++)
        c->bytes = *p != 'h' ? 8 : c->bytes == 2 ? 1 : 2;
    return p;
}

// Reads a conversion after its '%'. Returns the text that follows it, NULL if the conversion is incomplete.
static const char *read_conversion(const char *p, struct conversion *c)
{
    *c = (struct conversion){.precision = 0};
    size_t n = 0;
    for (; *p && strchr("-+ #0", *p); p++)
        if (n + 1 < sizeof c->flags && !strchr(c->flags, *p))
            c->flags[n++] = *p;
    p = read_number(p, &c->star[0], &c->width);
    c->precise = *p == '.';
    if (c->precise)
        p = read_number(p + 1, &c->star[1], &c->precision);
    p = read_length(p, c);
    c->letter = *p;
    return *p ? p + 1 : NULL;
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
    bool ok = access_read(a->w, &intrinsic_generic, a->lane, a->at, value, size);
    a->at += size;
    return ok;
}

// Reads widths and precisions given as arguments. A negative width means the flag '-', a negative precision
// means none. Returns false after a fault.
static bool read_stars(struct arguments *a, struct conversion *c)
{
    uint64_t number;
    if (c->star[0]) {
        if (!next(a, 4, &number))
            return false;
        c->width = at_most((int32_t)number);
    }
    if (c->star[1]) {
        if (!next(a, 4, &number))
            return false;
        c->precision = at_most((int32_t)number);
    }
    c->precise = c->precise && c->precision >= 0;
    return true;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
// The format for the C library: %, flags, *.*, length and letter.
#define EMIT(length, letter, value)                                                                     \
    do {                                                                                                \
        char spec[24];                                                                                  \
        snprintf(spec, sizeof spec, "%%%s*%s%s%c", c->flags, c->precise ? ".*" : "", length, letter);   \
        c->precise ? append(t, spec, c->width, c->precision, value) : append(t, spec, c->width, value); \
    } while (0)

static long long as_signed(uint64_t v, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(v << shift) >> shift;
}

static bool print_integer(struct text *t, struct arguments *a, const struct conversion *c)
{
    uint64_t v;
    if (!next(a, c->bytes == 8 ? 8 : 4, &v))
        return false;
    if (c->letter == 'd' || c->letter == 'i')
        EMIT("ll", 'd', as_signed(v, c->bytes));
    else
        EMIT("ll", c->letter, (unsigned long long)(v << (64 - 8 * c->bytes) >> (64 - 8 * c->bytes)));
    return true;
}

static bool print_one(struct text *t, struct arguments *a, const struct conversion *c)
{
    uint64_t v;
    switch (c->letter) {
    case 'c':
        if (!next(a, 4, &v))
            return false;
        EMIT("", 'c', (int)v);
        return true;
    case 'p':
        if (!next(a, 8, &v))
            return false;
        EMIT("", 'p', (void *)(uintptr_t)v);
        return true;
    case 's': {
        char string[1024];
        if (!next(a, 8, &v) || !access_string(a->w, &intrinsic_generic, a->lane, v, string, sizeof string))
            return false;
        EMIT("", 's', string);
        return true;
    }
    default: {
        double real;
        if (!next(a, 8, &v))
            return false;
        memcpy(&real, &v, sizeof real);
        EMIT("", c->letter, real);
        return true;
    }
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
            const char *end = read_conversion(p + 1, &c);
            if (!end) {
                append(t, "%s", p);
                return true;
            }
            bool integer = strchr("diuxXo", c.letter);
            if (!integer && !strchr("cpsfFeEgGaA", c.letter))
                append(t, "%.*s", (int)(end - p), p);
            else if (!read_stars(a, &c) || !(integer ? print_integer(t, a, &c) : print_one(t, a, &c)))
                return false;
            p = end;
        }
    }
    return true;
}

static const struct exec_insn *print(struct exec_warp *w, const struct exec_insn *i)
{
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        char fmt[2048];
        struct text t = {.len = 0};
        struct arguments a = {w, i, l, intrinsic_argument(w, 1, l), 0};
        if (!access_string(w, &intrinsic_generic, l, intrinsic_argument(w, 0, l), fmt, sizeof fmt) ||
            !format(&t, &a, fmt))
            return NULL;
        intrinsic_host(w)->print(intrinsic_host(w)->ctx, t.bytes, t.len);
        intrinsic_return(w, l, (uint64_t)(int64_t)a.count);
    }
    return control_ret(w, i);
}

// --- assert ------------------------------------------------------------------------------------------------

// __assertfail(expression, file, line, function, size of a character)
static const struct exec_insn *assert_fail(struct exec_warp *w, const struct exec_insn *i)
{
    if (!intrinsic_has_signature(w, 5, 0))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        char expression[512], file[512], function[512];
        if (!access_string(w, &intrinsic_generic, l, intrinsic_argument(w, 0, l), expression,
                           sizeof expression) ||
            !access_string(w, &intrinsic_generic, l, intrinsic_argument(w, 1, l), file, sizeof file) ||
            !access_string(w, &intrinsic_generic, l, intrinsic_argument(w, 3, l), function, sizeof function))
            return NULL;
        struct text t = {.len = 0};
        const uint32_t *block = w->block->ctaid;
        append(&t, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
               (unsigned)intrinsic_argument(w, 2, l), function, block[0], block[1], block[2], w->tid[0][l],
               w->tid[1][l], w->tid[2][l], expression);
        intrinsic_host(w)->print(intrinsic_host(w)->ctx, t.bytes, t.len);
    }
    // The caller's frame has the source line.
    frame_enter(w, w->frame->caller);
    return fault_raise(w, i, EXEC_ASSERT);
}

// --- malloc, free ------------------------------------------------------------------------------------------

static const struct exec_insn *allocate(struct exec_warp *w, const struct exec_insn *i)
{
    if (!intrinsic_has_signature(w, 1, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    uint64_t sizes[EXEC_LANES], at[EXEC_LANES];
    intrinsic_arguments(w, 0, sizes);
    intrinsic_host(w)->heap_alloc(intrinsic_host(w)->ctx, w->mask, sizes, at);
    FOR_LANES(w->mask) intrinsic_return(w, l, at[l]);
    return control_ret(w, i);
}

// How many bytes to ask for so that the block is aligned: the heap aligns blocks of 2^k bytes to their size,
// up to a page, and larger blocks to a page. Returns 0 for an alignment that it does not have.
static uint64_t aligned_size(uint64_t size, uint64_t alignment)
{
    enum { PAGE = 4096 };
    if (!size || !alignment || alignment & (alignment - 1) || alignment > PAGE)
        return 0;
    uint64_t n = size > alignment ? size : alignment, whole = 1;
    while (whole < n && whole < 2 * PAGE)
        whole *= 2;
    return n > whole ? n : whole;
}

// new of a type that wants more than 16 bytes of alignment. Lanes that get no such block get NULL.
static const struct exec_insn *allocate_aligned(struct exec_warp *w, const struct exec_insn *i)
{
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    const struct exec_host *host = intrinsic_host(w);
    uint64_t sizes[EXEC_LANES], to[EXEC_LANES], at[EXEC_LANES];
    uint32_t crooked = 0;
    intrinsic_arguments(w, 0, sizes);
    intrinsic_arguments(w, 1, to);
    FOR_LANES(w->mask) sizes[l] = aligned_size(sizes[l], to[l]);
    host->heap_alloc(host->ctx, w->mask, sizes, at);
    // Where the heap is nearly full it gives whatever is large enough.
    FOR_LANES(w->mask) crooked |= (uint32_t)(sizes[l] && at[l] % to[l]) << l;
    if (crooked)
        host->heap_free(host->ctx, crooked, at);
    FOR_LANES(w->mask) intrinsic_return(w, l, sizes[l] && !(crooked >> l & 1) ? at[l] : 0);
    return control_ret(w, i);
}

static const struct exec_insn *release(struct exec_warp *w, const struct exec_insn *i)
{
    if (!intrinsic_has_signature(w, 1, 0))
        return fault_raise(w, i, EXEC_INVALID_PC);
    uint64_t at[EXEC_LANES];
    intrinsic_arguments(w, 0, at);
    uint32_t bad = intrinsic_host(w)->heap_free(intrinsic_host(w)->ctx, w->mask, at);
    if (bad) {
        unsigned l = (unsigned)__builtin_ctz(bad);
        frame_enter(w, w->frame->caller);
        const struct exec_host *host = intrinsic_host(w);
        bool twice = host->heap_was_block && host->heap_was_block(host->ctx, at[l]);
        return fault_memory(w, i, EXEC_LAUNCH_FAILED, l, at[l], 0, true, twice ? "freed" : "heap");
    }
    return control_ret(w, i);
}

// --- graph conditionals ------------------------------------------------------------------------------------

// A handle is the address of a word of device memory.
static const struct exec_insn *set_condition(struct exec_warp *w, const struct exec_insn *i)
{
    if (!intrinsic_has_signature(w, 2, 0))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint64_t at = intrinsic_argument(w, 0, l);
        if (at % 4 || !space_allows(at, 4, SPACE_WRITE)) {
            frame_enter(w, w->frame->caller);
            return fault_memory(w, i, EXEC_ILLEGAL_ADDRESS, l, at, 4, true, "global");
        }
        __atomic_store_n((uint32_t *)(void *)space_host(at), (uint32_t)intrinsic_argument(w, 1, l),
                         __ATOMIC_RELAXED);
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
        {{"__cuda_syscall_aligned_malloc", 29}, allocate_aligned},
        {{"cudaGraphSetConditional", 23}, set_condition},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (str_eq(rows[k].name, name))
            return rows[k].fn;
    return intrinsic_launch_find(name);
}
