// SPDX-License-Identifier: MIT
// For programs that make random kernels for --mode=check: the text that grows, and an access of any kind.
#ifndef MOAT_TEST_CHECK_RANDOM_H
#define MOAT_TEST_CHECK_RANDOM_H

#include <stdarg.h>

#include "cases.h"

enum { TEXT = 1 << 21 };

static unsigned seed;
static char text[TEXT];
static size_t used;

static unsigned dice(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    used += (size_t)vsnprintf(text + used, TEXT - used, fmt, args);
    va_end(args);
    if (used >= TEXT) {
        printf("%s: no place for the text of a module\n", __FILE__);
        exit(2);
    }
}

// --- accesses ----------------------------------------------------------------------------------------------

enum op { LOAD, STORE, ATOM, RED, OPS };

struct random_access {
    enum op op;
    unsigned width, line;
    bool guarded;  // by %always
};

// Chooses one of the first `ops` kinds.
static inline struct random_access random_access(unsigned ops, unsigned line)
{
    static const unsigned widths[] = {1, 2, 4, 8, 16};
    struct random_access a = {.op = dice(ops), .width = widths[dice(5)], .line = line, .guarded = !dice(3)};
    if (a.op == ATOM || a.op == RED)
        a.width = a.width < 4 ? 4 : a.width > 8 ? 8 : a.width;
    return a;
}

static inline const char *type_of(unsigned width)
{
    return width == 1 ? "u8" : width == 2 ? "u16" : width == 4 ? "u32" : "u64";
}

// Puts the access at [base + offset]; what was read goes to %v.
static inline void put_random_access(const struct random_access *p, const char *space, const char *base,
                              int64_t offset)
{
    const char *guard = p->guarded ? "@%always " : "";
    put("    .loc 1 %u 0\n", p->line);
    if (p->op == ATOM)
        put("    %satom%s.add.u%u %%v%u, [%s+%lld], 1;\n", guard, space, 8 * p->width, p->width,
            base, (long long)offset);
    else if (p->op == RED)
        put("    %sred%s.add.u%u [%s+%lld], 1;\n", guard, space, 8 * p->width, base, (long long)offset);
    else if (p->op == STORE && p->width == 16)
        put("    %sst%s.v2.u64 [%s+%lld], {%%e8, %%e8};\n", guard, space, base, (long long)offset);
    else if (p->op == STORE)
        put("    %sst%s.%s [%s+%lld], %%e%u;\n", guard, space, type_of(p->width), base, (long long)offset,
            p->width);
    else if (p->width == 16)
        put("    %sld%s.v2.u64 {%%v8, %%w8}, [%s+%lld];\n", guard, space, base, (long long)offset);
    else
        put("    %sld%s.%s %%v%u, [%s+%lld];\n", guard, space, type_of(p->width), p->width,
            base, (long long)offset);
    put("    .loc 1 1 0\n");
    if (p->op == STORE || p->op == RED)
        put("    mov.u64 %%v, 0;\n");
    else if (p->width == 16)
        put("    or.b64 %%v, %%v8, %%w8;\n");
    else if (p->width == 8)
        put("    mov.u64 %%v, %%v8;\n");
    else
        put("    cvt.u64.u%u %%v, %%v%u;\n", p->width == 1 ? 16 : 8 * p->width, p->width);
}

#define REGISTERS                                                           \
    "    .reg .u64 %p, %q, %o, %h, %out, %d, %a, %v, %x, %v8, %w8, %e8;\n" \
    "    .reg .u32 %t, %bad, %i, %v4, %e4;\n"                             \
    "    .reg .u16 %v2, %v1, %e2, %e1;\n"                                 \
    "    .reg .pred %always, %is, %more;\n"
#define CONSTANTS                                                                 \
    "    mov.u64 %e8, 0x1212121212121212;\n    mov.u32 %e4, 0x12121212;\n" \
    "    mov.u16 %e2, 0x1212;\n    mov.u16 %e1, 0x1212;\n"

#endif
