// SPDX-License-Identifier: MIT
// Video instructions, one at a time, on one warp. test/golden covers what they compute over all their forms;
// these are the other cases: inactive lanes, forms that do not exist, and combinations of .sat, .min and
// parts.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "exec/exec_program.h"
#include "exec/space.h"
#include "exec/video.h"

static void ignore(struct diag_sink *sink, const struct diag *d)
{
}

static int load(const char *instruction, struct exec_program **out)
{
    char text[512];
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
             ".reg .b32 d, a, b, c; .reg .pred p;\n%s;\nret;\n}\n",
             instruction);
    struct diag_sink sink = {ignore, 0, 0};
    struct exec_text t = {"test", str_from(text)};
    static const struct exec_host host;
    return exec_load(&t, 1, &host, &sink, out);
}

// Runs an instruction for the lanes of mask. The last lane's sources are 0. Slots are the decoder's: d may be
// one of a, b, c.
static void execute(const char *instruction, const uint32_t sources[3], uint32_t mask,
                    uint32_t result[EXEC_LANES])
{
    struct exec_program *p;
    assert_int_equal(load(instruction, &p), 0);
    const struct exec_func *f = p->entries[0];
    const struct exec_insn *i = f->code;
    while (i->fn != video_parts && i->fn != video_mad)
        assert_true(++i < f->code + f->ncode);
    struct exec_warp *w = mem_zalloc(1, sizeof *w);
    w->regs = mem_zalloc(1, f->regs_size);
    w->mask = mask;
    const uint32_t slots[] = {i->a, i->b, i->c};
    for (unsigned l = 0; l < EXEC_LANES; l++) {
        for (unsigned k = 0; k < 3; k++)
            ((uint32_t *)(w->regs + slots[k]))[l] = l + 1 < EXEC_LANES ? sources[k] : 0;
    }
    uint32_t before[EXEC_LANES];
    memcpy(before, w->regs + i->d, sizeof before);
    assert_ptr_equal(i->fn(w, i), i + 1);
    memcpy(result, w->regs + i->d, sizeof before);
    for (unsigned l = 0; l < EXEC_LANES; l++)
        assert_true(mask >> l & 1 || result[l] == before[l]);
    mem_free(w->regs);
    mem_free(w);
    exec_program_free(p);
}

static void computes_what_a_gpu_does(void **state)
{
    static const struct {
        const char *instruction;
        uint32_t sources[3], result;
    } rows[] = {
        // as in the manual
        {"vadd.s32.u32.s32.sat d, a.b1, b.h0", {0xff00, 0xfffe, 0}, 0xfd},
        {"vsub.s32.u32.u32.max d, a, b, c", {1, 3, 7}, 7},
        {"vshr.s32.s32.u32.clamp d, a, b", {0x80000000, 99, 0}, 0xffffffff},
        {"vset.u32.s32.lt d.b2, a, b, c", {0, 0xffffffff, 0x11223344}, 0x11003344},
        {"vavrg2.s32.s32.s32 d.h1, a.h12, b.h30, c", {0x7fffffff, 1, 0xffffffff}, 0x4000ffff},
        {"vadd4.s32.s32.u32.sat d.b20, a, b, c", {0x80000000, 0xffffffff, 0x80000001}, 0x807f007f},
        {"vset4.u32.s32.lt.add d.b20, a.b4051, b.b7123, c", {0x00000100, 0x0000003f, 0xffffffef}, 0xfffffff0},
        {"vmad.s32.s32.s32.sat.shr7 d, -a.h0, b, c", {2, 0x40, 0x100}, 1},
        // unlike the manual
        {"vadd.u32.u32.u32.sat d, a, b", {0xffffffff, 1, 0}, 0},
        {"vabsdiff.u32.u32.s32.sat d, a, b", {0xffffffff, 0xffffffff, 0}, 0},
        {"vadd.s32.s32.s32.sat d.b1, a, b, c", {0xffffffff, 0xffffffff, 0x80000000}, 0x80007f00},
        {"vsub.u32.u32.u32.min d, a, b, c", {0x80000000, 0, 0xffffffff}, 0xffffffff},
        {"vshl.u32.s32.u32.sat.clamp d, a, b", {0x80000001, 0xffffffff, 0}, 0xffffffff},
        {"vshl.s32.u32.u32.sat.clamp d, a, b", {2, 32, 0}, 0x80000000},
        {"vshl.s32.s32.u32.sat.clamp d.b1, a, b, c", {0x7fffffff, 1, 0xffffffff}, 0xffffffff},
        {"vadd.u32.u32.u32 d.h1, a, b, c", {0x7fffffff, 1, 0xffffffff}, 0x8000ffff},
        {"vmad.u32.u32.u32.shr7 d, a, b, c", {0, 1, 0xffffffff}, 0xffffffff},
        {"vmad.u32.u32.u32.sat d, a, b, c", {0, 1, 0xffffffff}, 0},
        {"vmad.u32.u32.u32.sat.shr7 d, a, b, c", {0x80000000, 1, 7}, 0xffffffff},
    };
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        uint32_t result[EXEC_LANES];
        execute(rows[k].instruction, rows[k].sources, EXEC_ALL, result);
        if (result[0] != rows[k].result || result[0] != result[EXEC_LANES - 2])
            fail_msg("%s: %08x, not %08x", rows[k].instruction, result[0], rows[k].result);
    }
}

static void leaves_other_lanes_alone(void **state)
{
    static const char *const instructions[] = {"vadd.u32.u32.u32 d, a, b", "vmad.u32.u32.u32 d, a, b, c"};
    static const uint32_t sources[] = {1, 7, 1};
    for (unsigned k = 0; k < 2; k++) {
        uint32_t result[EXEC_LANES];
        execute(instructions[k], sources, 0x80000002, result);
        assert_int_equal(result[1], 8);
        assert_int_not_equal(result[0], 8);
        assert_int_equal(result[EXEC_LANES - 1], 0);
    }
}

static void refuses(void **state)
{
    static const char *const bad[] = {
        "vadd.u32.u32 d, a, b",
        "vadd.u32.u16.u32 d, a, b",
        "vadd.u32.u32.u32 d, a, b, c",
        "vadd.u32.u32.u32 d.b0, a, b",
        "vadd.u32.u32.u32.min d, a, b",
        "vadd.u32.u32.u32.min d.b0, a, b, c",
        "vadd.u32.u32.u32 d, a.b3210, b",
        "vadd.u32.u32.u32 d, -a, b",
        "vshl.u32.u32.s32.clamp d, a, b",
        "vshr.u32.u32.u32 d, a, b",
        "vset.u32.u32 d, a, b",
        "vadd2.u32.u32.u32 d, a, b",
        "vadd2.u32.u32.u32 d, a.h0, b, c",
        "vadd2.u32.u32.u32 d, a.h14, b, c",
        "vadd2.u32.u32.u32 d, a.b3210, b, c",
        "vadd2.u32.u32.u32 d.h2, a, b, c",
        "vadd2.u32.u32.u32 d.h32, a, b, c",
        "vadd4.u32.u32.u32 d.b74, a, b, c",
        "vadd4.u32.u32.u32 d, a.b321, b, c",
        "vadd4.u32.u32.u32 d.h1, a, b, c",
        "vmad.u32.u32.u32 d, a, b",
        "vmad.u32.u32.u32 d.b0, a, b, c",
        "vmad.u32.u32.u32 d, a, b, c.b0",
        "vmad.u32.u32.u32 d, -a, b, -c",
        "vmad.u32.u32.u32.po d, -a, b, c",
    };
    for (unsigned k = 0; k < sizeof bad / sizeof *bad; k++) {
        struct exec_program *p;
        int err = load(bad[k], &p);
        if (err != -ENOTSUP && err != -EINVAL)
            fail_msg("%s: %d", bad[k], err);
    }
}

static int setup(void **state)
{
    return space_init();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_what_a_gpu_does),
        cmocka_unit_test(leaves_other_lanes_alone),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
