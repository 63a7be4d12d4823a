// SPDX-License-Identifier: MIT
// check_wholes SEED CASES CLASS: makes random kernels for --mode=check, as check_classes.c does, with
// instructions that are left out as a whole if one end is outside of its buffer or variable. CLASS is
// matrices, copies or boxes; CHECK_RANDOM_KIND, a number of enum kind: all cases are of it. It prints what
// moat must report for each case, with - for what it does not say, and where a wrong instruction has
// changed something. A kernel that waits for a barrier must end.
#include "check_random.h"

enum { BATCH = 20, LINE = 1000, WARP = 32, NEAR = 64, MOST = 4096 };

enum kind {
    LDMATRIX,
    STMATRIX,
    WMMA_LOAD,
    WMMA_STORE,
    MATRICES,
    CP_ASYNC = MATRICES,
    TO_SHARED,
    TO_GLOBAL,
    REDUCE,
    ST_ASYNC,
    RED_ASYNC,
    COPIES,
    BOX_LOAD = COPIES,
    BOX_STORE,
    BOX_ADD,
    KINDS
};

struct plan {
    enum kind kind;
    unsigned line, count, stride;  // count: of matrices or bytes
    uint32_t area, step;           // bytes from the first to the last; what offsets are multiples of
    bool global;                   // the end in question is in global memory
    bool bad;
    uint32_t size[2];  // of the shared variable, and of the buffer
    int64_t offset[2];
    CUdeviceptr buffer;
    unsigned pitch, rows;  // of the matrix that a box is part of, in floats; of it that the map has
};

static bool is_box(const struct plan *p)
{
    return p->kind >= BOX_LOAD;
}

static bool waits(const struct plan *p)
{
    return p->kind == TO_SHARED || p->kind == ST_ASYNC || p->kind == RED_ASYNC || p->kind == BOX_LOAD;
}

static const char *end_of(const struct plan *p)
{
    return p->global ? "%g" : "%s";
}

// --- the kernel --------------------------------------------------------------------------------------------

// Fills the neighbours in shared memory, or adds what has changed in them to %m.
static void put_neighbours(unsigned n, bool fill)
{
    for (unsigned i = 0; i < 2 * NEAR / 8; i++) {
        const char *name = i % 2 ? "before" : "after";
        if (fill)
            put("    st.shared.u64 [%s_%u+%u], %%f;\n", name, n, i / 2 * 8);
        else
            put("    ld.shared.u64 %%x, [%s_%u+%u];\n    xor.b64 %%x, %%x, %%f;\n    or.b64 %%m, %%m, %%x;\n",
                name, n, i / 2 * 8);
    }
}

static void put_rows(const struct plan *p)
{
    static const char *const regs[] = {"", "{%r0}", "{%r0, %r1}", "", "{%r0, %r1, %r2, %r3}"};
    put("    and.b32 %%i, %%t, %u;\n    shl.b32 %%i, %%i, 4;\n    add.u32 %%s, %%s, %%i;\n",
        8 * p->count - 1);
    put("    .loc 1 %u 0\n", p->line);
    if (p->kind == LDMATRIX)
        put("    ldmatrix.sync.aligned.m8n8.x%u.shared.b16 %s, [%%s];\n", p->count, regs[p->count]);
    else
        put("    stmatrix.sync.aligned.m8n8.x%u.shared.b16 [%%s], %s;\n", p->count, regs[p->count]);
}

static void put_tile(const struct plan *p)
{
    const char *in = p->global ? "global" : "shared";
    put("    mov.u32 %%i, %u;\n    .loc 1 %u 0\n", p->stride, p->line);
    if (p->kind == WMMA_LOAD)
        put("    wmma.load.a.sync.aligned.row.m16n16k16.%s.f16 {%%r0, %%r1, %%r2, %%r3, %%r4, %%r5, %%r6, "
            "%%r7},"
            " [%s], %%i;\n",
            in, end_of(p));
    else
        put("    wmma.store.d.sync.aligned.row.m16n16k16.%s.f32 [%s], {%%f0, %%f1, %%f2, %%f3, %%f4, %%f5, "
            "%%f6, "
            "%%f7}, %%i;\n",
            in, end_of(p));
}

static void put_async(const struct plan *p)
{
    put("    mul.lo.u32 %%i, %%t, %u;\n    add.u32 %%s, %%s, %%i;\n    cvt.u64.u32 %%x, %%i;\n"
        "    add.u64 %%g, %%g, %%x;\n    .loc 1 %u 0\n    cp.async.ca.shared.global [%%s], [%%g], %u;\n"
        "    .loc 1 1 0\n    cp.async.wait_all;\n",
        p->count, p->line, p->count);
}

// One thread issues the copy; %one.
static void put_bulk(const struct plan *p, unsigned n)
{
    put("    @!%%one bra past_%u;\n    mov.u32 %%i, %u;\n", n, p->count);
    if (waits(p))
        put("    mbarrier.arrive.expect_tx.shared.b64 %%x, [bar_%u], %u;\n", n, p->count);
    // The barrier and the target of the only block, as a cluster names them.
    if (p->kind == ST_ASYNC || p->kind == RED_ASYNC)
        put("    mapa.shared::cluster.u32 %%s, %%s, 0;\n    mov.u32 %%b, bar_%u;\n"
            "    mapa.shared::cluster.u32 %%b, %%b, 0;\n",
            n);
    put("    .loc 1 %u 0\n", p->line);
    if (p->kind == TO_SHARED)
        put("    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%s], [%%g], %%i, "
            "[bar_%u];\n",
            n);
    else if (p->kind == ST_ASYNC)
        put("    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%%s], %%i, [%%b];\n");
    else if (p->kind == RED_ASYNC)
        put("    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%%s], %%i, "
            "[%%b];\n");
    else if (p->kind == BOX_LOAD)
        put("    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%s], "
            "[%%map, {%%cx, %%cy}], [bar_%u];\n",
            n);
    else if (is_box(p))
        put("    cp%s.async.bulk.tensor.2d.global.shared::cta%s.tile.bulk_group [%%map, {%%cx, %%cy}], "
            "[%%s];\n",
            p->kind == BOX_ADD ? ".reduce" : "", p->kind == BOX_ADD ? ".add" : "");
    else
        put("    cp%s.async.bulk.global.shared::cta.bulk_group%s [%%g], [%%s], %%i;\n",
            p->kind == REDUCE ? ".reduce" : "", p->kind == REDUCE ? ".add.u32" : "");
    put("    .loc 1 1 0\n");
    if (!waits(p))
        put("    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;\n");
    put("past_%u:\n", n);
    if (waits(p))
        put("wait_%u:\n    mbarrier.try_wait.parity.shared.b64 %%done, [bar_%u], 0;\n    @!%%done bra "
            "wait_%u;\n",
            n, n, n);
}

static void put_kernel(const struct plan *p, unsigned n)
{
    put(".shared .align 128 .b8 before_%u[%u];\n.shared .align 128 .b8 target_%u[%u];\n"
        ".shared .align 128 .b8 after_%u[%u];\n.shared .align 8 .b64 bar_%u;\n",
        n, NEAR, n, p->size[0], n, NEAR, n);
    put(".visible .entry kernel_%u(.param .u64 buffer, .param .u64 out, .param .u64 so, .param .u64 go, "
        ".param .align 64 .b8 map[128])%s\n{\n"
        "    .reg .u64 %%g, %%x, %%m, %%f, %%out, %%so, %%map;\n    .reg .u32 %%s, %%t, %%i, %%b, %%cx, "
        "%%cy;\n"
        "    .reg .b32 "
        "%%r<8>;\n"
        "    .reg .f32 %%f<8>;\n    .reg .pred %%one, %%done;\n",
        n, p->kind == ST_ASYNC || p->kind == RED_ASYNC ? " .explicitcluster .reqnctapercluster 1, 1, 1" : "");
    for (unsigned i = 0; i < 8; i++)
        put("    mov.b32 %%r%u, 0x12121212;\n    mov.f32 %%f%u, 0f3F800000;\n", i, i);
    put("    mov.u64 %%m, 0;\n    mov.u64 %%f, 0x5555555555555555;\n    mov.u32 %%t, %%tid.x;\n"
        "    setp.eq.u32 %%one, %%t, 0;\n    @%%one mbarrier.init.shared.b64 [bar_%u], 1;\n",
        n);
    put_neighbours(n, true);
    put("    fence.proxy.async;\n    bar.sync 0;\n    ld.param.u64 %%so, [so];\n    cvt.u32.u64 %%i, %%so;\n"
        "    mov.u32 %%s, target_%u;\n    add.s32 %%s, %%s, %%i;\n    ld.param.u64 %%g, [buffer];\n"
        "    cvta.to.global.u64 %%g, %%g;\n    ld.param.u64 %%x, [go];\n    add.s64 %%g, %%g, %%x;\n",
        n);
    // Of a box, the offset is that of its first element, in bytes from the start of the matrix.
    if (is_box(p))
        put("    cvt.u32.u64 %%cx, %%x;\n    div.s32 %%cy, %%cx, %u;\n    rem.s32 %%cx, %%cx, %u;\n"
            "    div.s32 %%cx, %%cx, 4;\n    mov.u64 %%map, map;\n    cvta.param.u64 %%map, %%map;\n",
            p->pitch * 4, p->pitch * 4);
    switch (p->kind) {
    case LDMATRIX:
    case STMATRIX: put_rows(p); break;
    case WMMA_LOAD:
    case WMMA_STORE: put_tile(p); break;
    case CP_ASYNC: put_async(p); break;
    default: put_bulk(p, n); break;
    }
    put("    .loc 1 1 0\n    bar.sync 0;\n");
    put_neighbours(n, false);
    put("    ld.param.u64 %%out, [out];\n    st.global.u64 [%%out], %%m;\n    ret;\n}\n");
}

// --- cases -------------------------------------------------------------------------------------------------

static void set_shape(struct plan *p)
{
    static const unsigned widths[] = {4, 8, 16};
    p->step = 16;
    switch (p->kind) {
    case LDMATRIX:
    case STMATRIX:
        p->count = 1u << dice(3);
        p->area = 8 * p->count * 16;
        break;
    case WMMA_LOAD:
        p->stride = 16 + 8 * dice(4);
        p->area = (15 * p->stride + 16) * 2;
        p->step = 32;
        break;
    case WMMA_STORE:
        p->stride = 16 + 4 * dice(8);
        p->area = (15 * p->stride + 16) * 4;
        p->step = 32;
        break;
    case CP_ASYNC:
        p->count = widths[dice(3)];
        p->area = WARP * p->count;
        break;
    case RED_ASYNC:
    case ST_ASYNC: p->area = p->step = p->count = 4; break;
    default: p->area = p->count = 16 * (1 + dice(32)); break;
    }
}

static bool may_be(const struct plan *p, bool global)
{
    return p->kind >= CP_ASYNC && p->kind != ST_ASYNC && p->kind != RED_ASYNC ? true
           : p->kind == WMMA_LOAD || p->kind == WMMA_STORE                    ? true
                                                                              : !global;
}

// A box of 8 rows of 16 or 32 floats in a matrix of which the buffer has fewer rows than the map, or in one
// that ends in the middle of the box. The rows of the box that are outside of the map count for nothing.
static void plan_box(struct plan *p)
{
    unsigned width = 16 << dice(2), have, x, y;
    p->count = 8 * width * 4;
    p->pitch = width + 4 * dice(8);
    have = 8 + dice(8);
    p->bad = dice(4) > 0;
    p->global = dice(2);
    p->size[0] = p->count + 128 * dice(3);
    p->size[1] = ((have - 1) * p->pitch + width) * 4;
    p->stride = width;
    y = dice(have - 8 + 1);
    p->rows = have;
    if (p->bad && p->global) {
        p->rows = have + 8;
        y = have - 8 + 1 + dice(8);
    } else if (dice(3) == 0) {
        y = have - 4;  // the map ends in the box
    }
    // The buffer ends with the last row of the box, not with that of the pitch.
    x = 4 * dice(width / 8);
    p->offset[1] = ((int64_t)y * p->pitch + x) * 4;
    p->offset[0] =
        p->bad && !p->global ? (dice(2) ? -128 : (int64_t)(p->size[0] - p->count) / 128 * 128 + 128) : 0;
    p->area = p->count;
    p->step = 128;
}

enum class { IS_MATRICES, IS_COPIES, IS_BOXES };

static enum kind choose_kind(enum class class)
{
    static const struct {
        enum kind first, end;
    } kinds[] = {
        [IS_MATRICES] = {LDMATRIX, MATRICES}, [IS_COPIES] = {CP_ASYNC, COPIES}, [IS_BOXES] = {COPIES, KINDS}};
    const char *only = getenv("CHECK_RANDOM_KIND");
    enum kind kind = kinds[class].first + dice(kinds[class].end - kinds[class].first);
    return only ? (enum kind)atoi(only) : kind;
}

static struct plan plan_case(unsigned number, enum class class)
{
    struct plan p = {.kind = choose_kind(class), .line = LINE + number};
    if (is_box(&p)) {
        plan_box(&p);
        return p;
    }
    set_shape(&p);
    p.global = may_be(&p, true) && dice(2);
    p.bad = dice(4) > 0;
    for (unsigned i = 0; i < 2; i++) {
        p.size[i] = p.area + dice(1000) / 32 * 32;
        p.offset[i] = (int64_t)dice((p.size[i] - p.area) / p.step + 1) * p.step;
    }
    if (p.bad) {
        uint32_t size = p.size[p.global];
        int64_t steps = 1 + dice(3);
        p.offset[p.global] = dice(2) ? -steps * p.step : (size - p.area) / p.step * p.step + steps * p.step;
    }
    return p;
}

static bool reads(const struct plan *p)
{
    switch (p->kind) {
    case LDMATRIX:
    case WMMA_LOAD: return true;
    case CP_ASYNC:
    case BOX_LOAD:
    case TO_SHARED: return p->global;
    case BOX_STORE:
    case BOX_ADD:
    case TO_GLOBAL:
    case REDUCE: return !p->global;
    default: return false;
    }
}

// Fills a tensor map of `rows` rows.
static void describe(const struct plan *p, unsigned rows, CUtensorMap *map)
{
    cuuint64_t size[2] = {p->stride, rows}, pitch[1] = {p->pitch * 4};
    cuuint32_t box[2] = {p->stride, 8}, step[2] = {1, 1};
    if (is_box(p))
        NEED(d.cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(uintptr_t)p->buffer,
                                      size, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

static void run_case(CUmodule module, struct plan *p, unsigned n, CUdeviceptr out)
{
    static unsigned char bytes[2 * MOST];
    char name[32];
    uint64_t changed = 0;
    CUfunction kernel;
    snprintf(name, sizeof name, "kernel_%u", n);
    NEED(d.cuModuleGetFunction(&kernel, module, name));
    NEED(d.cuMemAlloc_v2(&p->buffer, p->size[1]));
    NEED(d.cuMemsetD8_v2(p->buffer, 77, p->size[1]));
    static CUtensorMap map;
    void *arguments[] = {&p->buffer, &out, &p->offset[0], &p->offset[1], &map};
    // A right launch before, which must decide nothing for the other.
    int64_t none = 0;
    void *right[] = {&p->buffer, &out, &none, &none, &map};
    describe(p, p->rows, &map);
    NEED(d.cuLaunchKernel(kernel, 1, 1, 1, WARP, 1, 1, 0, NULL, right, NULL));
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemsetD8_v2(p->buffer, 77, p->size[1]));
    NEED(d.cuLaunchKernel(kernel, 1, 1, 1, WARP, 1, 1, 0, NULL, arguments, NULL));
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemcpyDtoH_v2(&changed, out, sizeof changed));
    NEED(d.cuMemcpyDtoH_v2(bytes, p->buffer, p->size[1]));
    if (changed)
        printf("changed %u: a neighbour\n", p->line);
    // A wrong one is left out as a whole; a right one that writes to global memory changes what it should.
    bool writes = !p->bad && !reads(p) && p->global && p->kind != CP_ASYNC;
    for (uint32_t i = 0; p->bad && i < p->size[1]; i++)
        if (bytes[i] != 77 && !writes) {
            printf("changed %u: byte %u\n", p->line, i);
            break;
        }
    const char *type = !p->global         ? "shared-buffer-overflow"
                       : p->offset[1] < 0 ? "heap-buffer-underflow"
                                          : "heap-buffer-overflow";
    if (!p->bad)
        printf("good %u\n", p->line);
    else
        printf("bad %u %s %s - - 0x%llx %u kind %d count %u stride %u offset %lld\n", p->line, type,
               reads(p) ? "read" : "write", p->global ? (unsigned long long)p->buffer : 0, p->size[1],
               p->kind, p->count, p->stride, (long long)p->offset[p->global]);
    NEED(d.cuMemFree_v2(p->buffer));
}

static void run_batch(unsigned first, unsigned count, enum class class, CUdeviceptr out)
{
    struct plan plans[BATCH];
    CUmodule module;
    used = 0;
    put(".version 8.1\n.target sm_90\n.address_size 64\n.file 1 \"random.cu\"\n");
    for (unsigned i = 0; i < count; i++) {
        plans[i] = plan_case(first + i, class);
        put_kernel(&plans[i], i);
    }
    if (getenv("CHECK_RANDOM_TEXT"))
        fputs(text, stderr);
    NEED(d.cuModuleLoadData(&module, text));
    for (unsigned i = 0; i < count; i++)
        run_case(module, &plans[i], i, out);
    NEED(d.cuModuleUnload(module));
}

int main(int argc, char **argv)
{
    char why[300];
    if (argc != 4)
        return 2;
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    seed = (unsigned)atoi(argv[1]);
    unsigned cases = (unsigned)atoi(argv[2]);
    CUdeviceptr out;
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuMemAlloc_v2(&out, 8));
    enum class class = !strcmp(argv[3], "copies")  ? IS_COPIES
                       : !strcmp(argv[3], "boxes") ? IS_BOXES
                                                   : IS_MATRICES;
    for (unsigned i = 0; i < cases; i += BATCH)
        run_batch(i, cases - i < BATCH ? cases - i : BATCH, class, out);
    printf("done %u\n", cases);
    return 0;
}
