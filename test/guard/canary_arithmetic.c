// SPDX-License-Identifier: MIT
// Kernels that compute with the element behind a buffer, or the one before it, in place of storing a value of
// their own: `x[i] += 1.0f` and its like. --mode=canary must see each of them.
//   canary_arithmetic list                the operations, a line each
//   canary_arithmetic OPERATION [ROUNDS]  for buffers of several sizes; prints how many words it computed
//                                         with
#include "cases.h"

// The text computes with v, which is loaded before and stored behind it; one that works `in_memory` has the
// address p. Registers of other types: h, w, f and g.
struct operation {
    const char *name;
    unsigned bytes;
    const char *text;
    int in_memory;
};

#define ROW(name, bytes, text) \
    {                          \
        name, bytes, text, 0   \
    }
#define ATOMIC(name, bytes, text)      \
    {                                  \
        "atomic_" name, bytes, text, 1 \
    }
#define F32(name, text) ROW("f32_" name, 4, "mov.b32 f, v; " text " mov.b32 v, f;")
#define F64(name, text) ROW("f64_" name, 8, "mov.b64 g, v; " text " mov.b64 v, g;")
#define F16(name, text) ROW("f16_" name, 2, text)
// In single precision and back, as compilers do it where there is no instruction.
#define BF16(name, text) \
    ROW("bf16_" name, 2, "cvt.u32.u16 w, v; shl.b32 w, w, 16; mov.b32 f, w; " text " cvt.rn.bf16.f32 v, f;")
#define INTEGERS(name, op, value)                                                                 \
    ROW("i16_" name, 2, op "16 v, v, " value ";"), ROW("i32_" name, 4, op "32 v, v, " value ";"), \
        ROW("i64_" name, 8, op "64 v, v, " value ";")

static const struct operation operations[] = {
    F32("add", "add.f32 f, f, 0f3F800000;"),
    F32("sub", "sub.f32 f, f, 0f3F800000;"),
    F32("add_tenth", "add.f32 f, f, 0f3DCCCCCD;"),
    F32("twice", "mul.f32 f, f, 0f40000000;"),
    F32("half", "mul.f32 f, f, 0f3F000000;"),
    F32("relu", "max.f32 f, f, 0f00000000;"),
    F32("relu_ftz", "max.ftz.f32 f, f, 0f00000000;"),
    F32("twice_ftz", "mul.ftz.f32 f, f, 0f40000000;"),
    F32("half_ftz", "mul.ftz.f32 f, f, 0f3F000000;"),
    F64("add", "add.f64 g, g, 0d3FF0000000000000;"),
    F64("sub", "sub.f64 g, g, 0d3FF0000000000000;"),
    F64("twice", "mul.f64 g, g, 0d4000000000000000;"),
    F64("half", "mul.f64 g, g, 0d3FE0000000000000;"),
    F64("relu", "max.f64 g, g, 0d0000000000000000;"),
    F16("add", "mov.b16 h, 0x3c00; add.f16 v, v, h;"),
    F16("sub", "mov.b16 h, 0x3c00; sub.f16 v, v, h;"),
    F16("twice", "mov.b16 h, 0x4000; mul.f16 v, v, h;"),
    F16("half", "mov.b16 h, 0x3800; mul.f16 v, v, h;"),
    F16("relu", "mov.b16 h, 0; max.f16 v, v, h;"),
    BF16("add", "add.f32 f, f, 0f3F800000;"),
    BF16("sub", "sub.f32 f, f, 0f3F800000;"),
    BF16("twice", "mul.f32 f, f, 0f40000000;"),
    BF16("half", "mul.f32 f, f, 0f3F000000;"),
    BF16("relu", "max.f32 f, f, 0f00000000;"),
    INTEGERS("add", "add.s", "1"),
    INTEGERS("sub", "sub.s", "1"),
    INTEGERS("twice", "shl.b", "1"),
    INTEGERS("half", "shr.s", "1"),
    INTEGERS("max", "max.s", "0"),
    ROW("i32_set_bit", 4, "or.b32 v, v, 1;"),
    ATOMIC("add_f32", 4, "red.global.add.f32 [p], 0f3F800000;"),
    ATOMIC("add_f64", 8, "red.global.add.f64 [p], 0d3FF0000000000000;"),
    ATOMIC("add_f16x2", 4, "mov.b32 w, 0x3c003c00; red.global.add.noftz.f16x2 [p], w;"),
    ATOMIC("add_u32", 4, "red.global.add.u32 [p], 1;"),
    ATOMIC("add_u64", 8, "red.global.add.u64 [p], 1;"),
    ATOMIC("sub_u32", 4, "red.global.add.u32 [p], 0xffffffff;"),
    ATOMIC("max_s32", 4, "red.global.max.s32 [p], 0;"),
    ATOMIC("max_s64", 8, "red.global.max.s64 [p], 0;"),
    ATOMIC("inc", 4, "red.global.inc.u32 [p], 0xffffffff;"),
    ATOMIC("inc_few", 4, "red.global.inc.u32 [p], 63;"),
    ATOMIC("dec", 4, "red.global.dec.u32 [p], 0xffffffff;"),
    ATOMIC("or", 4, "red.global.or.b32 [p], 1;"),
    ATOMIC("and", 4, "red.global.and.b32 [p], 0;"),
    ATOMIC("exch", 4, "atom.global.exch.b32 w, [p], 0;"),
};
enum { OPERATIONS = sizeof operations / sizeof *operations, PLACES = 3 };

static CUfunction load(const struct operation *o)
{
    char text[2048], before[64] = "", behind[64] = "";
    const char *type = o->bytes == 2 ? "b16" : o->bytes == 4 ? "b32" : "b64";
    CUmodule module;
    CUfunction function;
    if (!o->in_memory) {
        snprintf(before, sizeof before, "ld.global.%s v, [p];", type);
        snprintf(behind, sizeof behind, "st.global.%s [p], v;", type);
    }
    snprintf(text, sizeof text,
             ".version 7.8\n.target sm_80\n.address_size 64\n"
             ".visible .entry %s(.param .u64 place)\n{\n"
             "    .reg .u64 p; .reg .%s v; .reg .b16 h; .reg .b32 w; .reg .f32 f; .reg .f64 g;\n"
             "    ld.param.u64 p, [place];\n"
             "    %s\n    %s\n    %s\n    ret;\n}\n",
             o->name, type, before, o->text, behind);
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&function, module, o->name));
    return function;
}

// Each place has a buffer of its own: a second error on one side of a buffer is not reported again.
static void attack(CUfunction f, const struct operation *o, size_t size)
{
    const long places[] = {(long)size, -(long)o->bytes, -16};
    for (unsigned i = 0; i < PLACES; i++) {
        CUdeviceptr p, at;
        NEED(d.cuMemAlloc_v2(&p, size));
        at = p + (CUdeviceptr)places[i];
        void *parameters[] = {&at};
        NEED(d.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        NEED(d.cuCtxSynchronize());
        NEED(d.cuMemFree_v2(p));
    }
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {8, 1000, 4096, 65536, 3 << 20};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    char why[300];
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "list") == 0) {
        for (unsigned i = 0; i < OPERATIONS; i++)
            puts(operations[i].name);
        return 0;
    }
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if (strcmp(argv[1], operations[i].name) != 0)
            continue;
        CUfunction f = load(&operations[i]);
        for (unsigned k = 0; k < rounds * SIZES; k++)
            attack(f, &operations[i], sizes[k % SIZES]);
        printf("%u\n", rounds * SIZES * PLACES);
        return 0;
    }
    printf("no operation %s\n", argv[1]);
    return 2;
}
