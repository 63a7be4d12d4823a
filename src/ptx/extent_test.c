// SPDX-License-Identifier: MIT
// The extents of accesses. The instructions below are those that ptxas accepts, where there is one to ask;
// and the extents in the texts of test/ptx/forms are compared with the number of registers that an access
// moves.
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ptx/testing.h"

// --- instructions ------------------------------------------------------------------------------------------

enum arch { SM_90A, SM_100A, ARCHS };
static const char *const archs[ARCHS] = {"sm_90a", "sm_100a"};

static const char before[] =
    ".address_size 64\n"
    ".global .align 128 .b8 world[4096];\n.global .texref image;\n"
    ".visible .entry k(.param .b64 arg)\n{\n"
    ".shared .align 128 .b8 tile[4096];\n.shared .align 8 .b64 bar;\n"
    ".reg .pred p, q;\n.reg .b16 h;\n.reg .b32 a, b, c, r<8>;\n.reg .b64 d, e, m, w<8>;\n"
    ".reg .f32 x, y, z, f<8>;\n.reg .f64 u, v;\n"
    "ld.param.b64 d, [arg];\nld.global.b64 e, [d];\nld.global.b32 a, [d+8];\nld.global.b32 b, [d+12];\n"
    "mov.b64 m, arg;\nmov.b32 c, tile;\nsetp.ne.u32 p, a, b;\n"
    "mov.b32 r0, a;\nmov.b32 r1, a;\nmov.b32 r2, a;\nmov.b32 r3, a;\nmov.b32 r4, a;\nmov.b32 r5, a;\n"
    "mov.b32 r6, a;\nmov.b32 r7, a;\nmov.b32 f0, a;\nmov.b32 f1, a;\nmov.b32 f2, a;\nmov.b32 f3, a;\n"
    "mov.b64 u, e;\nmov.b64 v, e;\nmov.b32 x, a;\nmov.b32 y, a;\nmov.b16 h, 1;\n";
enum { FIRST = 24 };  // instructions before those of the tables

// The expected text: "EXTENT space access", then the fields of the extent. Several accesses are separated by
// a comma.
struct row {
    enum arch arch;
    const char *insn, *expected;
};

static const struct row plain[] = {
    {SM_90A, "ld.global.v4.f32 {x, y, z, x}, [d+16];", "plain global r bytes=16 share=16"},
    {SM_90A, "atom.shared.cas.b64 e, [tile], e, e;", "plain shared rw! bytes=8 share=8"},
    {SM_90A, "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [c], {a, b}, [bar];",
     "plain shared::cluster w bytes=8 share=8, plain shared::cluster rw! bytes=8 share=8"},
    {SM_90A, "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [c], a, [bar];",
     "plain shared::cluster rw! bytes=4 share=4, plain shared::cluster rw! bytes=8 share=8"},
    {SM_90A, "multimem.ld_reduce.relaxed.gpu.global.add.v4.f32 {f0, f1, f2, f3}, [d];",
     "plain global r bytes=16 share=16"},
    {SM_90A, "multimem.red.relaxed.gpu.global.add.f32 [d], x;", "plain global rw! bytes=4 share=4"},
    {SM_90A, "discard.global.L2 [d], 128;", "plain global w bytes=128 share=128"},
    {SM_90A, "cp.async.cg.shared.global [tile], [d], 16;",
     "plain shared w bytes=16 share=16, plain global r bytes=16 share=16"},
    {SM_90A, "cp.async.ca.shared.global [tile], [d], 8, 4;",
     "plain shared w bytes=8 share=8, plain global r bytes=4 share=4"},
    {SM_90A, "cp.async.cg.shared.global [tile], [d], 16, 0;",
     "plain shared w bytes=16 share=16, plain global r bytes=0 share=0"},
    {SM_90A, "cp.async.cg.shared.global [tile], [d], 16, p;",
     "plain shared w bytes=16 share=16, plain global r bytes=16 share=0 unless=p"},
    {SM_90A, "cp.async.cg.shared.global.L2::cache_hint [tile], [d], 16, !p, e;",
     "plain shared w bytes=16 share=16, plain global r bytes=16 share=0 unless=!p"},
    {SM_90A, "cp.async.cg.shared.global.L2::cache_hint [tile], [d], 16, e;",
     "plain shared w bytes=16 share=16, plain global r bytes=16 share=16"},
    {SM_90A, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [d], 256, [bar];",
     "plain shared::cluster w bytes=256 share=256, plain global r bytes=256 share=256,"
     " plain shared::cluster rw! bytes=8 share=8"},
    {SM_90A,
     "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [d], [tile],"
     " 128;",
     "plain global w warp bytes=128 share=128, plain shared r warp bytes=128 share=128"},
    {SM_100A, "st.bulk.weak.shared::cta [c], 64, 0;", "plain shared w bytes=64 share=64"},
};

static const struct row counted[] = {
    {SM_90A, "cp.async.ca.shared.global [tile], [d], 8, b;",
     "plain shared w bytes=8 share=8, counted global r bytes=8 share=0 size=b"},
    {SM_90A, "cp.async.cg.shared.global.L2::cache_hint [tile], [d], 16, b, e;",
     "plain shared w bytes=16 share=16, counted global r bytes=16 share=0 size=b"},
    {SM_90A, "cp.async.bulk.global.shared::cta.bulk_group [d], [tile], b;",
     "counted global w bytes=0 share=0 size=b, counted shared r bytes=0 share=0 size=b"},
    {SM_90A,
     "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [c], [tile], b,"
     " [bar];",
     "counted shared::cluster rw! bytes=0 share=0 size=b, counted shared r bytes=0 share=0 size=b,"
     " plain shared::cluster rw! bytes=8 share=8"},
    {SM_100A, "st.bulk.weak.shared::cta [c], e, 0;", "counted shared w bytes=0 share=0 size=e"},
};

// Nothing is read or written.
static const struct row spoken_of[] = {
    {SM_90A, "prefetch.global.L2 [d];", "unsized global - share=0"},
    {SM_90A, "prefetchu.L1 [d];", "unsized generic - share=0"},
    {SM_90A, "applypriority.global.L2::evict_normal [d], 128;", "plain global - bytes=128 share=128"},
    {SM_90A, "cp.async.bulk.prefetch.L2.global [d], b;", "counted global - bytes=0 share=0 size=b"},
    {SM_90A, "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [m, {a, b}];", "tensor global - share=0 here"},
    {SM_90A, "createpolicy.range.global.L2::evict_last.b64 e, [d], a, b;",
     "counted global - bytes=0 share=0 size=b"},
    {SM_90A, "fence.proxy.tensormap::generic.acquire.gpu [d], 128;", "plain generic - bytes=128 share=128"},
};

static const struct row rows[] = {
    {SM_90A, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [c];",
     "rows shared r warp bytes=16 share=4 lanes=8"},
    {SM_90A, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {r0, r1}, [c];",
     "rows shared r warp bytes=16 share=8 lanes=16"},
    {SM_90A, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r0, r1, r2, r3}, [tile+16];",
     "rows shared r warp bytes=16 share=16 lanes=32"},
    {SM_90A, "stmatrix.sync.aligned.m8n8.x2.shared.b16 [c], {r0, r1};",
     "rows shared w warp bytes=16 share=8 lanes=16"},
    {SM_100A, "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {r0, r1}, [c];",
     "rows shared r warp bytes=16 share=8 lanes=16"},
    {SM_100A, "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b4x16_p64 {r0, r1, r2, r3}, [c];",
     "rows shared r warp bytes=16 share=16 lanes=32 padding=8"},
    {SM_100A, "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {r0}, [c];",
     "rows shared r warp bytes=16 share=4 lanes=8 padding=4"},
    {SM_100A, "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {r0, r1, r2, r3}, [c];",
     "rows shared r warp bytes=16 share=16 lanes=32 padding=8"},
    {SM_100A, "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [c], {r0, r1, r2, r3};",
     "rows shared w warp bytes=16 share=16 lanes=32"},
};

static const struct row tiles[] = {
    {SM_90A, "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {r0, r1, r2, r3, r4, r5, r6, r7}, [d];",
     "tile global r warp bytes=512 share=16 lines=16 length=16 bits=16"},
    {SM_90A, "wmma.load.a.sync.aligned.row.m8n32k16.shared.f16 {r0, r1, r2, r3, r4, r5, r6, r7}, [tile], 24;",
     "tile shared r warp bytes=368 share=8 lines=8 length=16 bits=16 stride=24"},
    {SM_90A, "wmma.load.a.sync.aligned.col.m8n32k16.shared.f16 {r0, r1, r2, r3, r4, r5, r6, r7}, [tile], b;",
     "tile shared r warp bytes=0 share=8 lines=16 length=8 bits=16 stride=b"},
    {SM_90A, "wmma.load.b.sync.aligned.row.m8n32k16.shared.f16 {r0, r1, r2, r3, r4, r5, r6, r7}, [tile];",
     "tile shared r warp bytes=1024 share=32 lines=16 length=32 bits=16"},
    {SM_90A, "wmma.load.b.sync.aligned.col.m8n32k16.shared.f16 {r0, r1, r2, r3, r4, r5, r6, r7}, [tile];",
     "tile shared r warp bytes=1024 share=32 lines=32 length=16 bits=16"},
    {SM_90A, "wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {r0, r1, r2, r3}, [d], 16;",
     "tile global r warp bytes=992 share=16 lines=16 length=8 bits=32 stride=16"},
    {SM_90A, "wmma.load.b.sync.aligned.col.m8n8k32.global.s4 {r0}, [d], 64;",
     "tile global r warp bytes=240 share=4 lines=8 length=32 bits=4 stride=64"},
    {SM_90A, "wmma.load.a.sync.aligned.row.m8n8k128.global.b1 {r0}, [d], 256;",
     "tile global r warp bytes=240 share=4 lines=8 length=128 bits=1 stride=256"},
    {SM_90A, "wmma.load.c.sync.aligned.row.m8n8k4.global.f64 {u, v}, [d];",
     "tile global r warp bytes=512 share=16 lines=8 length=8 bits=64"},
    {SM_90A, "wmma.store.d.sync.aligned.col.m32n8k16.global.f16 [d], {r0, r1, r2, r3}, b;",
     "tile global w warp bytes=0 share=16 lines=8 length=32 bits=16 stride=b"},
};

static const struct row tensors[] = {
    {SM_90A,
     "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [m, {a, b}],"
     " [bar];",
     "tensor shared::cluster w share=0 there, tensor global r share=0 here,"
     " plain shared::cluster rw! bytes=8 share=8"},
    {SM_90A, "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [m, {a}], [tile];",
     "tensor global w share=0 here, tensor shared r share=0 there"},
    {SM_90A, "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [m, {a}], [tile];",
     "tensor global rw! share=0 here, tensor shared r share=0 there"},
};

static const struct row descriptors[] = {
    {SM_90A, "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {r0, r1}, d, e, p, 1, 1, 0, 0;",
     "descriptor shared r warp share=0 by=d, descriptor shared r warp share=0 by=e"},
    {SM_90A, "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {r0, r1}, {r2, r3, r4, r5}, e, p, 1, 1, 0;",
     "descriptor shared r warp share=0 by=e"},
    {SM_100A, "tcgen05.cp.cta_group::1.128x256b [c], e;",
     "unsized (tensor) w share=0, descriptor shared r share=0 by=e"},
    {SM_100A, "tcgen05.mma.cta_group::1.kind::f16 [c], d, e, b, p;",
     "unsized (tensor) rw! share=0, descriptor shared r share=0 by=d, descriptor shared r share=0 by=e"},
    {SM_100A, "tcgen05.mma.cta_group::1.kind::f16 [c], [a], e, b, p;",
     "unsized (tensor) rw! share=0, unsized (tensor) r share=0, descriptor shared r share=0 by=e"},
};

static const struct row unsized[] = {
    {SM_90A, "tex.2d.v4.f32.f32 {x, y, z, x}, [image, {x, y}];", "unsized tex r share=0"},
    {SM_100A, "tcgen05.ld.sync.aligned.32x32b.x2.b32 {r0, r1}, [c];", "unsized (tensor) r warp share=0"},
};

static const struct {
    const struct row *rows;
    unsigned n;
} tables[] = {
#define TABLE(t)                \
    {                           \
        t, sizeof t / sizeof *t \
    }
    TABLE(plain), TABLE(counted), TABLE(spoken_of),   TABLE(rows),
    TABLE(tiles), TABLE(tensors), TABLE(descriptors), TABLE(unsized),
};
enum { TABLES = sizeof tables / sizeof *tables };

// --- asking ------------------------------------------------------------------------------------------------

static void say_operand(const struct ptx_module *m, const struct ptx_func *f, const char *what,
                        const struct ptx_operand *o, struct out *to)
{
    if (!o)
        return;
    out_fmt(to, " %s=%s", what, o->negated ? "!" : "");
    if (o->kind == PTX_REG)
        ptx_print_reg(m, f, o->id, to);
    else
        out_fmt(to, "%lld", (long long)o->value);
}

static void say_extent(const struct ptx_module *m, const struct ptx_func *f, const struct ptx_mem *mem,
                       struct out *to)
{
    static const char *const names[] = {[PTX_EXTENT_UNSIZED] = "unsized",
                                        [PTX_EXTENT_PLAIN] = "plain",
                                        [PTX_EXTENT_COUNTED] = "counted",
                                        [PTX_EXTENT_ROWS] = "rows",
                                        [PTX_EXTENT_TILE] = "tile",
                                        [PTX_EXTENT_TENSOR] = "tensor",
                                        [PTX_EXTENT_DESCRIPTOR] = "descriptor"};
    enum ptx_extent extent = (enum ptx_extent)mem->extent;
    bool sized = extent == PTX_EXTENT_PLAIN || extent == PTX_EXTENT_COUNTED || extent == PTX_EXTENT_ROWS ||
                 extent == PTX_EXTENT_TILE;
    struct str space = ptx_space_name((enum ptx_space)mem->space);
    out_fmt(to, "%s " STR_FMT " %s%s%s%s%s", names[extent], STR_ARG(space), mem->reads ? "r" : "",
            mem->writes ? "w" : "", mem->reads || mem->writes ? "" : "-", mem->atomic ? "!" : "",
            mem->collective ? " warp" : "");
    if (sized)
        out_fmt(to, " bytes=%u", mem->bytes);
    else
        assert_int_equal(mem->bytes, 0);
    out_fmt(to, " share=%u", mem->share);
    switch (extent) {
    case PTX_EXTENT_PLAIN: say_operand(m, f, "unless", mem->unless, to); break;
    case PTX_EXTENT_COUNTED: say_operand(m, f, "size", mem->size, to); break;
    case PTX_EXTENT_ROWS:
        out_fmt(to, " lanes=%u", mem->lanes);
        if (mem->padding)
            out_fmt(to, " padding=%u", mem->padding);
        break;
    case PTX_EXTENT_TILE:
        out_fmt(to, " lines=%u length=%u bits=%u", mem->lines, mem->length, mem->element_bits);
        say_operand(m, f, "stride", mem->stride, to);
        break;
    case PTX_EXTENT_TENSOR:
        assert_int_equal(mem->map->kind, PTX_TUPLE);
        out_cstr(to, mem->addr == mem->map ? " here" : " there");
        break;
    case PTX_EXTENT_DESCRIPTOR: say_operand(m, f, "by", mem->addr, to); break;
    default: break;
    }
}

static void check_row(const struct ptx_module *m, const struct ptx_func *f, const struct ptx_stmt *s,
                      const struct row *row)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    struct out said;
    unsigned n = ptx_stmt_mem(f, s, mem);
    assert_int_equal(out_to_memory(&said), 0);
    for (unsigned i = 0; i < n; i++) {
        if (i)
            out_lit(&said, ", ");
        say_extent(m, f, &mem[i], &said);
    }
    if (!str_eq((struct str){said.buf, said.len}, str_from(row->expected)))
        fail_msg("%s\n  expected \"%s\"\n  got      \"%.*s\"", row->insn, row->expected, (int)said.len,
                 said.buf);
    out_close(&said);
}

// Makes a kernel of all rows for one architecture, in the order of the tables.
static char *kernel_for(enum arch arch)
{
    struct out o;
    assert_int_equal(out_to_memory(&o), 0);
    out_fmt(&o, ".version 9.0\n.target %s\n%s", archs[arch], before);
    for (unsigned t = 0; t < TABLES; t++)
        for (unsigned i = 0; i < tables[t].n; i++)
            if (tables[t].rows[i].arch == arch)
                out_fmt(&o, "%s\n", tables[t].rows[i].insn);
    out_str(&o, STR("ret;\n}\n"));
    out_char(&o, 0);
    char *text = strdup(o.buf);
    assert_non_null(text);
    out_close(&o);
    return text;
}

static void good_extents(void **state)
{
    for (enum arch arch = 0; arch < ARCHS; arch++) {
        char *text = kernel_for(arch);
        struct testing_sink *t = testing_sink_new();
        struct ptx_module *m = testing_parse(str_from(text));
        const struct ptx_func *f = testing_func(m);
        unsigned at = FIRST;
        assert_int_equal(ptx_verify(m, &t->sink, NULL), 0);
        assert_string_equal(t->text, "");
        for (unsigned k = 0; k < TABLES; k++)
            for (unsigned i = 0; i < tables[k].n; i++)
                if (tables[k].rows[i].arch == arch)
                    check_row(m, f, testing_insn(f, at++), &tables[k].rows[i]);
        assert_int_equal(testing_insn(f, at)->form->id, PTX_OP_RET);
        free(t);
        ptx_free(m);
        free(text);
    }
}

static void good_for_ptxas(void **state)
{
    if (system("command -v ptxas >/dev/null 2>&1"))
        skip();
    for (enum arch arch = 0; arch < ARCHS; arch++) {
        char name[] = "/tmp/extent_test.XXXXXX", command[200];
        char *text = kernel_for(arch);
        int fd = mkstemp(name);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
        snprintf(command, sizeof command, "ptxas -arch=%s -o /dev/null %s 2>&1", archs[arch], name);
        int status = system(command);
        unlink(name);
        free(text);
        assert_int_equal(status, 0);
    }
}

// --- what is not known -------------------------------------------------------------------------------------

static void check_unknown(const char *insn, const char *expected)
{
    char *text = testing_join(TESTING_BODY, insn, "\nret;\n}\n");
    struct ptx_module *m = testing_parse(str_from(text));
    const struct ptx_func *f = testing_func(m);
    check_row(m, f, testing_insn(f, 0), &(struct row){.insn = insn, .expected = expected});
    ptx_free(m);
    free(text);
}

// An access that is not fully understood may reach further than it seems to.
static void bad_modifiers_have_no_extent(void **state)
{
    check_unknown("ld.global.v16.f32 %f1, [%rd1];", "unsized global r share=0");
    check_unknown("cp.async.bulk.odd.global.shared::cta.bulk_group [%rd1], [%r1], 64;",
                  "unsized global w share=0, unsized shared r share=0");
    check_unknown("ldmatrix.sync.aligned.m8n8.x4.odd.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];",
                  "unsized shared r warp share=16");
    check_unknown("wmma.load.c.sync.aligned.row.m8n8k4.odd.global.f64 {%rd1, %rd2}, [%rd3];",
                  "unsized global r warp share=16");
    check_unknown("ldmatrix.sync.aligned.m9n9.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];",
                  "unsized shared r warp share=0");
    check_unknown("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %p1;",
                  "unsized global w share=0, unsized shared r share=0");
    check_unknown("frobnicate.global [%rd1];", "");
    // Strides that make no sense.
    check_unknown("wmma.load.c.sync.aligned.row.m8n8k4.global.f64 {%rd1, %rd2}, [%rd3], -8;",
                  "tile global r warp bytes=0 share=16 lines=8 length=8 bits=64 stride=-8");
    check_unknown("wmma.load.c.sync.aligned.row.m8n8k4.global.f64 {%rd1, %rd2}, [%rd3], 0x7fffffff;",
                  "tile global r warp bytes=0 share=16 lines=8 length=8 bits=64 stride=2147483647");
}

// --- all forms ---------------------------------------------------------------------------------------------

// The registers of a matrix hold it once, except for A and B of f16, where two lanes have the same elements.
static void check_matrix(const struct ptx_stmt *s, const struct ptx_mem *mem)
{
    const struct ptx_form *form = s->form;
    const struct ptx_operand *held = ptx_operand(s, mem->writes);
    unsigned wide = form->types[form->ntypes - 1] == PTX_F64 ? 8 : 4;
    bool twice = form->types[0] == PTX_F16 && form->id == PTX_OP_WMMA_LOAD && !ptx_form_has(form, PTX_MOD_C);
    assert_int_equal(held->kind, PTX_VEC);
    if (!twice && mem->share != wide * held->value)
        fail_msg(STR_FMT ": a share of %u bytes", STR_ARG(form->name), mem->share);
    if (mem->extent == PTX_EXTENT_ROWS)
        assert_int_equal(mem->lanes, 8 * held->value);
    assert_true(mem->collective && (mem->extent == PTX_EXTENT_ROWS || mem->extent == PTX_EXTENT_TILE));
}

static unsigned check_stmt(const struct ptx_func *f, const struct ptx_stmt *s)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(f, s, mem);
    for (unsigned i = 0; i < n; i++) {
        uint8_t width = s->form->op->width;
        bool told = width != PTX_WIDTH_NONE && width != PTX_WIDTH_OPAQUE;
        if (told && mem[i].extent == PTX_EXTENT_UNSIZED)
            fail_msg(STR_FMT " has an access without an extent", STR_ARG(s->form->name));
        if (width == PTX_WIDTH_ROWS || width == PTX_WIDTH_TILE)
            check_matrix(s, &mem[i]);
    }
    return n;
}

static unsigned check_text(struct str text)
{
    struct ptx_module *m = testing_parse(text);
    unsigned n = 0;
    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct ptx_func *f = m->items[i].kind == PTX_ITEM_FUNC ? m->items[i].func : NULL;
        for (uint32_t k = 0; f && k < f->nstmts; k++)
            n += check_stmt(f, &f->stmts[k]);
    }
    ptx_free(m);
    return n;
}

static unsigned check_file(const char *path)
{
    struct stat st;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &st), 0);
    char *text = malloc((size_t)st.st_size);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)st.st_size, file), st.st_size);
    fclose(file);
    unsigned n = check_text((struct str){text, (size_t)st.st_size});
    free(text);
    return n;
}

static void good_forms(void **state)
{
    static const char folder[] = "test/ptx/forms";
    DIR *d = opendir(folder);
    unsigned n = 0;
    if (!d)
        skip();
    for (const struct dirent *e; (e = readdir(d));) {
        char path[400];
        const char *dot = strrchr(e->d_name, '.');
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (dot && !strcmp(dot, ".ptx"))
            n += check_file(path);
    }
    closedir(d);
    assert_true(n > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_extents),
        cmocka_unit_test(good_for_ptxas),
        cmocka_unit_test(bad_modifiers_have_no_extent),
        cmocka_unit_test(good_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
