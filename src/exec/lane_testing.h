// SPDX-License-Identifier: MIT
// Shared by the tests of rows: from a spelling to its row, operands in slots, interesting values.
#ifndef MOAT_EXEC_LANE_TESTING_H
#define MOAT_EXEC_LANE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "exec/exec.h"
#include "exec/lane.h"

static const char *const isas[] = {"plain", "avx2", "avx512"};
enum { ISAS = sizeof isas / sizeof *isas };
#define EACH(item, list) for (size_t item = 0; item < sizeof list / sizeof *list; item++)

static uint64_t seed = 1;

static inline uint64_t any64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545F4914F6CDD1Du;
}

// --- running a form ----------------------------------------------------------------------------------------

enum { D = 0, E = 1024, SOURCES = 2048, SLOT = 1024, FILE_SIZE = 8192 };

struct form {
    struct ptx_form ptx;
    struct lane_op op;
    unsigned nsources, dest_bits;  // 1: a predicate
    unsigned bits[4];              // bits of the sources
};

static inline unsigned bits_of(const struct ptx_form *f, unsigned rule)
{
    unsigned type0 = ptx_type_bits((enum ptx_type)f->types[0]),
             type1 = ptx_type_bits((enum ptx_type)f->types[1]);
    switch (f->rules[rule].fit) {
    case PTX_FIT_PRED: return 1;
    case PTX_FIT_TYPE0:
    case PTX_FIT_LOOSE0: return type0 == 8 ? 16 : type0;
    case PTX_FIT_TYPE1:
    case PTX_FIT_LOOSE1: return type1 == 8 ? 16 : type1;
    case PTX_FIT_WIDE: return ptx_form_has(f, PTX_MOD_WIDE) ? 2 * type0 : type0;
    case PTX_FIT_64: return 64;
    default: return 32;
    }
}

// Returns how many sources the spelling takes.
static inline unsigned sources_of(const struct ptx_form *f)
{
    bool logic = ptx_form_has(f, PTX_MOD_AND) || ptx_form_has(f, PTX_MOD_OR) || ptx_form_has(f, PTX_MOD_XOR);
    unsigned n = f->nneeded - 1u;
    if (f->id == PTX_OP_LOP3)
        return 3;
    if ((f->id == PTX_OP_SET || f->id == PTX_OP_SETP) && logic)
        return 3;
    if (f->id == PTX_OP_CVT && f->ntypes > 1 && f->types[1] == PTX_F32 &&
        ptx_type_class((enum ptx_type)f->types[0]) == PTX_CLASS_PACKED)
        return 2;
    return f->id == PTX_OP_CVT_PACK && f->ntypes == 3 ? 3 : n;
}

static inline int form_try(const char *spelling, struct form *f)
{
    *f = (struct form){0};
    ptx_form_decode(str_from(spelling), &f->ptx);
    if (!f->ptx.nneeded)
        return -ENOTSUP;
    f->nsources = sources_of(&f->ptx);
    f->dest_bits = bits_of(&f->ptx, 0);
    for (unsigned k = 0; k < f->nsources && k < 4; k++)
        f->bits[k] = bits_of(&f->ptx, k + 1);
    return lane_pick(&f->ptx, f->nsources, &f->op);
}

static inline struct exec_insn insn_of(const struct form *f)
{
    struct exec_insn i = {.fn = lane_fn(f->op.row), .d = D, .e = E, .flags = f->op.flags};
    i.a = SOURCES;
    i.b = SOURCES + SLOT;
    i.c = SOURCES + 2 * SLOT;
    if (f->ptx.id == PTX_OP_BFI)
        i.e = SOURCES + 3 * SLOT;
    if (f->ptx.id == PTX_OP_LOP3)
        i.imm = 0x1d | (uint64_t)(SOURCES + 3 * SLOT) << 32;
    return i;
}

static inline void put(char *slot, unsigned bits, int lane, uint64_t value)
{
    if (bits == 1) {
        uint32_t *p = (uint32_t *)(void *)slot;
        *p = (*p & ~(1u << lane)) | (uint32_t)(value & 1) << lane;
    } else if (bits == 16) {
        ((uint16_t *)(void *)slot)[lane] = (uint16_t)value;
    } else if (bits == 32) {
        ((uint32_t *)(void *)slot)[lane] = (uint32_t)value;
    } else {
        ((uint64_t *)(void *)slot)[lane] = value;
    }
}

static inline uint64_t get(const char *slot, unsigned bits, int lane)
{
    const void *p = slot;
    switch (bits) {
    case 1: return *(const uint32_t *)p >> lane & 1;
    case 16: return ((const uint16_t *)p)[lane];
    case 32: return ((const uint32_t *)p)[lane];
    default: return ((const uint64_t *)p)[lane];
    }
}

// --- values worth trying -----------------------------------------------------------------------------------

static const uint32_t edges32[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x00000001, 0x80000001,
                                   0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                                   0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x7fffffff, 0x3f000000,
                                   0x40200000, 0xc0200000, 0x4f000000, 0xcf000000, 0x4f800000, 0x477ff000,
                                   0x20000001, 0x1ffffffe, 0x0000001f, 0x00000020, 0x0000003f, 0x00000040,
                                   0x000000ff, 0x00000100, 0x7ff77ff7, 0x3bff0400, 0x80007fff};
static const uint64_t edges64[] = {0,
                                   UINT64_C(1) << 63,
                                   1,
                                   UINT64_MAX,
                                   INT64_MAX,
                                   0x3ff0000000000000,
                                   0xbfe0000000000000,
                                   0x7ff0000000000000,
                                   0xfff0000000000000,
                                   0x7ff8000000000000,
                                   0x7ff0000000000001,
                                   0xfff8123456789abc,
                                   0x0010000000000000,
                                   0x800fffffffffffff,
                                   0x7fefffffffffffff,
                                   0x41dfffffffc00000,
                                   0xc1e0000000000000,
                                   0x43e0000000000000,
                                   0x380fffffe0000000,
                                   0x4004000000000000,
                                   0xffffffff,
                                   0x80000000};

static inline uint64_t any_value(unsigned bits)
{
    uint64_t how = any64() >> 60;
    if (how < 5)
        return bits == 64 ? edges64[any64() % (sizeof edges64 / sizeof *edges64)]
                          : edges32[any64() % (sizeof edges32 / sizeof *edges32)] >>
                                (how == 1 && bits == 16 ? 16 : 0);
    if (how < 7)
        return any64() >> any64() % 64;
    if (how < 10 && bits == 32)  // a moderate f32
        return (any64() & 0x807fffff) | (0x3a000000 + (any64() % 20 << 23));
    if (how < 10 && bits == 64)
        return (any64() & 0x800fffffffffffff) | (1003 + any64() % 40) << 52;
    return any64();
}

#endif
