// SPDX-License-Identifier: MIT
// check_differential SEED KERNELS [KERNEL...]: random kernels that use buffers 2^33 bytes apart, with nothing
// between them, so that the device itself notices each access that leaves a buffer. With --on-error=skip a
// run without --mode=check and one with it must report the same source lines and print the same sums of all
// that kernels wrote. The kernels that are named by their numbers are compiled, but not launched.
//
// A launch has one thread, so that no two accesses race. Every statement has a source line of its own.
#include "check_random.h"

enum {
    BATCH = 50,
    BUFFERS = 4,
    SIZE = 2 << 20,
    VALUES = 6,    // %r0 ..., of 32 bits
    POINTERS = 5,  // %p0 ..., multiples of 16, at most 2^30 bytes away from a buffer
    LAUNCHES = 3,
    WORDS = SIZE / 8,
};

static unsigned line, labels;
static CUdeviceptr buffers[BUFFERS], holder;

// --- statements --------------------------------------------------------------------------------------------

static void put_arithmetic(void)
{
    static const char *const ops[] = {"add.s32", "sub.s32", "mul.lo.s32", "and.b32", "xor.b32", "or.b32"};
    if (dice(2))
        put("    %s %%r%u, %%r%u, %%r%u;\n", ops[dice(6)], dice(VALUES), dice(VALUES), dice(VALUES));
    else
        put("    %s %%r%u, %%r%u, %u;\n", ops[dice(6)], dice(VALUES), dice(VALUES), 1 + dice(1000));
}

// Moves a pointer by less than 4 MiB, so that about half of all accesses through new ones are inside.
static void put_move(void)
{
    unsigned to = dice(POINTERS), from = dice(POINTERS);
    switch (dice(4)) {
    case 0:
        put("    and.b32 %%i, %%r%u, 0x1ffff;\n    mul.wide.u32 %%x, %%i, 16;\n    add.s64 %%p%u, %%p%u, "
            "%%x;\n",
            dice(VALUES), to, from);
        break;
    case 1:
        put("    and.b32 %%i, %%r%u, 0x1ffff;\n    sub.s32 %%i, 0x8000, %%i;\n    mad.wide.s32 %%p%u, %%i, "
            "16, %%p%u;\n",
            dice(VALUES), to, from);
        break;
    case 2: put("    add.s64 %%p%u, %%p%u, %d;\n", to, from, ((int)dice(4000) - 2000) * 16); break;
    case 3: put("    sub.s64 %%p%u, %%p%u, %u;\n", to, from, dice(100) * 16); break;
    }
}

static void put_choice(void)
{
    unsigned to = dice(POINTERS), a = dice(POINTERS), b = dice(POINTERS);
    put("    setp.lt.s32 %%c, %%r%u, %%r%u;\n", dice(VALUES), dice(VALUES));
    if (dice(2))
        put("    selp.b64 %%p%u, %%p%u, %%p%u, %%c;\n", to, a, b);
    else
        put("    @%s%%c mov.u64 %%p%u, %%p%u;\n", dice(2) ? "!" : "", to, a);
}

static void put_fresh(void)
{
    if (dice(2))
        put("    ld.param.u64 %%p%u, [b%u];\n", dice(POINTERS), dice(BUFFERS));
    else
        put("    ld.param.u64 %%y, [h];\n    ld.global.u64 %%p%u, [%%y+%u];\n", dice(POINTERS),
            8 * dice(BUFFERS));
}

static void put_access(void)
{
    static const char *const types[] = {"u32", "u16", "u8", "u64"};
    static const unsigned widths[] = {4, 2, 1, 8};
    unsigned t = dice(4), p = dice(POINTERS);
    int offset = ((int)dice(64) - 8) * (int)widths[t];
    const char *guard = dice(3) ? "" : "@%c ";
    const char *space = dice(4) ? ".global" : "";
    put("    .loc 1 %u 0\n", ++line);
    switch (dice(3)) {
    case 0:
        if (t == 3)
            put("    %sld%s.u64 %%x, [%%p%u+%d];\n    cvt.u32.u64 %%r%u, %%x;\n", guard, space, p, offset,
                dice(VALUES));
        else if (t == 0)
            put("    %sld%s.u32 %%r%u, [%%p%u+%d];\n", guard, space, dice(VALUES), p, offset);
        else
            put("    %sld%s.%s %%s, [%%p%u+%d];\n    cvt.u32.u16 %%r%u, %%s;\n", guard, space, types[t], p,
                offset, dice(VALUES));
        break;
    case 1:
        if (t == 0)
            put("    %sst%s.u32 [%%p%u+%d], %%r%u;\n", guard, space, p, offset, dice(VALUES));
        else if (t == 3)
            put("    %sst%s.v2.u32 [%%p%u+%d], {%%r%u, %%r%u};\n", guard, space, p, offset, dice(VALUES),
                dice(VALUES));
        else
            put("    cvt.u16.u32 %%s, %%r%u;\n    %sst%s.%s [%%p%u+%d], %%s;\n", dice(VALUES), guard, space,
                types[t], p, offset);
        break;
    case 2:
        put("    %satom%s.add.u32 %%r%u, [%%p%u+%d], %%r%u;\n", guard, space, dice(VALUES), p, offset / 4 * 4,
            dice(VALUES));
        break;
    }
    put("    .loc 1 1 0\n");
}

static void put_statements(unsigned count, unsigned depth);

static void put_branch(unsigned depth)
{
    unsigned label = ++labels;
    put("    setp.%s.s32 %%c, %%r%u, %%r%u;\n    @%%c bra over_%u;\n", dice(2) ? "lt" : "eq", dice(VALUES),
        dice(VALUES), label);
    put_statements(1 + dice(4), depth + 1);
    put("over_%u:\n", label);
}

static void put_loop(unsigned depth)
{
    unsigned label = ++labels;
    put("    mov.u32 %%k%u, 0;\nagain_%u:\n", depth, label);
    put_statements(1 + dice(4), depth + 1);
    put("    add.u32 %%k%u, %%k%u, 1;\n    setp.lt.u32 %%c, %%k%u, %u;\n    @%%c bra again_%u;\n", depth,
        depth, depth, 1 + dice(4), label);
}

static void put_statements(unsigned count, unsigned depth)
{
    for (unsigned i = 0; i < count; i++) {
        unsigned what = dice(depth < 3 ? 22 : 20);
        if (what < 4)
            put_arithmetic();
        else if (what < 7)
            put_move();
        else if (what < 9)
            put_choice();
        else if (what < 11)
            put_fresh();
        else if (what < 20)
            put_access();
        else if (what < 21)
            put_branch(depth);
        else
            put_loop(depth);
    }
}

static void put_kernel(unsigned n)
{
    put(".visible .entry kernel_%u(.param .u64 b0, .param .u64 b1, .param .u64 b2, .param .u64 b3, .param "
        ".u64 h,"
        " .param .u32 n)\n{\n    .reg .u64 %%p<%u>, %%x, %%y;\n    .reg .u32 %%r<%u>, %%i, %%k<4>;\n    .reg "
        ".u16 "
        "%%s;\n"
        "    .reg .pred %%c;\n",
        n, POINTERS, VALUES);
    put("    setp.eq.u32 %%c, 0, 0;\n    mov.u64 %%x, 0;\n    mov.u16 %%s, 0;\n    ld.param.u32 %%r0, "
        "[n];\n");
    for (unsigned i = 1; i < VALUES; i++)
        put("    mad.lo.s32 %%r%u, %%r0, %u, %u;\n", i, dice(100000), dice(1000));
    for (unsigned i = 0; i < POINTERS; i++)
        put("    ld.param.u64 %%p%u, [b%u];\n", i, dice(BUFFERS));
    put_statements(8 + dice(20), 0);
    put("    ret;\n}\n");
}

// --- running -----------------------------------------------------------------------------------------------

static void map_buffers(void)
{
    const uint64_t apart = (uint64_t)1 << 33;
    CUdeviceptr base;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    NEED(d.cuMemAddressReserve(&base, (BUFFERS + 1) * apart, 0, 0, 0));
    for (unsigned i = 0; i < BUFFERS; i++) {
        CUmemGenericAllocationHandle handle;
        buffers[i] = base + apart / 2 + i * apart;
        NEED(d.cuMemCreate(&handle, SIZE, &prop, 0));
        NEED(d.cuMemMap(buffers[i], SIZE, 0, handle, 0));
        NEED(d.cuMemSetAccess(buffers[i], SIZE, &access, 1));
    }
    NEED(d.cuMemAlloc_v2(&holder, sizeof buffers));
    NEED(d.cuMemcpyHtoD_v2(holder, buffers, sizeof buffers));
}

static void fill(void)
{
    static uint64_t words[WORDS];
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = i * (uint64_t)0x9e3779b97f4a7c15;
    for (unsigned i = 0; i < BUFFERS; i++)
        NEED(d.cuMemcpyHtoD_v2(buffers[i], words, SIZE));
}

static uint64_t sum(void)
{
    static uint64_t words[WORDS];
    uint64_t sum = 0;
    for (unsigned i = 0; i < BUFFERS; i++) {
        NEED(d.cuMemcpyDtoH_v2(words, buffers[i], SIZE));
        for (unsigned k = 0; k < WORDS; k++)
            sum = (sum ^ words[k]) * 0x100000001b3;
    }
    return sum;
}

static bool is_left_out(unsigned n, char **left_out)
{
    while (*left_out && (unsigned)atoi(*left_out) != n)
        left_out++;
    return *left_out;
}

static void run_batch(unsigned first, unsigned count, char **left_out)
{
    CUmodule module;
    used = 0;
    put(".version 7.0\n.target sm_75\n.address_size 64\n.file 1 \"random.cu\"\n");
    for (unsigned i = 0; i < count; i++)
        put_kernel(first + i);
    if (getenv("CHECK_RANDOM_TEXT"))
        fputs(text, stderr);
    NEED(d.cuModuleLoadData(&module, text));
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        CUfunction kernel;
        snprintf(name, sizeof name, "kernel_%u", first + i);
        NEED(d.cuModuleGetFunction(&kernel, module, name));
        for (unsigned n = is_left_out(first + i, left_out) ? LAUNCHES : 0; n < LAUNCHES; n++) {
            unsigned value = n * 12345 + first + i;
            void *arguments[] = {&buffers[0], &buffers[1], &buffers[2], &buffers[3], &holder, &value};
            NEED(d.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        }
        // The device keeps a limited number of faults that it skipped, until a call takes them.
        NEED(d.cuCtxSynchronize());
    }
    NEED(d.cuCtxSynchronize());
    printf("%u %016llx\n", first, (unsigned long long)sum());
    NEED(d.cuModuleUnload(module));
}

int main(int argc, char **argv)
{
    char why[300];
    if (argc < 3)
        return 2;
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    seed = (unsigned)atoi(argv[1]);
    unsigned kernels = (unsigned)atoi(argv[2]);
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    map_buffers();
    fill();
    for (unsigned i = 0; i < kernels; i += BATCH)
        run_batch(i, kernels - i < BATCH ? kernels - i : BATCH, argv + 3);
    printf("done %u, %u lines\n", kernels, line);
    return 0;
}
