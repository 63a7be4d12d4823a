// SPDX-License-Identifier: MIT
// Which accesses of a masked variant get code, and whether that changes the pointer's own register.
#include "kfence/kfence.h"
#include "pass/pass.h"
#include "pass/pass_check.h"
#include "ptx/testing.h"

// A kernel with two pointers and a number for parameters, in registers %a, %b and %n; %i is what it loads.
#define KERNEL_BEGIN                                                                                  \
    ".version 8.1\n.target sm_90\n.address_size 64\n"                                                 \
    ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pn)\n{\n"                          \
    ".reg .b64 %a, %b, %n, %i, %p, %q;\n.reg .b32 %x, %y, %s, %t;\n.reg .pred %c;\n"                  \
    ".shared .align 16 .b8 tile[512];\n"                                                              \
    "ld.param.u64 %a, [pa];\nld.param.u64 %b, [pb];\nld.param.u64 %n, [pn];\nmul.lo.u64 %i, %n, 4;\n" \
    "mov.u32 %s, tile;\ncvt.u32.u64 %t, %i;\nadd.u32 %t, %s, %t;\nsetp.eq.u64 %c, %n, 7;\n"
#define KERNEL_END "ret;\n}\n"
#define KERNEL(body) KERNEL_BEGIN body KERNEL_END

// What masks: one of two instructions, in loops the other. What keeps an address in shared memory, what notes
// an alignment, and what notes either of these or that a pointer left.
#define MASK "max.u32"
#define MASK_OFTEN ", 186;"
#define SHARED "max.s32"
#define ALIGN ", 248;"
#define NOTE ", 246;"

static struct pass_result *rewritten(const char *text)
{
    struct testing_sink *t = testing_sink_new();
    const struct pass_request request = {.passes = "fence", .verify = true, .linked = true};
    struct pass_result *r;
    int err = pass_rewrite("test.ptx", str_from(text), &request, &t->sink, &r);
    if (err)
        print_error("%s\n", t->text);
    assert_int_equal(err, 0);
    free(t);
    return r;
}

static unsigned count_in(const struct pass_result *r, const char *entry, const char *what)
{
    unsigned n = 0;
    const char *at = strstr(r->text.ptr, entry);
    const char *end = at ? strstr(at, "\n}") : NULL;
    while (at && (at = strstr(at, what)) && at < end) {
        n++;
        at++;
    }
    return n;
}

static unsigned count(const struct pass_result *r, const char *what)
{
    return count_in(r, ".entry " KFENCE_PREFIX "k(", what);
}

static void check(const char *text, unsigned masks, unsigned shared, unsigned aligns, unsigned calls)
{
    struct pass_result *r = rewritten(text);
    unsigned masked = count(r, MASK) + count(r, MASK_OFTEN);
    if (masked != masks || count(r, SHARED) != shared || count(r, ALIGN) != aligns ||
        count(r, "\tcall") != calls)
        print_error("%s\n", r->text.ptr);
    assert_int_equal(masked, masks);
    assert_int_equal(count(r, SHARED), shared);
    assert_int_equal(count(r, NOTE), masks + shared);
    assert_int_equal(count(r, ALIGN), aligns);
    assert_int_equal(count(r, "\tcall"), calls);
    pass_result_free(r);
}

// The host has looked at parameters. Constants may be added to them.
static void good_parameters(void **state)
{
    check(KERNEL("ld.global.u32 %x, [%a];\nadd.s64 %p, %a, 4096;\nst.global.u32 [%p+4], %x;\n"), 0, 0, 0, 0);
}

static void good_masked_once(void **state)
{
    check(KERNEL("add.s64 %p, %a, %i;\nld.global.u32 %x, [%p];\nld.global.u32 %y, [%p+64];\n"
                 "@%c bra L;\nst.global.u32 [%p], %y;\nL:\nadd.s64 %q, %p, 128;\nst.global.u32 [%q], %x;\n"),
          1, 0, 0, 0);
}

// The access behind the branch is not made on every path, and the pointer changes in the loop.
static void good_paths(void **state)
{
    check(KERNEL("add.s64 %p, %a, %i;\n@%c bra L;\nst.global.u32 [%p], %x;\nL:\nst.global.u32 [%p], %y;\n"),
          2, 0, 0, 0);
    check(KERNEL("add.s64 %p, %a, %i;\nL:\nst.global.u32 [%p], %x;\nadd.s64 %p, %p, 4;\n@%c bra L;\n"), 1, 0,
          0, 0);
    check(KERNEL("mov.b64 %p, %a;\nL:\nst.global.u32 [%p], %x;\nadd.s64 %p, %p, 4;\n@%c bra L;\n"), 1, 0, 0,
          0);
}

// A guard may keep a pointer from being used: then it may be anything, and keeps its value.
static void good_guards(void **state)
{
    struct pass_result *r =
        rewritten(KERNEL("add.s64 %p, %a, %i;\n@%c ld.global.u32 %x, [%p];\nst.global.u64 [%b], %p;\n"));
    assert_int_equal(count(r, MASK), 1);
    assert_int_equal(count(r, "@%c lop3."), 1);
    assert_int_equal(count(r, "mov.b64 %p, {"), 0);
    assert_int_equal(count(r, "[%p]"), 0);
    pass_result_free(r);
    check(KERNEL("add.s64 %p, %a, %i;\n@%c ld.global.u32 %x, [%p];\nld.global.u32 %y, [%p];\n"), 2, 0, 0, 0);
}

// Far offsets would leave the sinks around the partition.
static void good_far(void **state)
{
    check(KERNEL("add.s64 %p, %a, 1048576;\nst.global.u32 [%p], %x;\n"), 1, 0, 0, 0);
    check(KERNEL("add.s64 %p, %a, 524288;\nadd.s64 %p, %p, 524288;\nst.global.u32 [%p], %x;\n"), 0, 0, 0, 0);
    check(KERNEL("mov.b64 %p, %a;\nL:\nadd.s64 %p, %p, 524288;\nst.global.u32 [%p], %x;\n@%c bra L;\n"), 1, 0,
          0, 0);
}

static void good_alignments(void **state)
{
    struct pass_result *r = rewritten(KERNEL("add.s64 %p, %a, %i;\nst.global.u32 [%p], %x;\n"));
    assert_int_equal(count(r, ALIGN), 0);
    assert_int_equal(r->check->kernels[0].full.npairs, 1);
    assert_int_equal(r->check->kernels[0].full.pairs[0].align, 4);
    pass_result_free(r);
    check(KERNEL("add.s64 %p, %a, %n;\nst.global.u32 [%p], %x;\nst.global.u16 [%p+6], 1;\n"), 1, 0, 1, 0);
    check(KERNEL("add.s64 %p, %a, %n;\nst.global.u32 [%p+2], %x;\n"), 1, 0, 1, 0);
    check(KERNEL("st.global.u64 [%a+4], %p;\n"), 0, 0, 1, 0);
}

// A number of 32 bits, times 8, added to a pointer in the partition stays in the sinks around it: that is
// only noted. Two of them, one of more bits, and what is added again and again do not.
static void good_sinks(void **state)
{
    static const struct {
        const char *text;
        unsigned masks, notes;
    } cases[] = {
        {"mul.wide.s32 %p, %x, 8;\nadd.s64 %p, %a, %p;\nld.global.u32 %x, [%p];\nst.global.u32 [%p+4], %x;\n",
         0, 1},
        {"cvt.s64.s32 %p, %x;\nshl.b64 %p, %p, 3;\nsub.s64 %p, %a, %p;\nld.global.u32 %x, [%p];\n", 0, 1},
        {"mad.wide.s32 %p, %x, 4, %a;\n@%c ld.global.u32 %x, [%p];\nst.global.u32 [%p], %x;\n", 0, 2},
        {"mul.wide.u32 %p, %x, 4;\nadd.s64 %p, %p, %a;\nadd.s64 %p, %p, 4096;\nst.global.u32 [%p], %x;\n", 0,
         1},
        {"mul.wide.s32 %p, %x, 16;\nadd.s64 %p, %a, %p;\nst.global.u64 [%p], %i;\n", 1, 1},
        {"mul.wide.u32 %p, %x, 8;\nadd.s64 %p, %a, %p;\nst.global.u32 [%p], %x;\n", 1, 1},
        {"mul.wide.s32 %q, %x, 8;\nadd.s64 %p, %a, %q;\nadd.s64 %p, %p, %q;\nst.global.u32 [%p], %x;\n", 1,
         1},
        {"mul.wide.s32 %q, %x, 8;\nadd.s64 %p, %a, %i;\nst.global.u32 [%p], %x;\nadd.s64 %p, %p, %q;\n"
         "st.global.u32 [%p], %x;\n",
         1, 2},
        {"cvt.u32.u32 %p, %x;\nadd.s64 %p, %a, %p;\nst.global.u8 [%p], %x;\n", 1, 1},
        {"mov.b64 %p, %a;\nL:\nmul.wide.s32 %q, %x, 8;\nadd.s64 %p, %p, %q;\nst.global.u32 [%p], %x;\n"
         "setp.eq.u32 %c, %x, 7;\n@%c bra L;\n",
         1, 1},
        {"mul.wide.s32 %q, %x, 8;\nmov.b64 %p, %a;\nL:\nadd.s64 %p, %p, %q;\n@%c st.global.u32 [%p], %x;\n"
         "@%c bra L;\n",
         1, 1},
        {"mul.wide.s32 %p, %x, 8;\nadd.s64 %p, %n, %p;\nst.global.u32 [%p], %x;\n", 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4096];
        snprintf(text, sizeof text, "%s%s%s", KERNEL_BEGIN, cases[i].text, KERNEL_END);
        struct pass_result *r = rewritten(text);
        unsigned masked = count(r, MASK) + count(r, MASK_OFTEN);
        if (masked != cases[i].masks || count(r, NOTE) != cases[i].notes)
            print_error("case %zu\n%s\n", i, r->text.ptr);
        assert_int_equal(masked, cases[i].masks);
        assert_int_equal(count(r, NOTE), cases[i].notes);
        pass_result_free(r);
    }
}

static void good_shared(void **state)
{
    check(KERNEL("st.shared.u32 [%s], %x;\nst.shared.u32 [%s+508], %x;\n"), 0, 0, 0, 0);
    check(KERNEL("st.shared.u32 [%s+512], %x;\n"), 0, 1, 0, 0);
    // Together, with the least offset first.
    check(KERNEL("st.shared.u32 [%t+8], %x;\nst.shared.u32 [%t], %x;\nst.shared.u32 [%t-16], %x;\n"), 0, 1, 0,
          0);
    check(KERNEL("st.shared.u32 [%t], %x;\nadd.u32 %t, %t, 64;\nst.shared.u32 [%t-64], %x;\n"), 0, 1, 0, 0);
    check(KERNEL("st.shared.u32 [%t], %x;\nadd.u32 %t, %t, 64;\nst.shared.u32 [%t], %x;\n"), 0, 2, 0, 0);
    // A mask that changes the register leads other bytes of it elsewhere, those of the variable too. It does
    // so only where another access profits.
    check(KERNEL("st.shared.u32 [%s+2048], %x;\nst.shared.u32 [%s+508], %x;\n"), 0, 1, 0, 0);
    check(KERNEL("st.shared.u32 [%s+2048], %x;\nst.shared.u32 [%s+508], %x;\nst.shared.u32 [%s+2048], %y;\n"),
          0, 2, 0, 0);
    check(KERNEL("st.shared.u32 [%s+65536], %x;\nst.shared.u32 [%s], %x;\nst.shared.u16 [%s+65538], 1;\n"), 0,
          3, 0, 0);
    check(KERNEL("st.shared.u32 [%t], %x;\nst.shared.u32 [%t+8192], %x;\nst.shared.u32 [%t], %x;\n"), 0, 2, 0,
          0);
    check(KERNEL("st.shared.u32 [%t], %x;\nst.shared.u32 [%t+8192], %x;\nst.shared.u32 [%t], %x;\n"
                 "st.shared.u32 [%t+8192], %x;\n"),
          0, 4, 0, 0);
    // What stands behind a branch need not be made, and what is too far away is compared by itself.
    check(KERNEL("st.shared.u32 [%t], %x;\n@%c bra L;\nst.shared.u32 [%t+4], %x;\nL:\n"), 0, 2, 0, 0);
    check(KERNEL("st.shared.u32 [%t], %x;\nst.shared.u32 [%t+2048], %x;\n"), 0, 2, 0, 0);
    // A sum that is made for one access is compared as the register that it is made of.
    check(
        KERNEL(
            "add.u32 %y, %t, 8;\nst.shared.u32 [%y], %x;\nadd.u32 %y, %t, -12;\nst.shared.u32 [%y+4], %x;\n"),
        0, 1, 0, 0);
    check(
        KERNEL("add.u32 %y, %t, 8;\nadd.u32 %t, %t, 4;\nst.shared.u32 [%y], %x;\nst.shared.u32 [%t], %x;\n"),
        0, 2, 0, 0);
    check(KERNEL("@%c add.u32 %y, %t, 8;\nst.shared.u8 [%y], %x;\nst.shared.u8 [%t], %x;\n"), 0, 2, 0, 0);
    // What stands where branches have met again is made, unless one of them may end the thread or the
    // register changes.
    check(KERNEL("st.shared.u32 [%t], %x;\n@%c bra L;\nadd.u32 %x, %x, 1;\nL:\nst.shared.u32 [%t+4], %x;\n"),
          0, 1, 0, 0);
    check(KERNEL("st.shared.u32 [%t], %x;\n@%c bra L;\n@%c bra M;\nL:\nadd.u32 %x, %x, 1;\nM:\n"
                 "st.shared.u32 [%t+4], %x;\n"),
          0, 1, 0, 0);
    check(KERNEL("st.shared.u32 [%t], %x;\n@%c bra L;\n@%c bra M;\nst.shared.u32 [%t+8], %x;\nL:\nret;\nM:\n"
                 "st.shared.u32 [%t+4], %x;\n"),
          0, 3, 0, 0);
    check(KERNEL("st.shared.u32 [%t], %x;\n@%c bra L;\n@%c exit;\nL:\nst.shared.u32 [%t+4], %x;\n"), 0, 2, 0,
          0);
    check(KERNEL("st.shared.u32 [%t], %x;\n@%c bra L;\nadd.u32 %t, %t, 4;\nL:\nst.shared.u32 [%t+4], %x;\n"),
          0, 2, 0, 0);
    check(KERNEL("st.shared.u32 [%t], %x;\nL:\nadd.u32 %x, %x, 1;\n@%c bra L;\nst.shared.u32 [%t+4], %x;\n"),
          0, 2, 0, 0);
    check(KERNEL("@%c st.shared.u32 [%t], %x;\nst.shared.u32 [%t], %x;\n"), 0, 2, 0, 0);
    // A name with a number is certain to be inside, but not aligned.
    check(KERNEL("st.shared.u32 [%t], %x;\nst.shared.u32 [tile+4], %x;\n"), 0, 1, 0, 0);
    check(KERNEL("st.shared.u32 [%t], %x;\nst.shared.u32 [tile+2], %x;\n"), 0, 1, 0, 1);
}

#define DYNAMIC(align, body)                                \
    ".version 8.1\n.target sm_90\n.address_size 64\n"       \
    ".extern .shared .align " align " .b8 more[];\n"        \
    ".visible .entry k(.param .u64 pa)\n{\n.reg .b32 %x;\n" \
    ".reg .pred %c;\n" body "ret;\n}\n"

// A fixed place behind the array of the launch's dynamic bytes is compared with their end, and nothing is
// called, unless the array need not be aligned as the access is, or the place is in front of it.
static void good_fixed(void **state)
{
    struct pass_result *r = rewritten(DYNAMIC("16", "ld.shared.u32 %x, [more+64];\n"
                                                    "@%c st.shared.v4.u32 [more+16], {%x, %x, %x, %x};\n"));
    assert_int_equal(count(r, "min.s32"), 2);
    assert_int_equal(count(r, NOTE), 2);
    assert_int_equal(count(r, "@%c lop3."), 1);
    assert_int_equal(count(r, "[more"), 0);
    assert_int_equal(count(r, "\tcall"), 0);
    pass_result_free(r);
    static const char *const others[] = {
        DYNAMIC("1", "ld.shared.u32 %x, [more+64];\n"),
        DYNAMIC("16", "ld.shared.u32 %x, [more+2];\n"),
        DYNAMIC("16", "ld.shared.u32 %x, [more-4];\n"),
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        r = rewritten(others[i]);
        assert_non_null(strstr(r->text.ptr, "call " EDIT_PREFIX "fence_shared, (%"));
        assert_int_equal(count(r, NOTE), 0);
        pass_result_free(r);
    }
}

#define UNION(body)                                                                                 \
    ".version 8.1\n.target sm_90\n.address_size 64\n"                                               \
    ".visible .entry k(.param .align 8 .b8 ps[16], .param .u64 pa)\n{\n"                            \
    ".reg .b64 %p, %a;\n.reg .b32 %x, %y;\nld.param.u64 %p, [ps+8];\nld.param.u64 %a, [pa];\n" body \
    "ld.global.u32 %x, [%p];\nadd.s32 %x, %x, %y;\nst.global.u32 [%a], %x;\nret;\n}\n"

static void check_union(const char *text, unsigned pairs, unsigned calls)
{
    struct pass_result *r = rewritten(text);
    assert_int_equal(r->check->kernels[0].full.npairs, pairs);
    assert_int_equal(r->check->kernels[0].full.pairs[pairs - 1].offset, 16);
    assert_int_equal(count(r, "\tcall"), calls);
    pass_result_free(r);
}

// What may be a pointer or a number, in a struct, keeps no launch from the variant: it is looked up. The
// lower half of a pointer may also say how it is aligned.
static void good_number_too(void **state)
{
    check_union(UNION("mov.b32 %y, 1;\n"), 2, 0);
    check_union(UNION("cvt.u32.u64 %y, %p;\n"), 1, 1);
    check_union(UNION("cvt.u32.u64 %y, %p;\nand.b32 %y, %y, 15;\n"), 2, 0);
}

// Threads that end before anything can be noted do so as before; others look at the note, also in a loop.
static void good_exits(void **state)
{
    struct pass_result *r = rewritten(
        KERNEL("@%c bra E;\nadd.s64 %p, %a, %i;\nL:\nst.global.u32 [%p], %x;\n@%c bra E;\n@%c bra L;\n"
               "E:\n"));
    assert_int_equal(count(r, "@%c ret;"), 1);
    assert_int_equal(count(r, "setp.ne.or.b32"), 2);
    pass_result_free(r);
    r = rewritten(KERNEL("add.s64 %p, %a, %i;\nbra M;\nL:\n@%c exit;\n@!%c bra E;\nst.global.u32 [%p], %x;\n"
                         "M:\n@%c bra L;\nE:\n"));
    assert_int_equal(count(r, "ret;"), 1);
    assert_int_equal(count(r, "setp.ne.or.b32"), 3);
    pass_result_free(r);
    r = rewritten(
        KERNEL("add.s64 %p, %a, %i;\n@%c exit;\n@!%c bra E;\nbra.uni E;\nE:\nst.global.u32 [%p], %x;\n"));
    assert_int_equal(count(r, "ret;"), 1);
    assert_int_equal(count(r, "@%c exit;"), 1);
    assert_int_equal(count(r, "setp.ne.or.b32"), 2);
    pass_result_free(r);
}

// What a pointer from memory is compared with is looked at once for accesses of it that stand together; each
// is still looked up if that does not hold.
static void good_groups(void **state)
{
    struct pass_result *r = rewritten(
        KERNEL("ld.global.u64 %p, [%a];\nst.global.u32 [%p], %x;\nst.global.u32 [%p+4], %x;\n@%c bra L;\n"
               "st.global.u32 [%p+8], %x;\nL:\n"));
    assert_int_equal(count(r, "\tcall"), 3);
    assert_int_equal(count(r, "setp.eq.b32"), 1);
    pass_result_free(r);
    r = rewritten(KERNEL("ld.global.u64 %p, [%a];\nst.global.u32 [%p], %x;\nadd.s64 %p, %p, 4;\n"
                         "st.global.u32 [%p], %x;\n"));
    assert_int_equal(count(r, "\tcall"), 2);
    assert_int_equal(count(r, "setp.eq.b32"), 0);
    pass_result_free(r);
    // What stands between two of a group, but is too far away from them, is not of it.
    r = rewritten(KERNEL("ld.global.u64 %p, [%a];\nst.global.u32 [%p], %x;\nst.global.u64 [%p-4096], %i;\n"
                         "st.global.u16 [%p+4], 1;\n"));
    assert_int_equal(count(r, "setp.eq.b32"), 1);
    assert_int_equal(count(r, "setp.eq.and.b32"), 1);
    assert_int_equal(count(r, "@%__moat_"), 2);
    pass_result_free(r);
}

// Pointers from memory are looked up.
static void good_loaded(void **state)
{
    check(KERNEL("ld.global.u64 %p, [%a];\nst.global.u32 [%p], %x;\n"), 0, 0, 0, 1);
}

static const char rest[] = ".entry " KFENCE_REST_PREFIX "k(";

// A proof may bound the access at %p, and the others' masks change no register that it may speak of.
static void good_rest(void **state)
{
    struct pass_result *r = rewritten(
        KERNEL("add.s64 %p, %a, %i;\nld.global.u64 %q, [%p];\nshl.b64 %q, %q, 2;\nadd.s64 %q, %b, %q;\n"
               "st.global.u32 [%q], %x;\nst.global.u32 [%q+4], %x;\n"));
    assert_int_equal(count_in(r, rest, "[%p]"), 1);
    assert_int_equal(count_in(r, rest, MASK), 1);
    assert_int_equal(count_in(r, rest, "[%q"), 2);
    assert_int_equal(r->check->kernels[0].rest.npairs, 1);
    assert_int_equal(r->check->kernels[0].rest.pairs[0].offset, 8);
    pass_result_free(r);
}

// A guard, an address of a proved access or a branch follows from the pointer that is masked.
static void good_rest_keeps(void **state)
{
    static const char *const follows[] = {
        "setp.lt.u64 %c, %q, %b;\n@%c ld.global.u32 %x, [%a];\n",
        "sub.s64 %i, %q, %b;\nand.b64 %i, %i, 4095;\nadd.s64 %p, %a, %i;\nst.global.u32 [%p], %x;\n",
        "setp.ne.u64 %c, %q, %b;\n@%c bra L;\nst.global.u32 [%a], %x;\nL:\n",
    };
    for (size_t i = 0; i < sizeof follows / sizeof *follows; i++) {
        char text[4096];
        snprintf(text, sizeof text, "%s%s%s%s", KERNEL_BEGIN,
                 "ld.global.u64 %q, [%a];\nshl.b64 %q, %q, 2;\nadd.s64 %q, %b, %q;\nst.global.u32 [%q], %x;\n"
                 "st.global.u32 [%q+4], %x;\n",
                 follows[i], KERNEL_END);
        struct pass_result *r = rewritten(text);
        assert_int_equal(count_in(r, rest, MASK), 2);
        assert_int_equal(count_in(r, rest, "[%q"), 0);
        pass_result_free(r);
    }
}

#define VARIABLE(of, body)                                                                    \
    ".version 8.1\n.target sm_90\n.address_size 64\n" of                                      \
    ".visible .entry k(.param .u64 pn)\n{\n.reg .b64 %n, %v, %p;\n.reg .b32 %x;\n.reg .pred " \
    "%c;\nld.param.u64 %n, [pn];\nshl.b64 %n, %n, 4;\nmov.u64 %v, v;\n" body "ret;\n}\n"
#define OWN ".global .align 16 .b8 v[256];\n"

static void check_variable(const char *text, unsigned compared, unsigned calls)
{
    struct pass_result *r = rewritten(text);
    assert_int_equal(count(r, "setp.gt.or.u64"), compared);
    assert_int_equal(count(r, "\tcall"), calls);
    pass_result_free(r);
}

// Variables are compared with their bytes; extern ones may have others elsewhere.
static void good_variables(void **state)
{
    check_variable(VARIABLE(OWN, "add.s64 %p, %v, %n;\nst.global.u32 [%p], %x;\n"), 1, 0);
    check_variable(VARIABLE(OWN, "add.s64 %p, %v, %n;\nst.global.u32 [%p+8], %x;\nst.global.u32 [%p], %x;\n"
                                 "ld.global.u32 %x, [%p+12];\n"),
                   1, 0);
    check_variable(VARIABLE(OWN, "add.s64 %p, %v, %n;\nst.global.u32 [%p+8], %x;\n@%c bra L;\n"
                                 "ld.global.u32 %x, [%p+16];\nL:\n"),
                   2, 0);
    check_variable(
        VARIABLE(OWN, "add.s64 %p, %v, %n;\nst.global.u32 [%p], %x;\nst.global.u32 [%p+256], %x;\n"), 2, 0);
    check_variable(VARIABLE(OWN, "add.s64 %p, %v, 128;\nst.global.u32 [%p+124], %x;\n"), 0, 0);
    check_variable(VARIABLE(OWN, "add.s64 %p, %v, 128;\nst.global.u32 [%p+128], %x;\n"), 1, 0);
    struct pass_result *r =
        rewritten(VARIABLE(".extern " OWN, "add.s64 %p, %v, %n;\nst.global.u32 [%p], %x;\n"));
    assert_non_null(strstr(r->text.ptr, "call (%"));
    assert_int_equal(count(r, "setp.gt.or.u64"), 0);
    pass_result_free(r);
}

// What a register is changed to is a multiple of what it is known to be one of, or of what the variable is
// one of, since other accesses by it are known to be aligned. It is not changed if the variable has no room
// for that, or no other access profits.
static void good_aligned_elsewhere(void **state)
{
    struct pass_result *r = rewritten(
        KERNEL("st.shared.u16 [%t-2], %x;\n@%c bra L;\nadd.u32 %y, %x, 1;\nL:\nst.shared.u16 [%t-2], %x;\n"));
    assert_int_equal(count(r, "mov.b32 %t, "), 1);
    assert_int_equal(count(r, ", -4;\n"), 1);
    assert_int_equal(count(r, ", -2;\n"), 0);
    pass_result_free(r);
    r = rewritten(KERNEL("st.shared.u16 [%t-2], %x;\n@%c bra L;\nst.shared.u32 [%t+20], %x;\nL:\n"));
    assert_int_equal(count(r, "mov.b32 %t, "), 0);
    assert_int_equal(count(r, ", -2;\n"), 1);
    assert_int_equal(count(r, ", -4;\n"), 1);
    pass_result_free(r);
    r = rewritten(
        VARIABLE(OWN, "add.s64 %p, %v, %n;\nst.global.u32 [%p+4], %x;\nst.global.u64 [%p+16], %n;\n"));
    assert_int_equal(count(r, "setp.gt.or.u64"), 1);
    assert_int_equal(count(r, ", 4;\n\tselp.b64 %p,"), 1);
    pass_result_free(r);
    check_variable(VARIABLE(".global .align 16 .b8 v[20];\n",
                            "add.s64 %p, %v, %n;\nst.global.u32 [%p+4], %x;\nst.global.u64 [%p+16], %n;\n"),
                   2, 0);
    // The variable is not aligned enough to stand in for the address: there is no such variant.
    check_variable(VARIABLE(".global .align 4 .b8 v[64];\n", "add.s64 %p, %v, %n;\nand.b64 %p, %p, -16;\n"
                                                             "st.global.u64 [%p], %n;\n"),
                   0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_parameters),
        cmocka_unit_test(good_masked_once),
        cmocka_unit_test(good_paths),
        cmocka_unit_test(good_guards),
        cmocka_unit_test(good_far),
        cmocka_unit_test(good_alignments),
        cmocka_unit_test(good_sinks),
        cmocka_unit_test(good_exits),
        cmocka_unit_test(good_groups),
        cmocka_unit_test(good_shared),
        cmocka_unit_test(good_loaded),
        cmocka_unit_test(good_rest),
        cmocka_unit_test(good_rest_keeps),
        cmocka_unit_test(good_variables),
        cmocka_unit_test(good_aligned_elsewhere),
        cmocka_unit_test(good_fixed),
        cmocka_unit_test(good_number_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
