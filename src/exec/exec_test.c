// SPDX-License-Identifier: MIT
// The executor on small kernels, without a driver.
#include "base/mem.h"
#include "exec/exec_testing.h"
#include "exec/lane.h"
#include "ptx/op.h"

static struct exec_fault fault;

static void launch_shape(struct exec_program *p, const char *kernel, unsigned blocks, unsigned threads,
                         bool cooperative, const void *params)
{
    struct exec_launch l = exec_testing_launch(p, kernel, blocks, threads, params);
    l.stack_size = 4096;
    l.cooperative = cooperative;
    fault = exec_testing_run(&l, 10000000);
}

static void launch(struct exec_program *p, const char *kernel, unsigned blocks, unsigned threads,
                   const void *params)
{
    launch_shape(p, kernel, blocks, threads, false, params);
}

// --- kernels -----------------------------------------------------------------------------------------------

static void adds_vectors(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".visible .entry add(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n"
        ".reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n"
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];\n"
        "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
        "mad.lo.s32 %r5, %r2, %r3, %r4; setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE;\n"
        "mul.wide.s32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n"
        "ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd5]; add.f32 %f3, %f1, %f2; st.global.f32 "
        "[%rd4], %f3;\n"
        "DONE: ret;\n}\n");
    enum { N = 1000 };
    uint64_t a = exec_testing_take(N * 4, 256), b = exec_testing_take(N * 4, 256);
    float *ha = (float *)space_host(a), *hb = (float *)space_host(b);
    for (int k = 0; k < N; k++) {
        ha[k] = (float)k;
        hb[k] = (float)(2 * k);
    }
    struct {
        uint64_t a, b;
        uint32_t n;
    } params = {a, b, N};
    launch(p, "add", 8, 128, &params);
    assert_int_equal(fault.kind, EXEC_NO_FAULT);
    for (int k = 0; k < N; k++)
        assert_true(ha[k] == (float)(3 * k));
    exec_program_free(p);
}

static void diverges_and_reconverges(void **state)
{
    // Each thread loops tid times, then odd ones add 100; at the end all must have reconverged.
    struct exec_program *p = exec_testing_text(
        ".visible .entry k(.param .u64 out)\n{\n"
        ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
        "LOOP: setp.ge.u32 %p1, %r3, %r1; @%p1 bra END; add.u32 %r2, %r2, %r3; add.u32 %r3, %r3, 1; bra "
        "LOOP;\n"
        "END: and.b32 %r4, %r1, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra EVEN; add.u32 %r2, %r2, 100; bra JOIN;\n"
        "EVEN: add.u32 %r2, %r2, 1000;\n"
        "JOIN: activemask.b32 %r5; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd3, %rd1, %rd2;\n"
        "st.global.v2.u32 [%rd3], {%r2, %r5}; ret;\n}\n");
    uint64_t out = exec_testing_take(64 * 8, 256);
    launch(p, "k", 1, 64, &out);
    const uint32_t *h = (const uint32_t *)space_host(out);
    for (uint32_t t = 0; t < 64; t++) {
        assert_int_equal(h[2 * t], t * (t - 1) / 2 * (t > 0) + (t & 1 ? 100 : 1000));
        assert_int_equal(h[2 * t + 1], UINT32_MAX);
    }
    exec_program_free(p);
}

static void waits_at_barriers(void **state)
{
    struct exec_program *p =
        exec_testing_text(".visible .entry rev(.param .u64 out)\n{\n"
                          ".reg .b32 %r<9>; .reg .b64 %rd<4>; .shared .align 4 .b8 buf[1024];\n"
                          "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, buf; "
                          "shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;\n"
                          "st.shared.u32 [%r4], %r1; bar.sync 0; mov.u32 %r5, 255; sub.u32 %r6, "
                          "%r5, %r1; shl.b32 %r6, %r6, 2;\n"
                          "add.u32 %r7, %r2, %r6; ld.shared.u32 %r8, [%r7]; mul.wide.u32 %rd2, "
                          "%r1, 4; add.s64 %rd3, %rd1, %rd2;\n"
                          "st.global.u32 [%rd3], %r8; ret;\n}\n");
    uint64_t out = exec_testing_take(256 * 4, 256);
    launch(p, "rev", 3, 256, &out);
    assert_int_equal(fault.kind, EXEC_NO_FAULT);
    for (uint32_t t = 0; t < 256; t++)
        assert_int_equal(((const uint32_t *)space_host(out))[t], 255 - t);
    exec_program_free(p);
}

static void names_several_barriers(void **state)
{
    // Odd threads wait at barrier 2, even ones at barrier 1; then all arrive at others without waiting.
    struct exec_program *p = exec_testing_text(
        ".visible .entry k(.param .u64 out)\n{\n"
        ".reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; add.u32 %r3, %r2, 1;\n"
        "setp.ne.u32 %p1, %r2, 0; barrier.cta.red.popc.u32 %r4, %r3, 32, %p1;\n"
        "add.u32 %r3, %r3, 4; shr.u32 %r6, %r1, 5; setp.ne.u32 %p1, %r6, 0; @%p1 bra LAST;\n"
        "barrier.cta.arrive %r3, 32; bra DONE;\n"
        "LAST: barrier.cta.sync %r3, 32;\n"
        "DONE: mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r4; ret;\n}\n");
    uint64_t out = exec_testing_take(64 * 4, 256);
    launch(p, "k", 1, 64, &out);
    assert_int_equal(fault.kind, EXEC_NO_FAULT);
    for (uint32_t t = 0; t < 64; t++)
        assert_int_equal(exec_testing_word(out + t * 4), t & 1 ? 32 : 0);
    exec_program_free(p);
}

// Blocks that cannot start for lack of memory wait for others to end.
static void blocks_wait_for_memory(void **state)
{
    enum { BLOCKS = 12 };
    struct exec_program *p =
        exec_testing_text(".global .u32 count;\n.visible .entry k()\n{ .reg .b32 %r; nanosleep.u32 1; "
                          "nanosleep.u32 1; nanosleep.u32 1; atom.global.add.u32 %r, [count], 1; ret; }\n");
    uint64_t at = exec_find_variable(p, STR("count"))->address;
    for (int n = 0; n < 40; n++)
        for (int cooperative = 0; cooperative < 2; cooperative++) {
            struct exec_launch l = exec_testing_launch(p, "k", BLOCKS, 64, NULL);
            l.cooperative = cooperative;
            struct exec_runner *r = exec_runner_new();
            struct exec_grid *g = exec_grid_new(&l, NULL);
            memset(space_host(at), 0, 4);
            assert_int_equal(exec_grid_step(g, r), EXEC_SPUN);
            mem_fail_after(n);
            unsigned steps = 0;
            while (exec_grid_step(g, r) != EXEC_DONE && ++steps < 1000)
                ;
            mem_fail_after(-1);
            assert_true(steps < 1000);
            enum exec_fault_kind kind = exec_grid_fault(g)->kind;
            // Blocks of a cooperative grid would wait forever.
            assert_true(kind == EXEC_NO_FAULT || (cooperative && kind == EXEC_OUT_OF_MEMORY));
            assert_true(kind != EXEC_NO_FAULT || exec_testing_word(at) == BLOCKS * 64);
            assert_true(!cooperative || n || kind == EXEC_OUT_OF_MEMORY);
            exec_grid_free(g);
            exec_runner_free(r);
        }
    exec_program_free(p);
}

static void recurses(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".func (.param .b32 r) fib(.param .b32 n)\n{\n"
        ".reg .pred %p<2>; .reg .b32 %r<9>;\n"
        "ld.param.u32 %r1, [n]; setp.lt.u32 %p1, %r1, 2; @%p1 bra BASE; sub.u32 %r2, %r1, 1; sub.u32 "
        "%r3, %r1, 2;\n"
        "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r2; call (v), fib, (a); ld.param.b32 "
        "%r4, [v]; }\n"
        "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r3; call (v), fib, (a); ld.param.b32 "
        "%r5, [v]; }\n"
        "add.u32 %r1, %r4, %r5;\n"
        "BASE: st.param.b32 [r], %r1; ret;\n}\n"
        ".visible .entry k(.param .u64 out)\n{\n"
        ".reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;\n"
        "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r1; call (v), fib, (a); ld.param.b32 "
        "%r2, [v]; }\n"
        "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2; ret;\n}\n");
    uint64_t out = exec_testing_take(16 * 4, 256);
    launch(p, "k", 1, 16, &out);
    assert_int_equal(fault.kind, EXEC_NO_FAULT);
    static const uint32_t fib[16] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610};
    assert_memory_equal(space_host(out), fib, sizeof fib);
    exec_program_free(p);
}

static void takes_locks(void **state)
{
    // Every thread takes one lock: lanes, warps and blocks must all make progress.
    struct exec_program *p = exec_testing_text(
        ".global .u32 lock; .global .u32 count;\n"
        ".visible .entry k()\n{\n"
        ".reg .pred %p<2>; .reg .b32 %r<9>;\n"
        "SPIN: atom.global.cas.b32 %r1, [lock], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra SPIN;\n"
        "ld.volatile.global.u32 %r2, [count]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [count], %r2;\n"
        "membar.gl; atom.global.exch.b32 %r3, [lock], 0; ret;\n}\n");
    launch(p, "k", 4, 96, NULL);
    assert_int_equal(fault.kind, EXEC_NO_FAULT);
    const struct exec_variable *v = exec_find_variable(p, STR("count"));
    assert_int_equal(*(const uint32_t *)space_host(v->address), 4 * 96);
    exec_program_free(p);
}

static void blocks_wait_for_one_another(void **state)
{
    // A grid barrier: every block must be in progress before any may end.
    struct exec_program *p = exec_testing_text(
        ".global .u32 arrived;\n"
        ".visible .entry k()\n{\n"
        ".reg .pred %p<3>; .reg .b32 %r<9>;\n"
        "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT; atom.global.add.u32 %r2, [arrived], "
        "1;\n"
        "WAIT: ld.volatile.global.u32 %r3, [arrived]; setp.lt.u32 %p2, %r3, 20; @%p2 bra WAIT; ret;\n}\n");
    launch_shape(p, "k", 20, 64, true, NULL);
    assert_int_equal(fault.kind, EXEC_NO_FAULT);
    exec_program_free(p);
}

// A thread takes blocks in runs: a block that waits for the next one of its own run must not keep it from
// starting.
static void blocks_wait_for_the_next(void **state)
{
    enum { BLOCKS = 1200 };
    struct exec_program *p = exec_testing_text(
        ".global .u32 done[1201]; .global .u32 count;\n"
        ".visible .entry k()\n{\n"
        ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>;\n"
        "mov.u32 %r1, %ctaid.x; mul.wide.u32 %d1, %r1, 4; mov.u64 %d2, done; add.u64 %d2, %d2, %d1;\n"
        "st.volatile.global.u32 [%d2], 1; atom.global.add.u32 %r2, [count], 1;\n"
        "rem.u32 %r3, %r1, 300; setp.ne.u32 %p1, %r3, 3; @%p1 bra END;\n"
        "WAIT: ld.volatile.global.u32 %r4, [%d2+4]; setp.eq.u32 %p2, %r4, 0; @%p2 bra WAIT;\n"
        "END: ret;\n}\n");
    launch(p, "k", BLOCKS, 1, NULL);
    assert_int_equal(fault.kind, EXEC_NO_FAULT);
    uint64_t done = exec_find_variable(p, STR("done"))->address;
    for (unsigned n = 0; n < BLOCKS; n++)
        assert_int_equal(exec_testing_word(done + 4 * n), 1);
    assert_int_equal(exec_testing_word(exec_find_variable(p, STR("count"))->address), BLOCKS);
    exec_program_free(p);
}

static void shuffles_after_parting(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".visible .entry k(.param .u64 out)\n{\n"
        ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 10; mov.u32 %r2, 7;\n"
        "@%p1 bra A; mul.lo.u32 %r2, %r1, 3; bra B;\n"
        "A: mul.lo.u32 %r2, %r1, 5;\n"
        "B: shfl.sync.bfly.b32 %r3|%p2, %r2, 1, 31, 0xffffffff;\n"
        "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r3; ret;\n}\n");
    uint64_t out = exec_testing_take(32 * 4, 256);
    launch(p, "k", 1, 32, &out);
    assert_int_equal(fault.kind, EXEC_NO_FAULT);
    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(((const uint32_t *)space_host(out))[t], (t ^ 1) * ((t ^ 1) < 10 ? 5 : 3));
    exec_program_free(p);
}

// A sum over the first lanes, which read lanes that take no part: those give 0, so that the sum is right. The
// others wait behind the branch (leave == 0) or have ended.
static void shuffles_from_absent_lanes(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".visible .entry k(.param .u64 out, .param .u32 count, .param .u32 leave)\n{\n"
        ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [out]; ld.param.u32 %r5, [count]; ld.param.u32 %r6, [leave];\n"
        "mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 100; setp.lt.u32 %p1, %r1, %r5; setp.ne.u32 %p2, %r6, 0;\n"
        "vote.sync.ballot.b32 %r7, %p1, 0xffffffff;\n"
        "@%p1 bra A; @%p2 ret; bra B;\n"
        "A: shfl.sync.down.b32 %r3|%p3, %r2, 16, 31, %r7; add.u32 %r2, %r2, %r3;\n"
        "shfl.sync.down.b32 %r3, %r2, 8, 31, %r7; add.u32 %r2, %r2, %r3;\n"
        "shfl.sync.bfly.b32 %r3, %r2, 4, 31, %r7; add.u32 %r2, %r2, %r3;\n"
        "B: mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2; ret;\n}\n");
    for (uint32_t leave = 0; leave < 2; leave++) {
        struct {
            uint64_t out;
            uint32_t count, leave;
        } params = {exec_testing_take(32 * 4, 256), 3, leave};
        launch(p, "k", 1, 32, &params);
        assert_int_equal(fault.kind, EXEC_NO_FAULT);
        for (uint32_t t = 0; t < 3; t++)
            assert_int_equal(((const uint32_t *)space_host(params.out))[t], 100 + t);
    }
    exec_program_free(p);
}

static void faults_are_exact(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".visible .entry k(.param .u64 at)\n{\n"
        ".reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n"
        "st.global.u32 [%rd3], %r1;\nret;\n}\n");
    uint64_t at = space.device_base + EXEC_TESTING_MEMORY - 40;
    launch(p, "k", 1, 32, &at);
    assert_int_equal(fault.kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(fault.address, space.device_base + EXEC_TESTING_MEMORY);
    assert_int_equal(fault.thread[0], 10);
    assert_true(fault.write);
    assert_int_equal(fault.size, 4);
    assert_int_equal(fault.line, 8);
    at = space.device_base + 2;
    launch(p, "k", 1, 32, &at);
    assert_int_equal(fault.kind, EXEC_MISALIGNED_ADDRESS);
    at = 0;
    launch(p, "k", 1, 32, &at);
    assert_int_equal(fault.kind, EXEC_ILLEGAL_ADDRESS);
    exec_program_free(p);
}

static void prints(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 fmt[10] = {37, 100, 58, 37, 46, 49, 102, 10};\n"
        ".visible .entry k()\n{\n"
        ".local .align 8 .b8 depot[16]; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
        "mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; mov.u32 %r1, %tid.x; st.local.u32 [%rd1], %r1;\n"
        "mov.b64 %rd3, 0d3FF8000000000000; st.u64 [%rd2+8], %rd3; mov.u64 %rd4, fmt; cvta.global.u64 %rd5, "
        "%rd4;\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 v; st.param.b64 [a], %rd5; st.param.b64 [b], %rd2;\n"
        "call (v), vprintf, (a, b); }\nret;\n}\n");
    launch(p, "k", 1, 3, NULL);
    assert_int_equal(fault.kind, EXEC_NO_FAULT);
    assert_string_equal(exec_testing.printed, "0:1.5\n1:1.5\n2:1.5\n");
    exec_program_free(p);
}

// --- special registers -------------------------------------------------------------------------------------

enum { SPECIALS = 17 };
static const char *const specials[SPECIALS] = {"%tid.x",    "%tid.y",   "%tid.z",    "%tid.w",    "%ntid.x",
                                               "%ntid.y",   "%ntid.z",  "%ntid.w",   "%ctaid.x",  "%ctaid.y",
                                               "%ctaid.z",  "%ctaid.w", "%nctaid.x", "%nctaid.y", "%nctaid.z",
                                               "%nctaid.w", "%laneid"};

// Thread t of all stores each register as all lanes see it, and as 32 and 16 bits that odd lanes read while
// the others keep 77.
static struct exec_program *reads_all(void)
{
    char text[8192];
    int at = snprintf(
        text, sizeof text,
        ".entry k(.param .u64 out)\n{\n.reg .pred p; .reg .b16 h; .reg .b32 a, b, t; .reg .b64 o, w;\n"
        "ld.param.u64 o, [out]; mov.u32 a, %%ctaid.z; mad.lo.u32 a, a, 3, %%ctaid.y;\n"
        "mad.lo.u32 a, a, 2, %%ctaid.x; mad.lo.u32 a, a, 4, %%tid.z; mad.lo.u32 a, a, 3, %%tid.y;\n"
        "mad.lo.u32 a, a, 5, %%tid.x; mad.wide.u32 o, a, %d, o;\n"
        "mov.u32 t, %%laneid; and.b32 t, t, 1; setp.eq.u32 p, t, 1;\n",
        SPECIALS * 16);
    for (int k = 0; k < SPECIALS; k++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "mov.u32 a, %s; mov.u32 b, 77; @p mov.u32 b, %s; mov.u16 h, 77; @p mov.u16 h, %s; "
                       "cvt.u64.u16 w, h;\n"
                       "st.global.u32 [o+%d], a; st.global.u32 [o+%d], b; st.global.u64 [o+%d], w;\n",
                       specials[k], specials[k], specials[k], 16 * k, 16 * k + 4, 16 * k + 8);
    snprintf(text + at, sizeof text - (size_t)at, "ret;\n}\n");
    return exec_testing_text(text);
}

struct special_values {
    uint32_t all, odd;
    uint64_t narrow;
};

static void check_specials(const struct special_values *v, uint32_t t, const uint32_t block[3],
                           const uint32_t grid[3])
{
    uint32_t own = t % 60, b = t / 60;
    const uint32_t want[SPECIALS] = {own % 5,  own / 5 % 3, own / 15, 0,         block[0], block[1],
                                     block[2], 0,           b % 2,    b / 2 % 3, b / 6,    0,
                                     grid[0],  grid[1],     grid[2],  0,         own % 32};
    for (unsigned k = 0; k < SPECIALS; k++)
        if (v[k].all != want[k] || v[k].odd != (own % 2 ? want[k] : 77) || v[k].narrow != v[k].odd)
            fail_msg("%s of thread %u on %s: %u, %u and %llu for %u", specials[k], t, exec_lanes_name(),
                     v[k].all, v[k].odd, (unsigned long long)v[k].narrow, want[k]);
}

static void reads_special_registers(void **state)
{
    static const enum ptx_sreg common[] = {PTX_SREG_TID, PTX_SREG_LANEID, PTX_SREG_NTID, PTX_SREG_CTAID,
                                           PTX_SREG_NCTAID};
    uint16_t row;
    for (unsigned k = 0; k < sizeof common / sizeof *common; k++)
        assert_int_equal(lane_special(common[k], 0, &row), 0);
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    enum { THREADS = 60 * 12 };
    for (unsigned s = 0; s < 3; s++) {
        if (exec_lanes_force(sets[s]))
            continue;
        exec_testing.used = 0;
        struct exec_program *p = reads_all();
        uint64_t out = exec_testing_take(THREADS * SPECIALS * sizeof(struct special_values), 256);
        assert_int_not_equal(out, 0);
        struct exec_launch l = exec_testing_launch(p, "k", 1, 1, &out);
        memcpy(l.grid, (const uint32_t[]){2, 3, 2}, sizeof l.grid);
        memcpy(l.block, (const uint32_t[]){5, 3, 4}, sizeof l.block);
        assert_int_equal(exec_testing_run(&l, 100000).kind, EXEC_NO_FAULT);
        const struct special_values *v = (const void *)space_host(out);
        for (uint32_t t = 0; t < THREADS; t++)
            check_specials(v + (size_t)t * SPECIALS, t, l.block, l.grid);
        exec_program_free(p);
    }
    exec_lanes_force(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_vectors),
        cmocka_unit_test(diverges_and_reconverges),
        cmocka_unit_test(waits_at_barriers),
        cmocka_unit_test(names_several_barriers),
        cmocka_unit_test(blocks_wait_for_memory),
        cmocka_unit_test(recurses),
        cmocka_unit_test(takes_locks),
        cmocka_unit_test(blocks_wait_for_one_another),
        cmocka_unit_test(blocks_wait_for_the_next),
        cmocka_unit_test(shuffles_after_parting),
        cmocka_unit_test(shuffles_from_absent_lanes),
        cmocka_unit_test(faults_are_exact),
        cmocka_unit_test(prints),
        cmocka_unit_test(reads_special_registers),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
