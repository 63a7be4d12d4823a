// SPDX-License-Identifier: MIT
// The device runtime: queries, copies and events of kernels, and the limit of pending launches.
#include "cpu/whole_testing.h"

// go: launches k(p, v) with one thread into a stream; 99: the launch could not be prepared. twice: *p = 2 *
// *p + v, after a delay, so that what runs too early is seen. hold: waits for *p. floods, records: launch as
// many operations as they can that cannot end before the kernel lets them; return their number and the error.
// deeper: launches itself without end. late, opens, events: two streams, the second behind an event in the
// first; an event that was never recorded, for which nobody waits; and a third stream, without which the
// first does not get on. fills: a box, of a cudaPitchedPtr and a cudaExtent. texts: an error's name and text,
// in 128 bytes each.
static const char ptx[] =
    ".version 8.0\n"
    ".target sm_90\n"
    ".address_size 64\n"
    ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f,\n"
    "    .param .align 4 .b8 g[12],\n"
    "    .param .align 4 .b8 b[12], .param .b32 s);\n"
    ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p0, .param .b64 p1);\n"
    ".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n"
    ".extern .func (.param .b32 r) __cudaCDP2StreamCreateWithFlags(.param .b64 p0, .param .b32 p1);\n"
    ".extern .func (.param .b32 r) __cudaCDP2EventCreateWithFlags(.param .b64 p0, .param .b32 p1);\n"
    ".extern .func (.param .b32 r) __cudaCDP2EventRecord(.param .b64 p0, .param .b64 p1);\n"
    ".extern .func (.param .b32 r) __cudaCDP2EventDestroy(.param .b64 p0);\n"
    ".extern .func (.param .b32 r) __cudaCDP2StreamWaitEvent(.param .b64 p0, .param .b64 p1,\n"
    "    .param .b32 p2);\n"
    ".extern .func (.param .b32 r) __cudaCDP2Memcpy2DAsync(.param .b64 p0, .param .b64 p1,\n"
    "    .param .b64 p2, .param .b64 p3, .param .b64 p4, .param .b64 p5, .param .b32 p6,\n"
    "    .param .b64 p7);\n"
    ".extern .func (.param .b32 r) __cudaCDP2Memset2DAsync(.param .b64 p0, .param .b64 p1,\n"
    "    .param .b32 p2, .param .b64 p3, .param .b64 p4, .param .b64 p5);\n"
    ".extern .func (.param .b32 r) __cudaCDP2Memcpy3DAsync(.param .b64 p0, .param .b64 p1);\n"
    ".extern .func (.param .b32 r) __cudaCDP2Memset3DAsync(.param .align 8 .b8 p0[32], .param .b32 p1,\n"
    "    .param .align 8 .b8 p2[24], .param .b64 p3);\n"
    ".extern .func (.param .b64 r) __cudaCDP2GetErrorName(.param .b32 p0);\n"
    ".extern .func (.param .b64 r) __cudaCDP2GetErrorString(.param .b32 p0);\n"
    ".extern .func (.param .b32 r) __cudaCDP2GetDevice(.param .b64 p0);\n"
    ".extern .func (.param .b32 r) __cudaCDP2GetDeviceCount(.param .b64 p0);\n"
    ".extern .func (.param .b32 r) __cudaCDP2RuntimeGetVersion(.param .b64 p0);\n"
    ".extern .func (.param .b32 r) __cudaCDP2DeviceGetLimit(.param .b64 p0, .param .b32 p1);\n"
    ".extern .func (.param .b32 r) __cudaCDP2DeviceGetAttribute(.param .b64 p0, .param .b32 p1,\n"
    "    .param .b32 p2);\n"
    ".extern .func (.param .b32 r) __cudaCDP2FuncGetAttributes(.param .b64 p0, .param .b64 p1);\n"
    ".extern .func (.param .b32 r) __cudaCDP2OccupancyMaxActiveBlocksPerMultiprocessor(.param .b64 p0,\n"
    "    .param .b64 p1, .param .b32 p2, .param .b64 p3);\n"
    ".func (.reg .b32 e) go(.reg .b64 k, .reg .b64 p, .reg .b32 v, .reg .b64 s)\n"
    "{\n"
    ".reg .b64 at; .reg .pred q; .param .b64 a0; .param .align 4 .b8 a1[12], a2[12]; .param .b32 a3;\n"
    ".param .b64 r0;\n"
    "st.param.b64 [a0], k; st.param.b32 [a1], 1; st.param.b32 [a1+4], 1; st.param.b32 [a1+8], 1;\n"
    "st.param.b32 [a2], 1; st.param.b32 [a2+4], 1; st.param.b32 [a2+8], 1; st.param.b32 [a3], 0;\n"
    "call (r0), __cudaCDP2GetParameterBufferV2, (a0, a1, a2, a3);\n"
    "ld.param.b64 at, [r0]; mov.u32 e, 99;\n"
    "setp.eq.u64 q, at, 0; @q bra DONE;\n"
    "st.u64 [at], p; st.u32 [at+8], v;\n"
    "call (e), __cudaCDP2LaunchDeviceV2, (at, s);\n"
    "DONE: ret;\n"
    "}\n"
    ".visible .entry twice(.param .u64 p, .param .u32 v)\n"
    "{ .reg .b64 a; .reg .b32 b, c; ld.param.u64 a, [p]; ld.param.u32 b, [v];\n"
    "    ld.volatile.global.u32 c, [a];\n"
    "  nanosleep.u32 200000; mad.lo.u32 c, c, 2, b; st.volatile.global.u32 [a], c; ret; }\n"
    ".visible .entry hold(.param .u64 p, .param .u32 v)\n"
    "{ .reg .b64 a; .reg .b32 b; .reg .pred q; ld.param.u64 a, [p];\n"
    "L: ld.volatile.global.u32 b, [a]; setp.eq.u32 q, b, 0; @q bra L; ret; }\n"
    ".visible .entry floods(.param .u64 to, .param .u32 most)\n"
    "{ .reg .b64 a, k, n, s, t, v; .reg .b32 e, i, m; .reg .pred q; .local .align 8 .b8 room[160];\n"
    "  ld.param.u64 a, [to];\n"
    "  ld.param.u32 m, [most]; mov.u32 i, 0; mov.u64 k, hold;\n"
    "L: call (e), go, (k, a, 0, 0); setp.ne.u32 q, e, 0; @q bra DONE; add.u32 i, i, 1;\n"
    "  setp.lt.u32 q, i, m; @q bra L;\n"
    "DONE: st.global.u32 [a+4], i; call (e), __cudaCDP2GetLastError, (); st.global.u32 [a+8], e;\n"
    "  st.volatile.global.u32 [a], 1; ret; }\n"
    ".visible .entry records(.param .u64 to, .param .u32 most)\n"
    "{ .reg .b64 a, k, n, s, t, v; .reg .b32 e, i, m; .reg .pred q; .local .align 8 .b8 room[160];\n"
    "  ld.param.u64 a, [to];\n"
    "  ld.param.u32 m, [most]; mov.u32 i, 0; mov.u64 k, hold; call (e), go, (k, a, 0, 0);\n"
    "  mov.u64 s, 160;\n"
    "L: call (e), __cudaCDP2EventRecord, (s, 0); setp.ne.u32 q, e, 0; @q bra DONE; add.u32 i, i, 1;\n"
    "  setp.lt.u32 q, i, m; @q bra L;\n"
    "DONE: st.global.u32 [a+4], i; st.global.u32 [a+8], e; st.volatile.global.u32 [a], 1; ret; }\n"
    ".visible .entry deeper(.param .u64 to, .param .u32 unused)\n"
    "{ .reg .b64 a, k, n, s, t, v; .reg .b32 e, i, m; .reg .pred q; .local .align 8 .b8 room[160];\n"
    "  ld.param.u64 a, [to];\n"
    "  red.global.add.u32 [a], 1; mov.u64 k, deeper; call (e), go, (k, a, 0, 0); setp.eq.u32 q, e, 0;\n"
    "  @q ret; call (e), __cudaCDP2GetLastError, (); st.global.u32 [a+4], e; ret; }\n"
    ".visible .entry late(.param .u64 p, .param .u32 v)\n"
    "{ .reg .b64 a; .reg .b32 b, c; .reg .pred q; ld.param.u64 a, [p]; ld.param.u32 b, [v];\n"
    "L: ld.volatile.global.u32 c, [a+64]; setp.eq.u32 q, c, 0; @q bra L;\n"
    "  ld.volatile.global.u32 c, [a]; mad.lo.u32 c, c, 2, b; st.volatile.global.u32 [a], c; ret; }\n"
    ".visible .entry opens(.param .u64 p, .param .u32 v)\n"
    "{ .reg .b64 a; .reg .b32 n; .reg .pred q; ld.param.u64 a, [p]; mov.u32 n, 20;\n"
    "L: nanosleep.u32 1000000; sub.u32 n, n, 1; setp.ne.u32 q, n, 0; @q bra L;\n"
    "  st.volatile.global.u32 [a+64], 1; ret; }\n"
    ".visible .entry events(.param .u64 to)\n"
    "{ .reg .b64 a, k, n, s, t, v; .reg .b32 e, i, m; .reg .pred q; .local .align 8 .b8 room[160];\n"
    "  ld.param.u64 a, [to];\n"
    "  cvta.local.u64 t, room;\n"
    "  mov.u64 v, t; call (e), __cudaCDP2StreamCreateWithFlags, (v, 1);\n"
    "  add.u64 v, t, 8; call (e), __cudaCDP2StreamCreateWithFlags, (v, 1);\n"
    "  add.u64 v, t, 16; call (e), __cudaCDP2EventCreateWithFlags, (v, 2); st.global.u32 [a+4], e;\n"
    "  add.u64 v, t, 24; call (e), __cudaCDP2EventCreateWithFlags, (v, 2);\n"
    "  add.u64 v, t, 32; call (e), __cudaCDP2EventCreateWithFlags, (v, 0); st.global.u32 [a+8], e;\n"
    "  add.u64 v, t, 40; call (e), __cudaCDP2StreamCreateWithFlags, (v, 1);\n"
    "  mov.u64 k, late; ld.u64 s, [t]; ld.u64 n, [t+24];\n"
    "    call (e), __cudaCDP2StreamWaitEvent, (s, n, 0);\n"
    "  call (e), go, (k, a, 1, s); ld.u64 n, [t+16]; call (e), __cudaCDP2EventRecord, (n, s);\n"
    "  st.global.u32 [a+12], e; ld.u64 s, [t+8]; call (e), __cudaCDP2StreamWaitEvent, (s, n, 0);\n"
    "  st.global.u32 [a+16], e; mov.u64 k, twice; call (e), go, (k, a, 2, s);\n"
    "  mov.u64 k, opens; ld.u64 s, [t+40]; call (e), go, (k, a, 0, s);\n"
    "    call (e), __cudaCDP2EventDestroy, (n);\n"
    "  st.global.u32 [a+20], e; call (e), __cudaCDP2EventRecord, (n, 3); st.global.u32 [a+24], e; ret;\n"
    "    }\n"
    ".visible .entry planes(.param .u64 to)\n"
    "{ .reg .b64 a, k, n, s, t, v; .reg .b32 e, i, m; .reg .pred q; .local .align 8 .b8 room[160];\n"
    "  ld.param.u64 a, [to];\n"
    "  add.u64 v, a, 512; call (e), __cudaCDP2Memset2DAsync, (a, 16, 7, 4, 3, 0);\n"
    "    st.global.u32 [a+256], e;\n"
    "  call (e), __cudaCDP2Memcpy2DAsync, (v, 32, a, 16, 8, 3, 3, 0); st.global.u32 [a+260], e;\n"
    "  call (e), __cudaCDP2Memcpy2DAsync, (v, 4, a, 16, 8, 3, 3, 0); st.global.u32 [a+264], e; ret; }\n"
    ".visible .entry boxes(.param .u64 to, .param .align 8 .b8 box[160])\n"
    "{ .reg .b64 a, k, n, s, t, v; .reg .b32 e, i, m; .reg .pred q; .local .align 8 .b8 room[160];\n"
    "  ld.param.u64 a, [to];\n"
    "  .param .align 8 .b8 p0[32], p2[24]; .param .b32 p1, r; .param .b64 p3;\n"
    "  st.param.b64 [p0], a; st.param.b64 [p0+8], 16; st.param.b64 [p0+16], 16;\n"
    "    st.param.b64 [p0+24], 2;\n"
    "  st.param.b64 [p2], 3; st.param.b64 [p2+8], 2; st.param.b64 [p2+16], 2; st.param.b32 [p1], 9;\n"
    "  st.param.b64 [p3], 0; call (r), __cudaCDP2Memset3DAsync, (p0, p1, p2, p3); ld.param.b32 e, [r];\n"
    "  st.global.u32 [a+256], e; mov.u64 v, box; cvta.param.u64 v, v;\n"
    "  call (e), __cudaCDP2Memcpy3DAsync, (v, 0); st.global.u32 [a+260], e; ret; }\n"
    ".visible .entry fills(.param .u64 to, .param .align 8 .b8 box[56])\n"
    "{ .reg .b64 a, s, t, u, v; .reg .b32 e; .param .align 8 .b8 p0[32], p2[24]; .param .b32 p1, r;\n"
    "  .param .b64 p3; ld.param.u64 a, [to]; st.param.b32 [p1], 9; st.param.b64 [p3], 0;\n"
    "  ld.param.u64 s, [box]; ld.param.u64 t, [box+8]; ld.param.u64 u, [box+16];\n"
    "  ld.param.u64 v, [box+24]; st.param.b64 [p0], s; st.param.b64 [p0+8], t;\n"
    "  st.param.b64 [p0+16], u; st.param.b64 [p0+24], v;\n"
    "  ld.param.u64 s, [box+32]; ld.param.u64 t, [box+40]; ld.param.u64 u, [box+48];\n"
    "  st.param.b64 [p2], s; st.param.b64 [p2+8], t; st.param.b64 [p2+16], u;\n"
    "  call (r), __cudaCDP2Memset3DAsync, (p0, p1, p2, p3); ld.param.b32 e, [r];\n"
    "  st.global.u32 [a+256], e; ret; }\n"
    ".func text(.reg .b64 to, .reg .b64 from)\n"
    "{ .reg .b32 c, n; .reg .pred q; mov.u32 n, 127;\n"
    "L: ld.u8 c, [from]; st.u8 [to], c; setp.eq.u32 q, c, 0; @q ret; add.u64 to, to, 1;\n"
    "  add.u64 from, from, 1; sub.u32 n, n, 1; setp.ne.u32 q, n, 0; @q bra L; ret; }\n"
    ".visible .entry texts(.param .u64 to, .param .u32 error)\n"
    "{ .reg .b64 a, s; .reg .b32 e; ld.param.u64 a, [to]; ld.param.u32 e, [error];\n"
    "  call (s), __cudaCDP2GetErrorName, (e); call text, (a, s); add.u64 a, a, 128;\n"
    "  call (s), __cudaCDP2GetErrorString, (e); call text, (a, s); ret; }\n"
    ".visible .entry strays(.param .u64 to)\n"
    "{ .reg .b64 a, k, n, s, t, v; .reg .b32 e, i, m; .reg .pred q; .local .align 8 .b8 room[160];\n"
    "  ld.param.u64 a, [to];\n"
    "  call (e), __cudaCDP2Memcpy2DAsync, (a, 4194304, a, 8, 8, 3, 3, 0); ret; }\n"
    ".visible .entry asks(.param .u64 to)\n"
    "{ .reg .b64 a, k, n, s, t, v; .reg .b32 e, i, m; .reg .pred q; .local .align 8 .b8 room[160];\n"
    "  ld.param.u64 a, [to];\n"
    "  call (e), __cudaCDP2GetDevice, (a); add.u64 v, a, 4; call (e), __cudaCDP2GetDeviceCount, (v);\n"
    "  add.u64 v, a, 8; call (e), __cudaCDP2RuntimeGetVersion, (v); add.u64 v, a, 16;\n"
    "  call (e), __cudaCDP2DeviceGetLimit, (v, 4); add.u64 v, a, 24;\n"
    "    call (e), __cudaCDP2DeviceGetAttribute, (v, 1, 0);\n"
    "  add.u64 v, a, 28; mov.u64 k, twice;\n"
    "  call (e), __cudaCDP2OccupancyMaxActiveBlocksPerMultiprocessor, (v, k, 128, 0);\n"
    "    st.global.u32 [a+32], e;\n"
    "  add.u64 v, a, 64; call (e), __cudaCDP2FuncGetAttributes, (v, k); st.global.u32 [a+36], e;\n"
    "  mov.u64 k, 12345; call (e), __cudaCDP2FuncGetAttributes, (v, k); st.global.u32 [a+40], e;\n"
    "  call (e), __cudaCDP2DeviceGetAttribute, (v, 1, 77); st.global.u32 [a+44], e;\n"
    "  call (e), __cudaCDP2DeviceGetLimit, (v, 99); st.global.u32 [a+48], e; ret; }\n";

enum { ROOM = 4096 };
static CUcontext ctx;
static CUmodule module;
static CUdeviceptr p;

static void open_on(CUdevice device)
{
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, device));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuMemAlloc_v2(&p, ROOM));
    OK(cuMemsetD8_v2(p, 0, ROOM));
}

static int setup(void **state)
{
    open_on(1);
    return 0;
}

static int teardown(void **state)
{
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}

static void run(const char *name, void **params)
{
    OK(whole_launch(whole_function(module, name), params));
}

static void clear(void)
{
    OK(cuCtxSynchronize());
    OK(cuMemsetD8_v2(p, 0, ROOM));
}

// As many launches as the limit allows, again and again: those that have ended do not count.
static void good_limit(void **state)
{
    uint32_t most = 5000;
    for (unsigned limit = 2048, i = 0; i < 4; i++) {
        run("floods", (void *[]){&p, &most});
        assert_int_equal(whole_read(p + 4), limit);
        assert_int_equal(whole_read(p + 8), EXEC_TOO_MANY_PENDING);
        clear();
        if (i == 1)
            OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, limit = 100));
    }
    most = 100;
    run("floods", (void *[]){&p, &most});
    assert_int_equal(whole_read(p + 4), 100);
    assert_int_equal(whole_read(p + 8), 0);
    OK(cuCtxSynchronize());
    assert_int_equal(atomic_load(&ctx->pending), 0);
}

static void good_limit_of_records(void **state)
{
    uint32_t most = 5000;
    run("records", (void *[]){&p, &most});
    assert_int_equal(whole_read(p + 4), 2047);
    assert_int_equal(whole_read(p + 8), EXEC_TOO_MANY_PENDING);
    OK(cuCtxSynchronize());
    assert_int_equal(atomic_load(&ctx->pending), 0);
}

static void good_limit_of_depth(void **state)
{
    uint32_t unused = 0;
    run("deeper", (void *[]){&p, &unused});
    assert_int_equal(whole_read(p), 2048 + 1);
    assert_int_equal(whole_read(p + 4), EXEC_TOO_MANY_PENDING);
}

static void good_events(void **state)
{
    run("events", (void *[]){&p});
    assert_int_equal(whole_read(p), 1 * 2 + 2);
    const CUresult expected[] = {CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUDA_SUCCESS,
                                 CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE};
    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(whole_read(p + 4 + 4 * i), expected[i]);
}

static void good_planes(void **state)
{
    uint8_t got[ROOM];
    run("planes", (void *[]){&p});
    OK(cuMemcpyDtoH_v2(got, p, ROOM));
    for (unsigned i = 0; i < 3 * 16; i++)
        assert_int_equal(got[i], i % 16 < 4 ? 7 : 0);
    for (unsigned i = 0; i < 3 * 32; i++)
        assert_int_equal(got[512 + i], i % 32 < 4 ? 7 : 0);
    assert_int_equal(whole_read(p + 256), 0);
    assert_int_equal(whole_read(p + 260), 0);
    assert_int_equal(whole_read(p + 264), EXEC_INVALID_PITCH);
}

// cudaMemcpy3DParms.
struct box {
    uint64_t from_array, from_at[3], from[4], to_array, to_at[3], to[4], extent[3], kind;
};

static void good_boxes(void **state)
{
    struct box b = {.from_at = {1, 1, 0},
                    .from = {p, 16, 16, 2},
                    .to_at = {2, 0, 1},
                    .to = {p + 512, 8, 8, 3},
                    .extent = {3, 1, 2},
                    .kind = 3};
    _Static_assert(sizeof b == 160, "as the runtime has it");
    uint8_t got[ROOM];
    run("boxes", (void *[]){&p, &b});
    OK(cuMemcpyDtoH_v2(got, p, ROOM));
    for (unsigned i = 0; i < 4 * 16; i++)
        assert_int_equal(got[i], i % 16 < 3 ? 9 : 0);
    for (unsigned z = 0; z < 4; z++)
        for (unsigned i = 0; i < 24; i++)
            assert_int_equal(got[512 + z * 24 + i], (z == 1 || z == 2) && (i == 2 || i == 3) ? 9 : 0);
    clear();
    b.from_array = 1;
    run("boxes", (void *[]){&p, &b});
    assert_int_equal(whole_read(p + 260), CUDA_ERROR_INVALID_VALUE);
    clear();
    b.from_array = 0;
    b.to[3] = 0;
    run("boxes", (void *[]){&p, &b});
    assert_int_equal(whole_read(p + 260), CUDA_ERROR_INVALID_VALUE);
}

// Sizes that wrap around, or that no memory can have, are errors for the kernel, and nothing is copied.
static void bad_boxes(void **state)
{
    const uint64_t much = UINT64_C(1) << 62, half = UINT64_C(1) << 32;
    const struct box good = {.from = {p, 16, 16, 2}, .to = {p + 512, 8, 8, 3}, .extent = {1, 1, 1}};
    struct box b[6];
    for (unsigned i = 0; i < 6; i++)
        b[i] = good;
    // Slices 2^64 apart would all be one.
    b[0].to[1] = b[0].to[3] = b[0].from[1] = b[0].from[3] = half;
    b[0].extent[2] = much;
    b[1].from[1] = b[1].from[3] = half;
    b[1].extent[2] = 2;
    b[2].extent[2] = much;
    b[3].extent[1] = much;
    b[4].to_at[2] = much;
    b[5].from_at[0] = UINT64_MAX;
    for (unsigned i = 0; i < 6; i++) {
        run("boxes", (void *[]){&p, &b[i]});
        assert_int_equal(whole_read(p + 260), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(whole_read(p + 512), 0);
    }
    clear();
    const uint64_t fills[][7] = {{p, half, 16, half, 1, 1, much},
                                 {p, 16, 16, 2, 1, 1, much},
                                 {p, 16, 16, 2, 1, much, 1},
                                 {p, UINT64_MAX, 16, 2, 1, 3, 1}};
    for (unsigned i = 0; i < sizeof fills / sizeof *fills; i++) {
        run("fills", (void *[]){&p, (void *)fills[i]});
        assert_int_equal(whole_read(p + 256), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(whole_read(p), 0);
    }
    // The slice pitch of a single slice is ignored; and an empty box may have any sizes.
    const uint64_t fine[][7] = {{p, half, 16, half, 1, 1, 1}, {p, half, 16, half, 1, 0, 1}};
    for (unsigned i = 0; i < sizeof fine / sizeof *fine; i++) {
        run("fills", (void *[]){&p, (void *)fine[i]});
        assert_int_equal(whole_read(p + 256), CUDA_SUCCESS);
    }
    OK(cuCtxSynchronize());
    assert_int_equal(whole_read(p), 9);
}

// The names are those of the host's runtime, and every error has one.
static void good_texts(void **state)
{
    static const struct {
        int error;
        const char *name;
    } errors[] = {
#define ERROR(name, value, text) {value, #name},
#include "driver/cudart_errors.def"
        {-1, "unrecognized error code"},
        {11, "unrecognized error code"},
        {100000, "unrecognized error code"},
    };
    char got[256];
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++) {
        run("texts", (void *[]){&p, (void *)&errors[i].error});
        OK(cuMemcpyDtoH_v2(got, p, sizeof got));
        assert_string_equal(got, errors[i].name);
        assert_true(got[128]);
    }
    int invalid = EXEC_INVALID_FUNCTION;
    run("texts", (void *[]){&p, &invalid});
    OK(cuMemcpyDtoH_v2(got, p, sizeof got));
    assert_string_equal(got, "cudaErrorInvalidDeviceFunction");
}

static void bad_copy(void **state)
{
    run("strays", (void *[]){&p});
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    assert_true(ctx->fault.write);
    assert_int_equal(ctx->fault.size, 8);
    assert_true(ctx->fault.address == p + (4u << 20) || ctx->fault.address == p + (8u << 20));
}

static void good_questions(void **state)
{
    int version, blocks, threads;
    CUfunction f = whole_function(module, "twice");
    run("asks", (void *[]){&p});
    assert_int_equal(whole_read(p), 1);
    assert_int_equal(whole_read(p + 4), 2);
    OK(cuDriverGetVersion(&version));
    assert_int_equal(whole_read(p + 8), version);
    assert_int_equal(whole_read(p + 16), 2048);
    assert_int_equal(whole_read(p + 24), 1024);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 128, 0));
    assert_int_equal(whole_read(p + 28), blocks);
    const int expected[] = {0, 0, EXEC_INVALID_FUNCTION, CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_VALUE};
    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(whole_read(p + 32 + 4 * i), expected[i]);
    OK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    assert_int_equal(whole_read(p + 64 + 24), threads);
    assert_int_equal(whole_read(p + 64 + 32), 90);
    int registers;
    OK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    assert_int_equal(whole_read(p + 64 + 28), registers);
}

int main(void)
{
    setenv("MOAT_OPTIONS", "cpu-devices=2", 1);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(good_limit),
        TEST(good_limit_of_records),
        TEST(good_limit_of_depth),
        TEST(good_events),
        TEST(good_planes),
        TEST(good_boxes),
        TEST(bad_boxes),
        TEST(good_texts),
        TEST(bad_copy),
        TEST(good_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
