// SPDX-License-Identifier: MIT
// What instructions do to registers and memory, according to the rows of ops.def.
#include "ptx/ptx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

// --- one instruction ---------------------------------------------------------------------------------------

static const char before[] =
    ".version 9.0\n.target sm_100a\n.address_size 64\n"
    ".global .align 16 .b8 world[64];\n.global .texref image;\n.global .surfref page;\n"
    ".func (.reg .b32 out) twice(.reg .b32 in);\n"
    ".entry k(.param .b64 arg)\n{\n"
    ".shared .align 16 .b8 tile[256];\n.shared .align 8 .b64 bar;\n"
    ".local .align 16 .b8 own[64];\n"
    ".reg .pred p, q;\n.reg .b16 h, i;\n.reg .b32 a, b, c, r<8>;\n.reg .b64 d, e, m;\n"
    ".reg .f32 x, y, z;\n.reg .f64 u;\n.reg .b128 k;\n.reg .v4 .b32 v;\n"
    "cases: .branchtargets end;\n";
static const char behind[] = "\nend:\nret;\n}\n";

struct one {
    char text[sizeof before + sizeof behind + 300];
    struct ptx_module *m;
    const struct ptx_func *f;
    const struct ptx_stmt *stmt;
    struct out said;  // the accesses so far, as text
};

static const struct ptx_func *find_entry(const struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->nitems; i++)
        if (m->items[i].kind == PTX_ITEM_FUNC && m->items[i].func->is_entry)
            return m->items[i].func;
    return NULL;
}

// Parses one instruction, which must be fully known, with operands that fit.
static void open_one(struct one *o, const char *insn)
{
    struct diag_printer printer;
    diag_printer_init(&printer, 20);
    snprintf(o->text, sizeof o->text, "%s%s%s", before, insn, behind);
    assert_int_equal(ptx_parse(insn, str_from(o->text), &printer.sink, NULL, &o->m), 0);
    assert_int_equal(ptx_verify(o->m, &printer.sink, NULL), 0);
    assert_int_equal(printer.sink.warnings, 0);
    o->f = find_entry(o->m);
    o->stmt = NULL;
    for (uint32_t i = 0; !o->stmt && i < o->f->nstmts; i++)
        if (o->f->stmts[i].kind == PTX_INSN)
            o->stmt = &o->f->stmts[i];
    assert_non_null(o->stmt);
    assert_int_equal(out_to_memory(&o->said), 0);
}

static void close_one(struct one *o)
{
    out_close(&o->said);
    ptx_free(o->m);
}

static void separate(struct one *o, const char *by)
{
    if (o->said.len)
        out_cstr(&o->said, by);
}

// Writes "a:w b:r p:rw"; a write that keeps part of the register, or may not happen, has a '?'.
static void say_access(void *ctx, struct ptx_access access)
{
    struct one *o = ctx;
    separate(o, " ");
    ptx_print_reg(o->m, o->f, access.reg, &o->said);
    out_fmt(&o->said, ":%s%s%s", access.reads ? "r" : "", access.writes ? "w" : "",
            access.partial ? "?" : "");
}

// Writes "global r 4, shared rw! 8": the bytes that a thread moves. '!': atomic; '-': not accessed.
static void say_memory(struct one *o)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(o->f, o->stmt, mem);
    for (unsigned i = 0; i < n; i++) {
        separate(o, ", ");
        out_str(&o->said, ptx_space_name((enum ptx_space)mem[i].space));
        bool touched = mem[i].reads || mem[i].writes;
        out_fmt(&o->said, " %s%s%s%s %u", mem[i].reads ? "r" : "", mem[i].writes ? "w" : "",
                touched ? "" : "-", mem[i].atomic ? "!" : "", mem[i].share);
    }
}

static void expect_said(const struct one *o, const char *insn, const char *expected)
{
    struct str said = {o->said.buf, o->said.len};
    if (!str_eq(said, str_from(expected)))
        fail_msg("%s\n  expected \"%s\"\n  got      \"" STR_FMT "\"", insn, expected, STR_ARG(said));
}

static void expect_roles(const char *insn, const char *regs, const char *memory)
{
    struct one o;
    open_one(&o, insn);
    ptx_stmt_regs(o.stmt, say_access, &o);
    expect_said(&o, insn, regs);
    o.said.len = 0;
    say_memory(&o);
    expect_said(&o, insn, memory);
    close_one(&o);
}

// --- the tables --------------------------------------------------------------------------------------------

static const struct {
    const char *insn, *regs, *memory;
} arithmetic[] = {
    {"add.s32 a, b, c;", "a:w b:r c:r", ""},
    {"add.s32 a, a, 1;", "a:w a:r", ""},
    {"@p add.s32 a, b, c;", "p:r a:w? b:r c:r", ""},
    {"@!q mov.b32 a, 5;", "q:r a:w?", ""},
    {"mad.wide.s32 d, a, b, e;", "d:w a:r b:r e:r", ""},
    {"setp.lt.and.s32 p|q, a, b, !q;", "p:w q:w a:r b:r q:r", ""},
    {"setp.ne.u32 _|p, a, 0;", "p:w a:r", ""},
    {"selp.b32 a, b, c, p;", "a:w b:r c:r p:r", ""},
    {"lop3.or.b32 a|p, a, b, c, 0x80, q;", "a:w p:w a:r b:r c:r q:r", ""},
    {"mov.b64 {a, b}, d;", "a:w b:w d:r", ""},
    {"mov.b64 d, {a, b};", "d:w a:r b:r", ""},
    {"mov.b64 {_, b}, d;", "b:w d:r", ""},
    {"mov.b32 v.y, v.x;", "v:w? v:r", ""},
    {"mov.u32 a, %tid.x;", "a:w", ""},
    {"mov.u64 d, world+4;", "d:w", ""},
    {"cvt.rs.satfinite.e4m3x4.f32 a, {x, y, z, x}, b;", "a:w x:r y:r z:r x:r b:r", ""},
    {"fma.rn.f32.f16 x, h, i, x;", "x:w h:r i:r x:r", ""},
    {"shfl.sync.idx.b32 a|p, b, c, 31, -1;", "a:w p:w b:r c:r", ""},
    {"vote.sync.ballot.b32 a, !p, b;", "a:w p:r b:r", ""},
    {"match.all.sync.b64 a|p, d, b;", "a:w p:w d:r b:r", ""},
    {"elect.sync a|p, b;", "a:w p:w b:r", ""},
    {"vadd.u32.u32.u32 a.h0, b, c, a;", "a:w? b:r c:r a:r", ""},
    {"vmad.s32.s32.s32 a, -b, c.h1, a;", "a:w b:r c:r a:r", ""},
    {"vadd4.u32.u32.u32 a.b10, b.b7654, c, a;", "a:w? b:r c:r a:r", ""},
    {"call (a), twice, (b);", "a:w b:r", ""},
    {"@p bra end;", "p:r", ""},
    {"brx.idx a, cases;", "a:r", ""},
    {"bar.red.popc.u32 a, 0, 64, !p;", "a:w p:r", ""},
    {"prefetch.global.L2 [d+8];", "d:r", "global - 0"},
    {"createpolicy.range.global.L2::evict_last.b64 d, [e], a, b;", "d:w e:r a:r b:r", "global - 0"},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {x, y, z, x}, {r0, r1, r2, r3}, {a, b}, {x, y, z, "
     "x};",
     "x:w y:w z:w x:w r0:r r1:r r2:r r3:r a:r b:r x:r y:r z:r x:r", ""},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {a, b}, d, e, p, 1, 1, 0, 0;",
     "a:rw b:rw d:r e:r p:r", "shared r 0, shared r 0"},
};

static const struct {
    const char *insn, *regs, *memory;
} memory[] = {
    {"ld.global.v4.f32 {x, _, y, z}, [d+16];", "x:w y:w z:w d:r", "global r 16"},
    {"ld.u8 a, [d];", "a:w d:r", "generic r 1"},
    {"ld.param.b64 d, [arg];", "d:w", "param r 8"},
    {"ld.local.b32 a, [own+4];", "a:w", "local r 4"},
    {"ld.shared::cluster.b32 a, [b];", "a:w b:r", "shared::cluster r 4"},
    {"ld.global.L2::cache_hint.b32 a, [d], e;", "a:w d:r e:r", "global r 4"},
    {"@p st.shared.v2.b64 [tile+16], {d, e};", "p:r d:r e:r", "shared w 16"},
    {"st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [a], {r0, r1, r2, r3}, [b];",
     "a:r r0:r r1:r r2:r r3:r b:r", "shared::cluster w 16, shared::cluster rw! 8"},
    {"st.async.mmio.release.sys.global.b32 [d], a;", "d:r a:r", "global w 4"},
    {"st.bulk.weak.shared::cta [a], 64, 0;", "a:r", "shared w 64"},
    {"st.bulk.weak [d], e, 0;", "d:r e:r", "generic w 0"},
    {"atom.global.cas.b64 d, [m], d, e;", "d:w m:r d:r e:r", "global rw! 8"},
    {"atom.shared.add.noftz.f16x2 _, [tile], a;", "a:r", "shared rw! 4"},
    {"atom.global.add.v2.f32 {x, y}, [d], {x, z};", "x:w y:w d:r x:r z:r", "global rw! 8"},
    {"red.relaxed.gpu.global.add.L2::cache_hint.f32 [d], x, e;", "d:r x:r e:r", "global rw! 4"},
    {"red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32 [d], a, [e];", "d:r a:r e:r",
     "generic rw! 4, generic rw! 8"},
    {"multimem.ld_reduce.global.add.acc::f32.v4.f16x2 {r0, r1, r2, r3}, [d];", "r0:w r1:w r2:w r3:w d:r",
     "global r 16"},
    {"discard.global.L2 [d], 128;", "d:r", "global w 128"},
    {"cp.async.cg.shared.global [tile], [d], 16;", "d:r", "shared w 16, global r 16"},
    {"cp.async.ca.shared.global [tile], [d], 8, 4;", "d:r", "shared w 8, global r 4"},
    {"cp.async.ca.shared.global [tile], [d], 8, a;", "d:r a:r", "shared w 8, global r 0"},
    {"cp.async.cg.shared.global [tile], [d], 16, !p;", "d:r p:r", "shared w 16, global r 0"},
    {"cp.async.cg.shared.global.L2::cache_hint [tile], [d], 16, e;", "d:r e:r", "shared w 16, global r 16"},
    {"cp.async.cg.shared.global.L2::cache_hint [tile], [d], 16, a, e;", "d:r a:r e:r",
     "shared w 16, global r 0"},
    {"cp.async.mbarrier.arrive.noinc.shared.b64 [bar];", "", "shared rw! 8"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [d], 128, [bar];", "d:r",
     "shared::cluster w 128, global r 128, shared::cluster rw! 8"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint"
     " [a], [d], b, [c], h, e;",
     "a:r d:r b:r c:r h:r e:r", "shared::cluster w 0, global r 0, shared::cluster rw! 8"},
    {"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [a], [tile], 64, [b];",
     "a:r b:r", "shared::cluster w 64, shared r 64, shared::cluster rw! 8"},
    {"cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [d], [tile], 64, e;", "d:r e:r",
     "global w 64, shared r 64"},
    {"cp.async.bulk.prefetch.L2.global [d], a;", "d:r a:r", "global - 0"},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [a], [tile], 32, "
     "[b];",
     "a:r b:r", "shared::cluster rw! 32, shared r 32, shared::cluster rw! 8"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [d], [tile], 32;", "d:r",
     "global rw! 32, shared r 32"},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [d, {a, b}], "
     "[bar];",
     "d:r a:r b:r", "shared::cluster w 0, global r 0, shared::cluster rw! 8"},
    {"cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [tile], [d, {a, b, c}], "
     "[bar],"
     " {h};",
     "d:r a:r b:r c:r h:r", "shared w 0, global r 0, shared rw! 8"},
    {"cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [d, {a}], [tile];", "d:r a:r",
     "global w 0, shared r 0"},
    {"cp.async.bulk.prefetch.tensor.2d.L2.global.tile [d, {a, b}];", "d:r a:r b:r", "global - 0"},
    {"tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [tile], 1, a;", "a:r", "shared rw! 128"},
    {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [d], [tile], "
     "128;",
     "d:r", "global w 128, shared r 128"},
    {"fence.proxy.tensormap::generic.acquire.gpu [d], 128;", "d:r", "generic - 128"},
    {"mbarrier.init.shared::cta.b64 [bar], a;", "a:r", "shared w 8"},
    {"mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [a], b;", "a:r b:r",
     "shared::cluster rw! 8"},
    {"mbarrier.try_wait.parity.shared::cta.b64 p, [bar], a, b;", "p:w a:r b:r", "shared r 8"},
    {"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [bar];", "",
     "shared w 16, shared rw! 8"},
    {"clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {a, b, c, _}, k;", "a:w b:w c:w k:r", ""},
    {"tex.2d.v4.f32.f32 {x, y, z, x}, [image, {x, y}];", "x:w y:w z:w x:w x:r y:r", "tex r 0"},
    {"tex.level.2d.v4.f32.f32 {x, y, z, x}|p, [d, {x, y}], z;", "x:w y:w z:w x:w p:w d:r x:r y:r z:r",
     "tex r 0"},
    {"txq.width.b32 a, [image];", "a:w", "tex - 0"},
    {"sust.b.2d.v2.b32.trap [page, {a, b}], {b, c};", "a:r b:r b:r c:r", "(surface) w 0"},
    {"wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {r0, r1, r2, r3}, [tile], a;",
     "r0:w r1:w r2:w r3:w a:r", "shared r 16"},
    {"stmatrix.sync.aligned.m8n8.x2.shared.b16 [a], {b, c};", "a:r b:r c:r", "shared w 8"},
    {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 32;", "", "shared w 4"},
    {"tcgen05.ld.sync.aligned.32x32b.x2.b32 {a, b}, [c];", "a:w b:w c:r", "(tensor) r 0"},
    {"tcgen05.mma.cta_group::1.kind::f16 [a], d, e, b, p;", "a:r d:r e:r b:r p:r",
     "(tensor) rw! 0, shared r 0, shared r 0"},
    {"tcgen05.mma.sp.cta_group::1.kind::mxf8f6f4.block_scale [a], [b], d, [c], r0, [r1], [r2], p;",
     "a:r b:r d:r c:r r0:r r1:r r2:r p:r",
     "(tensor) rw! 0, (tensor) r 0, shared r 0, (tensor) r 0, (tensor) r 0, (tensor) r 0"},
    {"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];", "",
     "shared::cluster rw! 8"},
};

static void good_registers_of_arithmetic(void **state)
{
    for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++)
        expect_roles(arithmetic[i].insn, arithmetic[i].regs, arithmetic[i].memory);
}

static void good_memory_that_is_touched(void **state)
{
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        expect_roles(memory[i].insn, memory[i].regs, memory[i].memory);
}

// --- spellings ---------------------------------------------------------------------------------------------

static void expect_row(const char *spelling, const char *row)
{
    struct ptx_form form;
    ptx_form_decode(str_from(spelling), &form);
    if (!str_eq(form.op->name, str_from(row)))
        fail_msg("%s: expected the row \"%s\", got \"" STR_FMT "\"", spelling, row, STR_ARG(form.op->name));
}

static void good_longest_row(void **state)
{
    expect_row("ld.global.f32", "ld");
    expect_row("cp.async.ca.shared.global", "cp.async");
    expect_row("cp.async.bulk.global.shared::cta.bulk_group", "cp.async.bulk");
    expect_row("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", "cp.async.bulk.tensor");
    expect_row("cp.async.bulk.prefetch.tensor.2d.L2.global", "cp.async.bulk.prefetch.tensor");
    expect_row("barrier.cluster.wait.aligned", "barrier.cluster");
    expect_row("barrier.cta.red.popc.u32", "barrier.cta.red");
    expect_row("barrier.cta.sync", "barrier");
    expect_row("tcgen05.wait::ld.sync.aligned", "tcgen05.wait::ld");
    expect_row("tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32", "tcgen05.ld.red");
}

static void bad_row_is_unknown(void **state)
{
    expect_row("", "");
    expect_row("adder.s32", "");
    expect_row("tcgen05", "");
    expect_row("bulk.cp.async", "");
}

static struct ptx_form decode(const char *spelling)
{
    struct ptx_form form;
    ptx_form_decode(str_from(spelling), &form);
    return form;
}

static void good_modifiers(void **state)
{
    struct ptx_form f =
        decode("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes");
    assert_false(f.odd);
    assert_int_equal(f.nspaces, 2);
    assert_int_equal(f.spaces[0], PTX_SPACE_SHARED_CLUSTER);
    assert_int_equal(f.spaces[1], PTX_SPACE_GLOBAL);
    f = decode("ld.param::entry.v4.f32");
    assert_int_equal(f.vec, 4);
    assert_int_equal(f.types[0], PTX_F32);
    assert_int_equal(f.spaces[0], PTX_SPACE_PARAM);
    f = decode("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32");
    assert_int_equal(f.ntypes, 4);
    assert_true(ptx_form_has(&f, PTX_MOD_SHAPE));
    assert_false(decode("tcgen05.ld.sync.aligned.16x32bx2.x1.b32").odd);
}

static void bad_modifier_is_odd(void **state)
{
    assert_true(decode("add.s33").odd);
    assert_true(decode("ld.global.16x32bx").odd);
    assert_true(decode("ld.global.m16n").odd);
    assert_true(decode("ld..b32").odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_registers_of_arithmetic),
        cmocka_unit_test(good_memory_that_is_touched),
        cmocka_unit_test(good_longest_row),
        cmocka_unit_test(bad_row_is_unknown),
        cmocka_unit_test(good_modifiers),
        cmocka_unit_test(bad_modifier_is_odd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
