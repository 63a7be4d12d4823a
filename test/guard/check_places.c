// SPDX-License-Identifier: MIT
// check_places SEED CASES CLASS: makes random kernels for --mode=check, as check_classes.c does, that access
// variables in shared, dynamic shared, local or constant memory, or an array among the parameters. CLASS is
// shared, local, constant or parameter. It prints what moat must report for each case, and says where a wrong
// access has changed a neighbour, or a wrong load has given anything but 0.
#include "check_random.h"

enum { BATCH = 40, LINE = 1000, WARP = 32, MOST = 600, NEAR = 64 };

enum place { IN_MODULE, IN_FUNCTION, DYNAMIC, PLACES };
enum way {
    BY_NAME,     // [variable + constant], by one thread
    BY_WIDE,     // an address of 64 bits
    BY_NARROW,   // and of 32: shared memory
    BY_GENERIC,  // cvta
    BY_BACK,     // cvta there and back
    BY_CHOICE,   // selp of two variables
    BY_LOOP,     // incremented
    WAYS
};

struct plan {
    enum place place;
    enum way way;
    struct random_access access;
    unsigned thread;
    uint32_t size;
    int64_t wrong, right;
    bool bad, misaligned;
};

static const char *space;  // "shared", "local", "const", "param"

static bool is(const char *name)
{
    return strcmp(space, name) == 0;
}

static bool can_write(void)
{
    return is("shared") || is("local");
}

// --- the kernel --------------------------------------------------------------------------------------------

static void put_variable(const char *what, unsigned n, uint32_t size)
{
    put(".%s .align 16 .b8 %s_%u[%u]", space, what, n, size);
    if (is("const") && strcmp(what, "target")) {
        put(" = {");
        for (uint32_t i = 0; i < size; i++)
            put("%s85", i ? ", " : "");
        put("}");
    }
    put(";\n");
}

static void put_variables(const struct plan *p, unsigned n)
{
    put_variable("before", n, NEAR);
    if (p->place != DYNAMIC)
        put_variable("target", n, p->size);
    put_variable("after", n, NEAR);
}

// Fills the neighbours, or adds what has changed in them to %m. All threads write the same values.
static void put_neighbours(unsigned n, bool fill)
{
    for (unsigned i = 0; i < 2 * NEAR / 8 && can_write(); i++) {
        const char *name = i % 2 ? "before" : "after";
        if (fill)
            put("    st.%s.u64 [%s_%u+%u], %%f;\n", space, name, n, i / 2 * 8);
        else
            put("    ld.%s.u64 %%x, [%s_%u+%u];\n    xor.b64 %%x, %%x, %%f;\n    or.b64 %%m, %%m, %%x;\n",
                space, name, n, i / 2 * 8);
    }
}

static const char *target_name(const struct plan *p, unsigned n)
{
    static char name[32];
    snprintf(name, sizeof name, p->place == DYNAMIC ? "dynamic" : is("param") ? "target" : "target_%u", n);
    return name;
}

// Puts the access; the offset is %d, and a constant if the way is BY_NAME.
static void put_place(const struct plan *p, unsigned n)
{
    char in[16];
    const char *name = target_name(p, n), *base = "%a";
    int64_t late = dice(2) ? 0 : (int64_t)dice(4) * p->access.width;
    snprintf(in, sizeof in, ".%s", space);
    put("    mov.u64 %%p, %s;\n", name);
    if (p->way == BY_NAME) {
        put_random_access(&p->access, in, name, p->wrong);
        return;
    }
    if (p->way == BY_GENERIC || p->way == BY_BACK)
        put("    cvta.%s.u64 %%p, %%p;\n", space);
    if (p->way == BY_CHOICE && !is("param"))
        put("    mov.u64 %%q, after_%u;\n    selp.b64 %%p, %%p, %%q, %%always;\n", n);
    if (p->way == BY_LOOP)
        put("    mov.u64 %%a, %%p;\n    mov.u64 %%x, 0;\nagain_%u:\n    setp.ge.s64 %%more, %%x, %%d;\n"
            "    @%%more bra there_%u;\n    add.s64 %%a, %%a, %u;\n    add.s64 %%x, %%x, %u;\n"
            "    bra again_%u;\nthere_%u:\n    sub.s64 %%a, %%a, %lld;\n",
            n, n, p->access.width, p->access.width, n, n, (long long)late);
    else
        put("    add.s64 %%a, %%p, %%d;\n    sub.s64 %%a, %%a, %lld;\n", (long long)late);
    if (p->way == BY_BACK)
        put("    cvta.to.%s.u64 %%a, %%a;\n", space);
    if (p->way == BY_BACK && is("shared")) {
        put("    cvt.u32.u64 %%s, %%a;\n");
        base = "%s";
    }
    if (p->way == BY_NARROW) {
        put("    mov.u32 %%s, %s;\n    cvt.u32.u64 %%i, %%d;\n    add.s32 %%s, %%s, %%i;\n"
            "    add.s32 %%s, %%s, %lld;\n",
            name, -(long long)late);
        base = "%s";
    }
    put_random_access(&p->access, p->way == BY_GENERIC ? "" : in, base, late);
}

static void put_kernel(const struct plan *p, unsigned n)
{
    bool inner = p->place == IN_FUNCTION;
    if (!inner && !is("param"))
        put_variables(p, n);
    put(".visible .entry kernel_%u(.param .u64 out, .param .u64 wrong, .param .u64 right, .param .u32 bad",
        n);
    if (is("param"))
        put(", .param .align 16 .b8 target[%u], .param .align 16 .b8 after[%u]", p->size, NEAR);
    put(")\n{\n%s    .reg .u64 %%m, %%f;\n    .reg .u32 %%s;\n", REGISTERS);
    if (inner)
        put_variables(p, n);
    put("%s    mov.u64 %%m, 0;\n    mov.u64 %%f, 0x5555555555555555;\n", CONSTANTS);
    put_neighbours(n, true);
    put("    mov.u32 %%t, %%tid.x;\n    ld.param.u32 %%bad, [bad];\n    ld.param.u64 %%d, [right];\n"
        "    ld.param.u64 %%x, [wrong];\n    setp.eq.u32 %%is, %%t, %%bad;\n"
        "    selp.b64 %%d, %%x, %%d, %%is;\n    setp.lt.u32 %%always, %%t, 100;\n    mov.u64 %%v, 0;\n"
        "    bar.sync 0;\n");
    if (p->way == BY_NAME)
        put("    @!%%is bra past_%u;\n", n);
    put_place(p, n);
    put("past_%u:\n    bar.sync 0;\n", n);
    put_neighbours(n, false);
    put("    ld.param.u64 %%out, [out];\n    mul.wide.u32 %%x, %%t, 16;\n    add.s64 %%out, %%out, %%x;\n"
        "    st.global.u64 [%%out], %%v;\n    st.global.u64 [%%out+8], %%m;\n    ret;\n}\n");
}

// --- cases -------------------------------------------------------------------------------------------------

static struct plan plan_case(unsigned number)
{
    struct plan p = {.place = is("shared")  ? dice(PLACES)
                              : is("local") ? dice(DYNAMIC)
                                            : IN_MODULE,
                     .way = dice(WAYS),
                     .access = random_access(is("shared")  ? OPS
                                             : is("local") ? ATOM
                                                           : STORE,
                                             LINE + number),
                     .thread = dice(WARP)};
    int64_t w = p.access.width;
    if ((p.way == BY_NARROW && !is("shared")) || (is("param") && (p.way == BY_GENERIC || p.way == BY_BACK)))
        p.way = BY_WIDE;
    // Variables at module scope in local memory are not for kernels that call nothing.
    if (is("local"))
        p.place = IN_FUNCTION;
    p.size = p.access.width + dice(MOST);
    p.right = p.wrong = (int64_t)dice(p.size / p.access.width) * w;
    p.bad = dice(4) > 0;
    bool before = p.way != BY_LOOP && (is("param") ? p.way == BY_WIDE : true) && dice(2);
    p.misaligned = p.bad && w > 1 && p.way != BY_LOOP && p.right + 2 * w <= p.size && !dice(4);
    if (p.misaligned)
        p.wrong = p.right + 1 + dice(p.access.width - 1);
    else if (p.bad)
        p.wrong = before ? -w * (1 + (int64_t)dice(4)) : p.size / w * w + w * (int64_t)dice(4);
    return p;
}

static void compare_results(const struct plan *p, CUdeviceptr out)
{
    uint64_t results[WARP][2];
    NEED(d.cuMemcpyDtoH_v2(results, out, sizeof results));
    if (p->bad && results[p->thread][0])
        printf("result %u: 0x%llx instead of 0\n", p->access.line, (unsigned long long)results[p->thread][0]);
    for (unsigned i = 0; i < WARP; i++)
        if (results[i][1])
            printf("changed %u: a neighbour\n", p->access.line);
}

static void run_case(CUmodule module, const struct plan *p, unsigned n, CUdeviceptr out)
{
    char name[32];
    static unsigned char array[MOST + 16], after[NEAR];
    CUfunction kernel;
    int64_t wrong = p->wrong, right = p->right;
    memset(array, 3, sizeof array);
    memset(after, 0x55, sizeof after);
    snprintf(name, sizeof name, "kernel_%u", n);
    NEED(d.cuModuleGetFunction(&kernel, module, name));
    void *arguments[] = {&out, &wrong, &right, (void *)&p->thread, array, after};
    NEED(d.cuLaunchKernel(kernel, 1, 1, 1, WARP, 1, 1, p->place == DYNAMIC ? p->size : 0, NULL, arguments,
                          NULL));
    NEED(d.cuCtxSynchronize());
    compare_results(p, out);
    const char *type = p->misaligned  ? "misaligned-address"
                       : is("shared") ? "shared-buffer-overflow"
                       : is("local")  ? "local-buffer-overflow"
                                      : "global-buffer-overflow";
    if (!p->bad)
        printf("good %u\n", p->access.line);
    else
        printf("bad %u %s %s %u %u 0x0 %u place %d way %d op %d\n", p->access.line, type,
               p->access.op == LOAD ? "read" : "write", p->access.width, p->thread, p->size, p->place, p->way,
               p->access.op);
}

static void run_batch(unsigned first, unsigned count, CUdeviceptr out)
{
    struct plan plans[BATCH];
    CUmodule module;
    used = 0;
    put(".version 7.0\n.target sm_75\n.address_size 64\n.file 1 \"random.cu\"\n"
        ".extern .shared .align 16 .b8 dynamic[];\n");
    for (unsigned i = 0; i < count; i++) {
        plans[i] = plan_case(first + i);
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
    space = !strcmp(argv[3], "constant") ? "const" : !strcmp(argv[3], "parameter") ? "param" : argv[3];
    CUdeviceptr out;
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuMemAlloc_v2(&out, 16 * WARP));
    for (unsigned i = 0; i < cases; i += BATCH)
        run_batch(i, cases - i < BATCH ? cases - i : BATCH, out);
    printf("done %u\n", cases);
    return 0;
}
