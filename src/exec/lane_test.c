// SPDX-License-Identifier: MIT
// Every row, without knowing what it computes: instruction sets agree, inactive lanes do not change.
// lane_value_test.c tests the values.
#include <stdio.h>

#include "exec/lane_testing.h"

static void fill_file(const struct form *f, char *file)
{
    for (unsigned k = 0; k < FILE_SIZE / 8; k++) {
        uint64_t word = any_value(k & 1 ? 64 : 32);
        memcpy(file + 8 * k, &word, 8);
    }
    for (unsigned k = 0; k < f->nsources; k++)
        for (int l = 0; l < 32; l++)
            put(file + SOURCES + k * SLOT, f->bits[k], l, any_value(f->bits[k]));
}

// --- every row ---------------------------------------------------------------------------------------------

static unsigned char reached[2048];
static unsigned combinations;

// Runs the chosen instruction set for a mask; results are in *file and *carry.
static void run_once(const struct form *f, char *file, uint32_t mask, uint32_t *carry)
{
    struct exec_warp w = {.mask = mask, .carry = *carry, .regs = file};
    struct exec_insn i[2] = {insn_of(f)};
    assert_ptr_equal(i->fn(&w, i), i + 1);
    assert_int_equal(w.mask, mask);
    *carry = w.carry;
}

// Checks that active lanes are as with a full mask, and everything else is unchanged.
static void check_masked(const struct form *f, const char *before, const char *full, const char *part,
                         uint32_t mask)
{
    char expected[FILE_SIZE];
    memcpy(expected, before, FILE_SIZE);
    bool second = f->ptx.id == PTX_OP_SETP || f->ptx.id == PTX_OP_LOP3;
    for (int l = 0; l < 32; l++) {
        const char *from = mask >> l & 1 ? full : before;
        put(expected + D, f->dest_bits, l, get(from + D, f->dest_bits, l));
        if (f->dest_bits == 128)
            put(expected + D + 256, 64, l, get(from + D + 256, 64, l));
        if (second)
            put(expected + E, 1, l, get(from + E, 1, l));
    }
    if (memcmp(expected, part, FILE_SIZE) != 0)
        fail_msg("%.*s (%s, %s) with mask %x touches what it must not", (int)f->ptx.name.len, f->ptx.name.ptr,
                 lane_name(f->op.row), exec_lanes_name(), mask);
}

enum { EIGHTHS = 8 };  // of the spellings, as unit_cases counts

// Checks that all instruction sets agree, for full and partial masks, in place or not.
static void check_form(const char *spelling)
{
    static _Alignas(64) char before[FILE_SIZE], first[FILE_SIZE], full[FILE_SIZE], part[FILE_SIZE];
    static unsigned tried;
    struct form f;
    if (tried++ % EIGHTHS >= unit_cases(EIGHTHS) || form_try(spelling, &f) || reached[f.op.row] > 40)
        return;
    reached[f.op.row]++;
    combinations++;
    fill_file(&f, before);
    uint32_t carry_in = (uint32_t)any64(), first_carry = 0, mask = (uint32_t)any64() | 1;
    bool have = false;
    for (unsigned k = 0; k < ISAS; k++) {
        if (exec_lanes_force(isas[k]))
            continue;
        memcpy(full, before, FILE_SIZE);
        uint32_t carry = carry_in;
        run_once(&f, full, EXEC_ALL, &carry);
        if (have && (memcmp(full, first, FILE_SIZE) != 0 || carry != first_carry))
            fail_msg("%s (%s): %s differs", spelling, lane_name(f.op.row), isas[k]);
        if (!have)
            memcpy(first, full, FILE_SIZE);
        first_carry = carry;
        have = true;
        memcpy(part, before, FILE_SIZE);
        uint32_t part_carry = carry_in;
        run_once(&f, part, mask, &part_carry);
        check_masked(&f, before, full, part, mask);
        assert_int_equal(part_carry, (carry & mask) | (carry_in & ~mask));
    }
    assert_true(have);
    exec_lanes_force(NULL);
}

static const char *const types[] = {"b16",    "u16",   "s16",   "b32",   "u32",  "s32", "b64",
                                    "u64",    "s64",   "f16",   "f16x2", "bf16", "f32", "f64",
                                    "bf16x2", "u16x2", "s16x2", "b128",  "u8",   "s8",  "e4m3x2",
                                    "e5m2x2", "tf32",  "pred",  "u4",    "s2"};
static const char *const variants[] = {
    "",        ".lo",     ".hi",       ".wide",       ".eq",        ".ne",      ".lt",  ".le",   ".gt",
    ".ge",     ".equ",    ".neu",      ".ltu",        ".leu",       ".gtu",     ".geu", ".num",  ".nan",
    ".l",      ".r",      ".f4e",      ".b4e",        ".rc8",       ".ecl",     ".ecr", ".rc16", ".finite",
    ".number", ".normal", ".infinite", ".notanumber", ".subnormal", ".shiftamt"};
static const char *const modifiers[] = {"",
                                        ".rn",
                                        ".rz",
                                        ".rm",
                                        ".rp",
                                        ".rni",
                                        ".rzi",
                                        ".rmi",
                                        ".rpi",
                                        ".rna",
                                        ".ftz",
                                        ".sat",
                                        ".rn.ftz",
                                        ".rz.ftz",
                                        ".rn.sat",
                                        ".approx",
                                        ".approx.ftz",
                                        ".full",
                                        ".full.ftz",
                                        ".cc",
                                        ".relu",
                                        ".rn.relu",
                                        ".rn.oob",
                                        ".clamp",
                                        ".wrap",
                                        ".and",
                                        ".or",
                                        ".xor",
                                        ".and.ftz",
                                        ".NaN",
                                        ".xorsign.abs",
                                        ".ftz.NaN.xorsign.abs",
                                        ".rn.satfinite",
                                        ".rn.satfinite.relu",
                                        ".rzi.ftz",
                                        ".rmi.ftz.sat"};
static void check_op(const char *op, bool two_types)
{
    char text[100];
    EACH(v, variants)
    EACH(m, modifiers)
    EACH(t, types)
    if (!two_types) {
        snprintf(text, sizeof text, "%s%s%s.%s", op, variants[v], modifiers[m], types[t]);
        check_form(text);
    } else {
        EACH(u, types)
        {
            snprintf(text, sizeof text, "%s%s%s.%s.%s", op, variants[v], modifiers[m], types[t], types[u]);
            check_form(text);
        }
    }
}

static void test_every_row(void **state)
{
    assert_true(lane_rows() <= sizeof reached);
    static const char *const two[] = {"set", "slct", "dp4a", "dp2a", "cvt"};
    for (unsigned op = PTX_OP_ADD; op <= PTX_OP_CVT; op++) {
        bool is_two = false;
        EACH(k, two) is_two |= str_eq(ptx_ops[op].name, str_from(two[k]));
        check_op(ptx_ops[op].name.ptr, is_two);
    }
    check_form("cvt.pack.sat.u8.s32.b32");
    check_form("cvt.pack.sat.s16.s32");
    for (unsigned r = 0; r < lane_rows() && unit_cases(EIGHTHS) == EIGHTHS; r++)
        if (!reached[r] && strncmp(lane_name((uint16_t)r), "resize", 6) != 0 &&
            strncmp(lane_name((uint16_t)r), "extend", 6) != 0 &&
            strncmp(lane_name((uint16_t)r), "special", 7) != 0)
            fail_msg("no spelling leads to row %s", lane_name((uint16_t)r));
    print_message("%u rows, %u combinations\n", lane_rows(), combinations);
}

static void test_pick(void **state)
{
    static const char *const not [] = {
        "add.sat.u32",     "add.b32",           "setp.lt.b32",     "setp.ltu.s32",
        "mov.v2.b32",      "ld.global.u32",     "set.ltu.u32.s32", "set.lt.u32.b32",
        "setp.lo.s32",     "set.eq.u16.f16x2",  "fma.rn.rz.f32",   "mul.s32",
        "mul.wide.s64",    "cvt.rn.rz.f32.f64", "cvt.f32",         "min.ftz.s32",
        "abs.u32",         "shfl.sync.b32",     "lop3.xor.b32",    "bfind.clamp.u32",
        "selp.pred",       "sin.rn.f32",        "add.nosuch.f32",  "cvt.rn.satfinite.e2m1x2.f32",
        "vadd.s32.s32.s32"};
    struct form f;
    EACH(k, not )
    if (form_try(not [k], &f) != -ENOTSUP)
        fail_msg("%s was picked", not [k]);
    assert_int_equal(form_try("setp.lo.u32", &f), 0);
    assert_string_equal(lane_name(f.op.row), "setp_lt_u32");
    assert_int_equal(form_try("div.full.f32", &f), 0);
    assert_string_equal(lane_name(f.op.row), "div_f32");
    assert_string_equal(lane_name(lane_mov(1)), "mov_pred");
    assert_string_equal(lane_name(lane_pred_not()), "not_pred");
    assert_int_equal(exec_lanes_force("sse9"), -EINVAL);
    assert_int_equal(exec_lanes_force("plain"), 0);
    assert_string_equal(exec_lanes_name(), "plain");
    assert_int_equal(exec_lanes_force(NULL), 0);
}

static void check_resize(uint16_t row, unsigned from, unsigned to, unsigned low, bool is_signed)
{
    static _Alignas(64) char file[FILE_SIZE];
    for (int l = 0; l < 32; l++)
        put(file + SOURCES, from, l, any64());
    struct exec_warp w = {.mask = EXEC_ALL, .regs = file};
    struct exec_insn i = {.fn = lane_fn(row), .d = D, .a = SOURCES};
    i.fn(&w, &i);
    for (int l = 0; l < 32; l++) {
        uint64_t x = get(file + SOURCES, from, l) << (64 - low);
        x = is_signed ? (uint64_t)((int64_t)x >> (64 - low)) : x >> (64 - low);
        assert_int_equal(get(file + D, to, l), x << (64 - to) >> (64 - to));
    }
}

static void test_resize(void **state)
{
    static const unsigned bits[] = {8, 16, 32, 64};
    for (int sign = 0; sign < 2; sign++)
        EACH(f, bits)
    EACH(t, bits)
    {
        unsigned from = bits[f], to = bits[t];
        if (from >= 16 && to >= 16)
            check_resize(lane_resize(from, to, sign), from, to, from < to ? from : to, sign);
        if (from < to)
            check_resize(lane_extend(from, to, sign), to, to, from, sign);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
