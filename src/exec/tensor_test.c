// SPDX-License-Identifier: MIT
// Copies of tensor boxes, against the definition of a tensor map, element by element.
#include "exec/exec_testing.h"
#include "exec/tensor.h"

enum { ROWS = 11, COLUMNS = 24, DEEP = 3, WORDS = DEEP * ROWS * COLUMNS };

static uint64_t map_at, data, out;

// A kernel of one thread: copies a box of the map to shared memory at `tile`, and all of that to `out`.
#define HEAD                                                                                             \
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 px, .param .u32 py, " \
    ".param .u32 pz)\n{\n.reg .b64 m, o, s, d; .reg .b32 x, y, z, i, v; .reg .pred p;\n"                 \
    ".shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 bar;\n"                                   \
    "ld.param.u64 o, [out]; ld.param.u32 x, [px]; ld.param.u32 y, [py]; ld.param.u32 z, [pz];\n"         \
    "mov.b64 m, map; cvta.param.u64 m, m; mov.u64 s, tile; mbarrier.init.shared.b64 [bar], 1;\n"
#define SHOW                                                                                           \
    "mov.u32 i, 0;\nL: cvt.u64.u32 d, i; add.u64 s, d, tile; add.u64 d, d, o; ld.shared.b32 v, [s];\n" \
    "st.global.b32 [d], v; add.u32 i, i, 4; setp.lt.u32 p, i, 4096; @p bra L;\nret;\n}\n"
#define WAIT(bytes)                                                \
    "mbarrier.arrive.expect_tx.shared.b64 d, [bar], " #bytes ";\n" \
    "W: mbarrier.test_wait.parity.shared.b64 p, [bar], 0; @!p bra W;\n"
#define LOAD(dims, at)                                                                                       \
    "cp.async.bulk.tensor." dims ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [m, " at \
    "], [bar];\n"

static struct tensor_map make(unsigned rank)
{
    struct tensor_map m = {.magic = TENSOR_MAGIC,
                           .rank = (uint8_t)rank,
                           .type = TENSOR_U32,
                           .address = data,
                           .stride = {4, COLUMNS * 4, ROWS * COLUMNS * 4},
                           .last = {COLUMNS - 1, ROWS - 1, DEEP - 1},
                           .box = {8, 4, 2},
                           .step = {1, 1, 1, 1, 1}};
    return m;
}

struct params {
    char map[128];
    uint64_t out;
    uint32_t x, y, z;
};

static struct exec_program *program;

static struct exec_fault run_at(const struct tensor_map *m, uint32_t x, uint32_t y, uint32_t z)
{
    struct params p = {.out = out, .x = x, .y = y, .z = z};
    memcpy(p.map, m, sizeof *m);
    struct exec_launch l = exec_testing_launch(program, "k", 1, 1, &p);
    return exec_testing_run(&l, 10000);
}

static void load(const char *text)
{
    program = exec_testing_text(text);
    data = exec_testing_take(WORDS * 4, 256);
    out = exec_testing_take(4096, 256);
    map_at = exec_testing_take(128, 128);
    for (uint32_t k = 0; k < WORDS; k++)
        ((uint32_t *)space_host(data))[k] = k + 1;
}

static uint32_t element(int64_t x, int64_t y, int64_t z)
{
    if (x < 0 || x >= COLUMNS || y < 0 || y >= ROWS || z < 0 || z >= DEEP)
        return 0;
    return (uint32_t)((z * ROWS + y) * COLUMNS + x + 1);
}

static void expect_box(const struct tensor_map *m, int32_t x, int32_t y, int32_t z, unsigned swizzle)
{
    unsigned n[3], pitch;
    for (unsigned k = 0; k < 3; k++)
        n[k] = k < m->rank ? (m->box[k] + m->step[k] - 1u) / m->step[k] : 1;
    // A row that is shorter than the span of the swizzle has a span of its own.
    pitch = swizzle && n[0] * 4 < 16u << swizzle ? 16u << swizzle : n[0] * 4;
    for (unsigned c = 0; c < n[2]; c++)
        for (unsigned b = 0; b < n[1]; b++)
            for (unsigned a = 0; a < n[0]; a++) {
                unsigned at = (c * n[1] + b) * pitch + a * 4;
                // 16-byte pieces: their number within a span is xored with the number of their 128 bytes.
                at ^= (at / 128 % (1u << swizzle)) * 16;
                assert_int_equal(
                    exec_testing_word(out + at),
                    element(x + (int)a * m->step[0], y + (int)b * m->step[1], z + (int)c * m->step[2]));
            }
}

static void good_loads(void **state)
{
    static const int32_t at[][3] = {{0, 0, 0},    {8, 4, 1},   {3, 2, 0}, {20, 9, 2},
                                    {-5, -2, -1}, {100, 0, 0}, {16, 7, 1}};
    load(HEAD LOAD("3d", "{x, y, z}") WAIT(256) SHOW);
    struct tensor_map m = make(3);
    for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
        assert_int_equal(run_at(&m, (uint32_t)at[k][0], (uint32_t)at[k][1], (uint32_t)at[k][2]).kind,
                         EXEC_NO_FAULT);
        expect_box(&m, at[k][0], at[k][1], at[k][2], 0);
    }
    m.step[0] = 2;
    m.step[1] = 3;
    m.box[0] = 16;
    m.box[1] = 10;
    assert_int_equal(run_at(&m, 1, 1, 0).kind, EXEC_NO_FAULT);
    expect_box(&m, 1, 1, 0, 0);
    exec_program_free(program);
}

static void good_swizzles(void **state)
{
    load(HEAD LOAD("2d",
                   "{x, y}") "mov.u32 v, 1024;\nmbarrier.arrive.expect_tx.shared.b64 d, [bar], v;\n" SHOW);
    for (unsigned swizzle = 0; swizzle < 4; swizzle++) {
        struct tensor_map m = make(2);
        m.swizzle = (uint8_t)swizzle;
        m.box[0] = (uint16_t)(swizzle ? 4u << swizzle : 8);
        m.box[1] = 32;
        assert_int_equal(run_at(&m, 2, 0, 0).kind, EXEC_NO_FAULT);
        expect_box(&m, 2, 0, 0, swizzle);
    }
    exec_program_free(program);
}

#define SEND(op, way)                                                                                    \
    "mov.u32 i, 0;\nF: cvt.u64.u32 d, i; add.u64 s, d, tile; add.u32 v, i, 1000; st.shared.b32 [s], v; " \
    "add.u32 i, i, 4;\n"                                                                                 \
    "setp.lt.u32 p, i, 128; @p bra F;\n" op ".2d.global.shared::cta" way                                 \
    ".tile.bulk_group [m, {x, y}], [tile];\n"                                                            \
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;\n}\n"

// What an H200 said: rows shorter than the swizzle's span lie a span apart, in which they leave out what they
// do not fill. As many bytes as the box has are counted.
static void good_short_rows(void **state)
{
    load(HEAD "mov.u32 i, 0;\nF: cvt.u64.u32 d, i; add.u64 s, d, tile; add.u32 v, i, 1000;\n"
              "st.shared.b32 [s], v; add.u32 i, i, 4; setp.lt.u32 p, i, 4096; @p bra F;\n"  //
         LOAD("2d", "{x, y}") "shl.b32 v, z, 3;\nmbarrier.arrive.expect_tx.shared.b64 d, [bar], v;\n"
                              "W: mbarrier.test_wait.parity.shared.b64 p, [bar], 0; @!p bra W;\n" SHOW);
    for (unsigned swizzle = 1; swizzle < 4; swizzle++)
        for (unsigned row = 16; row < 16u << swizzle; row += 16) {
            struct tensor_map m = make(2);
            m.swizzle = (uint8_t)swizzle;
            m.box[0] = (uint16_t)(row / 4);
            m.box[1] = 8;
            assert_int_equal(run_at(&m, 2, 0, row).kind, EXEC_NO_FAULT);
            expect_box(&m, 2, 0, 0, swizzle);
            for (unsigned at = 0, span = 16u << swizzle; at < 8 * span; at += 4) {
                unsigned from = at ^ (at / 128 % (1u << swizzle)) * 16;
                if (from % span >= row)
                    assert_int_equal(exec_testing_word(out + at), 1000 + at);
            }
        }
    exec_program_free(program);
}

static void check_sent(int32_t x, int32_t y, bool added)
{
    for (int32_t b = 0; b < ROWS; b++)
        for (int32_t a = 0; a < COLUMNS; a++) {
            bool inside = a >= x && a < x + 8 && b >= y && b < y + 4;
            uint32_t sent = 1000 + (uint32_t)((b - y) * 8 + a - x) * 4, old = element(a, b, 0);
            uint32_t want = !inside ? old : added ? old + sent : sent;
            assert_int_equal(exec_testing_word(data + (uint64_t)(b * COLUMNS + a) * 4), want);
        }
}

static void good_stores(void **state)
{
    static const int32_t at[][2] = {{0, 0}, {5, 3}, {20, 9}};
    for (size_t k = 0; k < 6; k++) {
        load(k & 1 ? HEAD SEND("cp.reduce.async.bulk.tensor", ".add")
                   : HEAD SEND("cp.async.bulk.tensor", ""));
        struct tensor_map m = make(2);
        assert_int_equal(run_at(&m, (uint32_t)at[k / 2][0], (uint32_t)at[k / 2][1], 0).kind, EXEC_NO_FAULT);
        check_sent(at[k / 2][0], at[k / 2][1], k & 1);
        exec_program_free(program);
    }
}

// Short rows are stored from where they would be loaded to.
static void good_short_rows_stored(void **state)
{
    load(HEAD SEND("cp.async.bulk.tensor", ""));
    struct tensor_map m = make(2);
    m.swizzle = 1;
    m.box[0] = 4;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_NO_FAULT);
    for (unsigned y = 0; y < 4; y++)
        for (unsigned x = 0; x < 8; x++)
            assert_int_equal(exec_testing_word(data + (y * COLUMNS + x) * 4),
                             x < 4 ? 1000 + y * 32 + x * 4 : element(x, y, 0));
    exec_program_free(program);
}

// A box that begins in front of the tensor can only be loaded.
static void bad_sent_before(void **state)
{
    static const int32_t at[][2] = {{-1, 0}, {0, -1}, {-8, 3}, {4, -4}, {INT32_MIN, INT32_MIN}};
    for (size_t k = 0; k < 2 * sizeof at / sizeof *at; k++) {
        load(k & 1 ? HEAD SEND("cp.reduce.async.bulk.tensor", ".add")
                   : HEAD SEND("cp.async.bulk.tensor", ""));
        struct tensor_map m = make(2);
        struct exec_fault f = run_at(&m, (uint32_t)at[k / 2][0], (uint32_t)at[k / 2][1], 0);
        assert_int_equal(f.kind, EXEC_ILLEGAL_INSTRUCTION);
        check_sent(COLUMNS, ROWS, false);
        exec_program_free(program);
    }
}

// Blocks that the cluster does not have.
static void bad_multicast(void **state)
{
    load(HEAD ".reg .b16 to; cvt.u16.u32 to, z;\n"
              "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
              ".multicast::cluster [tile], [m, {x, y}], [bar], to;\n" WAIT(128) SHOW);
    struct tensor_map m = make(2);
    assert_int_equal(run_at(&m, 0, 0, 1).kind, EXEC_NO_FAULT);
    expect_box(&m, 0, 0, 0, 0);
    assert_int_equal(run_at(&m, 0, 0, 3).kind, EXEC_ILLEGAL_INSTRUCTION);
    assert_int_equal(run_at(&m, 0, 0, 0x8001).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(program);
    load(HEAD ".reg .b16 to; cvt.u16.u32 to, z; ld.param.u64 d, [map];\n"
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
              "[tile], [d], 128, [bar], to;\n" WAIT(128) SHOW);
    memcpy(&m, &data, sizeof data);
    assert_int_equal(run_at(&m, 0, 0, 1).kind, EXEC_NO_FAULT);
    assert_int_equal(run_at(&m, 0, 0, 2).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(program);
}

// A kernel derives a map from another: it copies it to shared memory, changes it there, and copies it to
// global memory.
static void good_replaced(void **state)
{
    load(HEAD "mov.u64 s, tile; mov.u32 i, 0;\nC: cvt.u64.u32 d, i; add.u64 d, m, d; ld.b32 v, [d]; "
              "cvt.u64.u32 d, i;\n"
              "add.u64 d, s, d; st.shared.b32 [d], v; add.u32 i, i, 4; setp.lt.u32 p, i, 128; @p bra C;\n"
              "ld.param.u64 d, [map+16]; add.u64 d, d, 96;\n"
              "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s], d;\n"
              "mov.u32 v, 5; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [s], 1, v;\n"
              "mov.u64 d, 192; tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [s], 0, d;\n"
              "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [s], 0, 4;\n"
              "tensormap.replace.tile.rank.shared::cta.b1024.b32 [s], 1;\n"
              "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [o], "
              "[s], 128;\n"
              "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [o, "
              "{x, y}], [bar];\n" WAIT(64) SHOW);
    struct tensor_map m = make(3);
    assert_int_equal(run_at(&m, 1, 3, 0).kind, EXEC_NO_FAULT);
    for (unsigned b = 0; b < 4; b++)
        for (unsigned a = 0; a < 4; a++)
            assert_int_equal(exec_testing_word(out + (b * 4 + a) * 4),
                             b < 2 ? element(1 + a, 1 + 2 * (3 + b), 0) : 0);
    exec_program_free(program);
}

// A kernel makes a map from zeros, as Triton's do, and takes its parameter's address in 32 bits.
static void good_from_zeros(void **state)
{
    load(HEAD "mov.u64 s, tile; mov.u32 i, 0; mov.u32 v, 0;\nC: cvt.u64.u32 d, i;\n"
              "add.u64 d, s, d; st.shared.b32 [d], v; add.u32 i, i, 4; setp.lt.u32 p, i, 128; @p bra C;\n"
              "mov.b32 v, map; cvt.u64.u32 d, v; cvta.param.u64 d, d; ld.u64 d, [d];\n"
              "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s], d;\n"
              "tensormap.replace.tile.rank.shared::cta.b1024.b32 [s], 1;\n"
              "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [s], 0, 4;\n"
              "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [s], 1, 2;\n"
              "mov.u32 v, 24; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [s], 0, v;\n"
              "mov.u32 v, 11; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [s], 1, v;\n"
              "mov.u64 d, 96; tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [s], 0, d;\n"
              "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [s], 0, 1;\n"
              "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [s], 1, 1;\n"
              "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [s], 2;\n"
              "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [s], 0;\n"
              "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [o], "
              "[s], 128;\n"
              "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [o, "
              "{x, y}], [bar];\n" WAIT(32) SHOW);
    struct tensor_map m = {0};
    memcpy(&m, &data, sizeof data);  // the kernel takes only an address from its parameter
    assert_int_equal(run_at(&m, 1, 3, 0).kind, EXEC_NO_FAULT);
    for (unsigned b = 0; b < 2; b++)
        for (unsigned a = 0; a < 4; a++)
            assert_int_equal(exec_testing_word(out + (b * 4 + a) * 4), element(1 + a, 3 + b, 0));
    exec_program_free(program);
}

// Of a map that is made from zeros, fields whose number is 0 need not be written: one dimension, bytes.
static void good_fields_of_zeros(void **state)
{
    load(HEAD "mov.u64 s, tile; mov.u32 i, 0; mov.u32 v, 0;\nC: cvt.u64.u32 d, i;\n"
              "add.u64 d, s, d; st.shared.b32 [d], v; add.u32 i, i, 4; setp.lt.u32 p, i, 128; @p bra C;\n"
              "ld.param.u64 d, [map];\n"
              "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s], d;\n"
              "mov.u32 v, 32; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [s], 0, v;\n"
              "mov.u32 v, 64; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [s], 0, v;\n"
              "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [o], "
              "[s], 128;\n"
              "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [o, "
              "{x}], [bar];\n" WAIT(32) SHOW);
    struct tensor_map m = {0};
    memcpy(&m, &data, sizeof data);
    assert_int_equal(run_at(&m, 16, 0, 0).kind, EXEC_NO_FAULT);
    for (unsigned a = 0; a < 8; a++)
        assert_int_equal(exec_testing_word(out + a * 4), element(4 + a, 0, 0));
    exec_program_free(program);
}

// --- im2col ------------------------------------------------------------------------------------------------

enum { CHANNELS = 8, WIDE = 6, HIGH = 5, PICTURES = 3, PIXELS = 20 };

static uint32_t pixel(int64_t c, int64_t x, int64_t y, int64_t n)
{
    if (c >= CHANNELS || x < 0 || x >= WIDE || y < 0 || y >= HIGH || n < 0 || n >= PICTURES)
        return 0;
    return (uint32_t)(((n * HIGH + y) * WIDE + x) * CHANNELS + c + 1);
}

static struct tensor_map pictures(void)
{
    struct tensor_map m = {.magic = TENSOR_MAGIC,
                           .rank = 4,
                           .type = TENSOR_U32,
                           .address = data,
                           .stride = {4, CHANNELS * 4, WIDE * CHANNELS * 4, HIGH * WIDE * CHANNELS * 4},
                           .last = {CHANNELS - 1, WIDE - 1, HIGH - 1, PICTURES - 1},
                           .box = {4, PIXELS, 1, 1},
                           .step = {1, 1, 1, 1, 1},
                           .by_columns = 1};
    return m;
}

// Checks the pixels of all images in order, within the bounding box, from the first pixel that is asked for.
static void expect_pixels(const struct tensor_map *m, int first_x, int first_y, int shift_x, int shift_y)
{
    unsigned found = 0;
    bool begun = false;
    for (int n = 1; n <= PICTURES; n++)
        for (int y = m->lower[1]; y <= HIGH - 1 + m->upper[1]; y += m->step[2])
            for (int x = m->lower[0]; x <= WIDE - 1 + m->upper[0]; x += m->step[1]) {
                begun |= n == 1 && y == first_y && x == first_x;
                for (unsigned c = 0; begun && found < PIXELS && c < 4; c++)
                    assert_int_equal(exec_testing_word(out + (found * 4 + c) * 4),
                                     pixel(2 + c, x + shift_x, y + shift_y, n));
                found += begun;
            }
    assert_true(found >= PIXELS);
}

#define COLUMNS4                                                                                             \
    ".reg .b16 sx, sy; mov.b16 sx, 2; mov.b16 sy, 1;\n"                                                      \
    "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], [m, {2, x, " \
    "y, z}], [bar], {sx, sy};\n"

static void good_columns(void **state)
{
    load(HEAD COLUMNS4 WAIT(320) SHOW);
    struct tensor_map m = pictures();
    assert_int_equal(run_at(&m, 1, 2, 1).kind, EXEC_NO_FAULT);
    expect_pixels(&m, 1, 2, 2, 1);
    // A bounding box that exceeds the image on one side and is smaller on the other; and every second pixel.
    m.lower[0] = m.lower[1] = -1;
    m.upper[0] = -2;
    m.upper[1] = -1;
    assert_int_equal(run_at(&m, UINT32_MAX, UINT32_MAX, 1).kind, EXEC_NO_FAULT);
    expect_pixels(&m, -1, -1, 2, 1);
    m.upper[0] = 1;
    m.step[1] = 2;
    m.step[2] = 3;
    assert_int_equal(run_at(&m, 1, UINT32_MAX, 1).kind, EXEC_NO_FAULT);
    expect_pixels(&m, 1, -1, 2, 1);
    exec_program_free(program);
}

static void bad_columns(void **state)
{
    load(HEAD COLUMNS4 "ret;\n}\n");
    struct tensor_map m = pictures();
    m.by_columns = 0;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    m = pictures();
    m.box[2] = 2;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    m = pictures();
    m.box[1] = 1025;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(program);
    load(HEAD LOAD("4d", "{x, y, z, z}") "ret;\n}\n");
    m = pictures();
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(program);
}

// Stores from shared memory, which holds 1000, 1004, ...: a row of a one-dimensional image, and the next
// image's.
static void good_columns_stored(void **state)
{
    load(HEAD
         "mov.u32 i, 0;\nF: cvt.u64.u32 d, i; add.u64 s, d, tile; add.u32 v, i, 1000; st.shared.b32 [s], v; "
         "add.u32 i, i, 4;\nsetp.lt.u32 p, i, 128; @p bra F;\n"
         "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [m, {0, x, y}], [tile];\n"
         "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;\n}\n");
    struct tensor_map m = pictures();
    m.rank = 3;
    m.stride[2] = WIDE * CHANNELS * 4;
    m.last[2] = PICTURES - 1;
    m.box[1] = 5;
    m.box[0] = 4;
    assert_int_equal(run_at(&m, 4, 1, 0).kind, EXEC_NO_FAULT);
    for (int n = 0; n < PICTURES; n++)
        for (int x = 0; x < WIDE; x++)
            for (int c = 0; c < CHANNELS; c++) {
                int at = (n - 1) * WIDE + x - 4;
                bool sent = at >= 0 && at < 5 && c < 4;
                assert_int_equal(exec_testing_word(data + (uint64_t)((n * WIDE + x) * CHANNELS + c) * 4),
                                 sent ? 1000 + (at * 4 + c) * 4 : (n * WIDE + x) * CHANNELS + c + 1);
            }
    m.lower[0] = -1;
    assert_int_equal(run_at(&m, UINT32_MAX, 1, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(program);
}

static void bad_maps(void **state)
{
    load(HEAD LOAD("2d", "{x, y}") "ret;\n}\n");
    struct tensor_map good = make(2);
    assert_int_equal(run_at(&good, 0, 0, 0).kind, EXEC_NO_FAULT);
    struct tensor_map m = good;
    m.magic = 0;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    m = good;
    m.rank = 3;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    m = good;
    m.step[1] = 0;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    m = good;
    m.nan_fill = 2;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    m = good;
    m.box[0] = 6;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    m = good;
    m.address = 0x123450000000;
    struct exec_fault f = run_at(&m, 0, 0, 0);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(f.address, m.address);
    assert_true(str_starts(f.instruction, STR("cp.async.bulk.tensor")));
    // The destination exceeds shared memory.
    m = good;
    m.box[0] = m.box[1] = 256;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_ADDRESS);
    exec_program_free(program);
    // The box exceeds any shared memory, and 32 bits.
    load(HEAD LOAD("4d", "{x, y, z, z}") "ret;\n}\n");
    m = make(4);
    m.type = TENSOR_U8;
    for (unsigned k = 0; k < 4; k++)
        m.box[k] = 256;
    assert_int_equal(run_at(&m, 0, 0, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(program);
}

static struct exec_fault run_typed(enum tensor_type type, uint16_t columns)
{
    struct tensor_map m = make(2);
    m.type = (uint8_t)type;
    m.stride[0] = tensor_type_bytes(type);
    m.last[0] = (uint32_t)(COLUMNS * 4 / m.stride[0]) - 1;
    m.box[0] = columns;
    return run_at(&m, 0, 0, 0);
}

// A reduction of elements of a type that the hardware does not reduce.
static void bad_reduced_types(void **state)
{
    load(HEAD SEND("cp.reduce.async.bulk.tensor", ".and"));
    assert_int_equal(run_typed(TENSOR_U32, 8).kind, EXEC_NO_FAULT);
    assert_int_equal(run_typed(TENSOR_U64, 4).kind, EXEC_NO_FAULT);
    assert_int_equal(run_typed(TENSOR_U8, 16).kind, EXEC_ILLEGAL_INSTRUCTION);
    assert_int_equal(run_typed(TENSOR_S64, 4).kind, EXEC_ILLEGAL_INSTRUCTION);
    assert_int_equal(run_typed(TENSOR_F32, 8).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(program);
    load(HEAD SEND("cp.reduce.async.bulk.tensor", ".add"));
    assert_int_equal(run_typed(TENSOR_F32, 8).kind, EXEC_NO_FAULT);
    assert_int_equal(run_typed(TENSOR_U64, 4).kind, EXEC_NO_FAULT);
    assert_int_equal(run_typed(TENSOR_F16, 8).kind, EXEC_NO_FAULT);
    assert_int_equal(run_typed(TENSOR_F64, 4).kind, EXEC_NO_FAULT);
    assert_int_equal(run_typed(TENSOR_S64, 4).kind, EXEC_ILLEGAL_INSTRUCTION);
    assert_int_equal(run_typed(TENSOR_U16, 8).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(program);
    load(HEAD SEND("cp.reduce.async.bulk.tensor", ".inc"));
    assert_int_equal(run_typed(TENSOR_U32, 8).kind, EXEC_NO_FAULT);
    assert_int_equal(run_typed(TENSOR_U64, 4).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(program);
    load(HEAD SEND("cp.reduce.async.bulk.tensor", ".max"));
    assert_int_equal(run_typed(TENSOR_S64, 4).kind, EXEC_NO_FAULT);
    assert_int_equal(run_typed(TENSOR_F32, 8).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(program);
}

// The address in shared memory must be a multiple of 128, whatever the box and the swizzle are.
static void bad_shared_alignment(void **state)
{
    static const char *const texts[] = {
        HEAD "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile+64], "
             "[m, {x, y}], [bar];\nret;\n}\n",
        HEAD "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [m, {x, y}], [tile+16];\nret;\n}\n",
    };
    for (unsigned k = 0; k < 2; k++) {
        load(texts[k]);
        for (uint8_t swizzle = 0; swizzle < 4; swizzle++) {
            struct tensor_map m = make(2);
            m.swizzle = swizzle;
            struct exec_fault f = run_at(&m, 0, 0, 0);
            assert_int_equal(f.kind, EXEC_MISALIGNED_ADDRESS);
            assert_int_equal(f.address % 128, k ? 16 : 64);
        }
        exec_program_free(program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_loads),          cmocka_unit_test(good_swizzles),
        cmocka_unit_test(good_stores),         cmocka_unit_test(good_replaced),
        cmocka_unit_test(good_from_zeros),     cmocka_unit_test(bad_maps),
        cmocka_unit_test(bad_reduced_types),   cmocka_unit_test(bad_shared_alignment),
        cmocka_unit_test(good_columns),        cmocka_unit_test(bad_columns),
        cmocka_unit_test(good_columns_stored), cmocka_unit_test(good_fields_of_zeros),
        cmocka_unit_test(good_short_rows),     cmocka_unit_test(good_short_rows_stored),
        cmocka_unit_test(bad_sent_before),     cmocka_unit_test(bad_multicast),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
