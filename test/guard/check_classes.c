// SPDX-License-Identifier: MIT
// check_classes SEED CASES CLASS: makes random kernels for --mode=check, each with one access that may be
// wrong, and runs them. It prints what moat must report for each case, and compares what must be unchanged.
//
//   good LINE                                          no report with this source line
//   bad LINE TYPE KIND BYTES THREAD BASE SIZE          one report with this line; BASE is 0 for a variable
//
// CLASS: adjacent, far, freed, late (freed some allocations ago), misaligned, or idioms: correct code of
// unusual kinds. With "heap-" before it, buffers are taken from malloc and freed by kernels.
// A kernel is one warp. The access of one thread is the one in question; the others do the same at an offset
// that is right.
#include "check_random.h"

enum { BATCH = 40, MOST = 6000, LARGEST = MOST + 3 * 16, LINE = 1000, WARP = 32 };  // LARGEST: of plan_case

enum root {
    BY_PARAMETER,
    BY_PLAIN_PARAMETER,  // without cvta
    BY_STRUCTURE,
    BY_VARIABLE,
    BY_LOAD,
    BY_TWO_LOADS,
    BY_RESULT,
    BY_SELECTION,
    BY_MERGE,
    BY_CALL,        // the called function adds the offset
    BY_CALL_SUM,    // the caller adds the offset
    BY_RESULT_SUM,  // a function adds the offset and returns the sum
    BY_LOOP,        // a pointer that is incremented
    ROOTS,
};
enum idiom { NO_IDIOM, FROM_BEFORE, FROM_END, BY_DIFFERENCE, IDIOMS };
// How the pointer of BY_CALL and BY_CALL_SUM is passed.
enum passing { IN_PARAM, IN_REGISTER, IN_STRUCTURE, BY_ANOTHER, SELECTED, PASSINGS };
enum sum { BY_ADD, BY_OFFSET, BY_INDEX, SUMS };

struct plan {
    enum root root;
    enum idiom idiom;
    enum sum sum;
    struct random_access access;
    enum passing passing;
    unsigned thread;
    bool generic;
    uint64_t size, other_size;
};

struct run {
    CUdeviceptr target, other, holder, out;
    int64_t wrong, right;  // offsets
};

// --- buffers -----------------------------------------------------------------------------------------------

// Memory of malloc in kernels; `place` is where a kernel stores a pointer.
static struct {
    bool on;
    CUfunction take, give;
    CUdeviceptr place;
} heap;

#define MALLOC                                                \
    ".extern .func (.param .b64 r) malloc (.param .b64 n);\n" \
    ".extern .func free (.param .b64 p);\n"
static const char heap_text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n" MALLOC
    ".visible .entry take(.param .u64 n, .param .u64 to)\n{\n    .reg .u64 %n, %p;\n"
    "    ld.param.u64 %n, [n];\n    {\n    .param .b64 a;\n    .param .b64 b;\n    st.param.b64 [a], %n;\n"
    "    call.uni (b), malloc, (a);\n    ld.param.b64 %p, [b];\n    }\n    ld.param.u64 %n, [to];\n"
    "    st.global.u64 [%n], %p;\n    ret;\n}\n"
    ".visible .entry give(.param .u64 p)\n{\n    .reg .u64 %p;\n    ld.param.u64 %p, [p];\n    {\n"
    "    .param .b64 a;\n    st.param.b64 [a], %p;\n    call.uni free, (a);\n    }\n    ret;\n}\n";

static void start_heap(void)
{
    CUmodule module;
    // Freed buffers must not be used again while their cases run.
    NEED(d.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)256 << 20));
    NEED(d.cuModuleLoadData(&module, heap_text));
    NEED(d.cuModuleGetFunction(&heap.take, module, "take"));
    NEED(d.cuModuleGetFunction(&heap.give, module, "give"));
    NEED(d.cuMemAlloc_v2(&heap.place, 8));
    heap.on = true;
}

static void run_alone(CUfunction f, void **arguments)
{
    NEED(d.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    NEED(d.cuCtxSynchronize());
}

static CUdeviceptr take(uint64_t size)
{
    CUdeviceptr p = 0;
    void *arguments[] = {&size, &heap.place};
    if (!heap.on) {
        NEED(d.cuMemAlloc_v2(&p, size));
        return p;
    }
    run_alone(heap.take, arguments);
    NEED(d.cuMemcpyDtoH_v2(&p, heap.place, sizeof p));
    if (!p)
        printf("malloc has no memory\n");
    return p;
}

static void give(CUdeviceptr p)
{
    void *arguments[] = {&p};
    if (heap.on)
        run_alone(heap.give, arguments);
    else
        NEED(d.cuMemFree_v2(p));
}

// --- the kernel --------------------------------------------------------------------------------------------

static void put_access(const struct plan *p, int64_t offset)
{
    put_random_access(&p->access, p->generic ? "" : ".global", "%a", offset);
}

static void put_root(const struct plan *p, unsigned n)
{
    put("    ld.param.u64 %%o, [o];\n    ld.param.u64 %%q, [p];\n");
    switch (p->root) {
    case BY_PARAMETER:
    case BY_CALL:
    case BY_CALL_SUM:
    case BY_RESULT_SUM:
    case BY_LOOP: put("    cvta.to.global.u64 %%p, %%q;\n"); break;
    case BY_PLAIN_PARAMETER: put("    mov.u64 %%p, %%q;\n"); break;
    case BY_STRUCTURE: put("    ld.param.u64 %%p, [s+16];\n"); break;
    case BY_VARIABLE: put("    mov.u64 %%p, variable_%u;\n", n); break;
    case BY_LOAD: put("    ld.param.u64 %%h, [h];\n    ld.global.u64 %%p, [%%h];\n"); break;
    case BY_TWO_LOADS:
        put("    ld.param.u64 %%h, [h];\n    ld.global.u64 %%x, [%%h+8];\n    ld.global.u64 %%p, [%%x];\n");
        break;
    case BY_RESULT:
        put("    {\n    .param .b64 r;\n    .param .b64 m;\n    .param .b64 n;\n    st.param.b64 [m], %%q;\n"
            "    st.param.b64 [n], %%o;\n    call (r), first_%u, (m, n);\n    ld.param.b64 %%p, [r];\n    "
            "}\n",
            n);
        break;
    case BY_SELECTION: put("    selp.b64 %%p, %%q, %%o, %%always;\n"); break;
    case BY_MERGE:
        put("    mov.u64 %%p, %%o;\n    @!%%always bra merged_%u;\n    mov.u64 %%p, %%q;\nmerged_%u:\n", n,
            n);
        break;
    case ROOTS: break;
    }
}

// Puts the address into %a; returns the offset that is left for the access.
static int64_t put_sum(const struct plan *p, const struct run *r)
{
    int64_t late = p->sum == BY_OFFSET ? (int64_t)dice(4) * p->access.width : 0;
    if (p->idiom == BY_DIFFERENCE)
        put("    add.s64 %%x, %%o, %%d;\n    sub.s64 %%x, %%x, %%o;\n    add.s64 %%a, %%x, %%p;\n");
    else if (p->sum == BY_INDEX && r->wrong >> 31 == 0 && r->wrong >= 0)
        put("    div.s64 %%x, %%d, %u;\n    cvt.u32.u64 %%i, %%x;\n    mul.wide.s32 %%x, %%i, %u;\n"
            "    add.s64 %%a, %%p, %%x;\n",
            p->access.width, p->access.width);
    else
        put("    add.s64 %%a, %%p, %%d;\n");
    if (late)
        put("    sub.s64 %%a, %%a, %lld;\n", (long long)late);
    return late;
}

static void put_loop(const struct plan *p, unsigned n)
{
    put("    mov.u64 %%a, %%p;\n    mov.u64 %%x, 0;\nagain_%u:\n    setp.ge.s64 %%more, %%x, %%d;\n"
        "    @%%more bra there_%u;\n    add.s64 %%a, %%a, %u;\n    add.s64 %%x, %%x, %u;\n"
        "    bra again_%u;\nthere_%u:\n",
        n, n, p->access.width, p->access.width, n, n);
}

static void put_functions(const struct plan *p, const struct run *r, unsigned n)
{
    if (p->root == BY_RESULT)
        put(".func (.param .b64 r) first_%u(.param .b64 m, .param .b64 n)\n{\n    .reg .b64 %%m;\n"
            "    ld.param.b64 %%m, [m];\n    st.param.b64 [r], %%m;\n    ret;\n}\n",
            n);
    if (p->root == BY_RESULT_SUM)
        put(".func (.param .b64 r) moved_%u(.param .b64 m, .param .b64 d)\n{\n"
            "    .reg .b64 %%m, %%d;\n    ld.param.b64 %%m, [m];\n    ld.param.b64 %%d, [d];\n"
            "    mul.lo.s64 %%d, %%d, 1;\n    add.s64 %%m, %%d, %%m;\n    cvta.to.global.u64 %%d, %%m;\n    "
            "st.param.b64 [r], %%d;\n"
            "    ret;\n}\n",
            n);
    if (p->root != BY_CALL && p->root != BY_CALL_SUM)
        return;
    const char *shape = p->passing == IN_STRUCTURE ? ".align 16 .b8 p[32]" : ".b64 p";
    put(".func (.param .b64 r) access_%u(.param %s, .param .b64 o, .param .b64 d)\n{\n%s%s", n, shape,
        REGISTERS, CONSTANTS);
    put("    ld.param.b64 %%p, [p+%u];\n    ld.param.b64 %%o, [o];\n    ld.param.b64 %%d, [d];\n"
        "    setp.eq.u64 %%always, %%p, %%p;\n",
        p->passing == IN_STRUCTURE ? 16 : 0);
    int64_t late = p->root == BY_CALL ? put_sum(p, r) : (put("    mov.u64 %%a, %%p;\n"), 0);
    put_access(p, late);
    put("    st.param.b64 [r], %%v;\n    ret;\n}\n");
    if (p->passing == BY_ANOTHER)
        put(".func (.param .b64 r) outer_%u(.param .b64 o, .param .b64 p, .param .b64 d)\n{\n"
            "    .reg .b64 %%p, %%v;\n    .reg .b64 %%o, %%d;\n    ld.param.b64 %%p, [p];\n"
            "    ld.param.b64 %%o, [o];\n    ld.param.b64 %%d, [d];\n    {\n    .param .b64 r1;\n"
            "    .param .b64 m;\n    .param .b64 n;\n    .param .b64 l;\n    st.param.b64 [m], %%p;\n"
            "    st.param.b64 [n], %%o;\n    st.param.b64 [l], %%d;\n    call (r1), access_%u, (m, n, l);\n"
            "    ld.param.b64 %%v, [r1];\n    }\n    st.param.b64 [r], %%v;\n    ret;\n}\n",
            n, n);
}

static void put_call(const struct plan *p, const struct run *r, unsigned n)
{
    const char *pointer = "%p";
    int64_t late = 0;
    if (p->root == BY_CALL_SUM) {
        late = put_sum(p, r);
        if (late)
            put("    add.s64 %%a, %%a, %lld;\n", (long long)late);
        pointer = "%a";
    }
    if (p->passing == SELECTED) {
        put("    selp.b64 %%w8, %s, %%o, %%always;\n", pointer);
        pointer = "%w8";
    }
    bool in_structure = p->passing == IN_STRUCTURE;
    put("    {\n    .param .b64 r;\n    .param %s;\n    .param .b64 n;\n    .param .b64 l;\n",
        in_structure ? ".align 16 .b8 m[32]" : ".b64 m");
    if (in_structure)
        put("    st.param.v2.b64 [m+16], {%s, %%o};\n", pointer);
    else
        put("    st.param.b64 [m], %s;\n", pointer);
    put("    st.param.b64 [n], %%o;\n    st.param.b64 [l], %%d;\n");
    if (p->passing == IN_REGISTER)
        put("    call (r), access_%u, (%s, n, l);\n", n, pointer);
    else if (p->passing == BY_ANOTHER)
        put("    call (r), outer_%u, (n, m, l);\n", n);
    else
        put("    call (r), access_%u, (m, n, l);\n", n);
    put("    ld.param.b64 %%v, [r];\n    }\n");
}

static void put_kernel(const struct plan *p, const struct run *r, unsigned n)
{
    put_functions(p, r, n);
    if (p->root == BY_VARIABLE)
        put(".global .align 256 .b8 variable_%u[%llu];\n", n, (unsigned long long)p->size);
    put(".visible .entry kernel_%u(.param .u64 p, .param .u64 o, .param .u64 h, .param .u64 out, .param .u64 "
        "wrong,"
        " .param .u64 right, .param .u32 bad, .param .align 8 .b8 s[32])\n{\n%s%s",
        n, REGISTERS, CONSTANTS);
    put("    mov.u32 %%t, %%tid.x;\n    ld.param.u32 %%bad, [bad];\n    ld.param.u64 %%d, [right];\n"
        "    ld.param.u64 %%x, [wrong];\n    setp.eq.u32 %%is, %%t, %%bad;\n    selp.b64 %%d, %%x, %%d, "
        "%%is;\n"
        "    setp.lt.u32 %%always, %%t, 100;\n");
    put_root(p, n);
    if (p->root == BY_CALL || p->root == BY_CALL_SUM) {
        put_call(p, r, n);
    } else {
        int64_t late = 0;
        if (p->root == BY_LOOP)
            put_loop(p, n);
        else if (p->root == BY_RESULT_SUM)
            put("    {\n    .param .b64 r;\n    .param .b64 m;\n    .param .b64 l;\n    st.param.b64 [m], "
                "%%p;\n"
                "    st.param.b64 [l], %%d;\n    call (r), moved_%u, (m, l);\n    ld.param.b64 %%a, [r];\n"
                "    }\n",
                n);
        else
            late = put_sum(p, r);
        put_access(p, late);
    }
    put("    ld.param.u64 %%out, [out];\n    mul.wide.u32 %%x, %%t, 8;\n    add.s64 %%out, %%out, %%x;\n"
        "    st.global.u64 [%%out], %%v;\n    ret;\n}\n");
}

// --- what is planned ---------------------------------------------------------------------------------------

static bool in(const char *class, const char *name)
{
    return strcmp(class, name) == 0;
}

static bool is_freed(const char *class)
{
    return in(class, "freed") || in(class, "late");
}

static struct plan plan_case(const char *class, unsigned number)
{
    struct plan p = {.root = dice(ROOTS),
                     .sum = dice(SUMS),
                     .access = random_access(OPS, LINE + number),
                     .passing = dice(PASSINGS)};
    if (in(class, "idioms")) {
        p.idiom = 1 + dice(IDIOMS - 1);
        p.root = dice(BY_VARIABLE);
    }
    if (p.root == BY_VARIABLE && (is_freed(class) || in(class, "far") || heap.on))
        p.root = BY_PARAMETER;
    p.size = p.access.width + dice(dice(3) ? 600 : MOST);
    p.other_size = p.access.width + dice(dice(3) ? 600 : MOST);
    if (in(class, "misaligned")) {
        p.access.width = p.access.width < 2 ? 2 : p.access.width;
        p.size += 2 * p.access.width;
        p.sum = p.sum == BY_INDEX ? BY_ADD : p.sum;
        p.root = p.root == BY_LOOP ? BY_LOAD : p.root;
    }
    p.thread = dice(WARP);
    p.generic = p.root != BY_VARIABLE && !dice(4);
    return p;
}

static int64_t inside(const struct plan *p, uint64_t size)
{
    return (int64_t)dice((unsigned)(size / p->access.width)) * p->access.width;
}

// Chooses the offset of the access in question; returns whether it is wrong.
static bool choose(const struct plan *p, struct run *r, const char *class)
{
    int64_t w = p->access.width, size = (int64_t)p->size;
    r->right = r->wrong = inside(p, p->size);
    if (is_freed(class))
        return true;
    if (in(class, "idioms") || !dice(4))
        return false;
    if (in(class, "misaligned")) {
        r->right = inside(p, p->size - p->access.width);
        r->wrong = r->right + 1 + dice(p->access.width - 1);
        return true;
    }
    if (in(class, "far") && p->root != BY_LOOP) {
        r->wrong = (int64_t)(r->other - r->target) + inside(p, p->other_size);
        return true;
    }
    // The last element that begins inside may end outside.
    bool before = p->root != BY_LOOP && dice(2);
    r->wrong = before ? -w * (1 + (int64_t)dice(4)) : size / w * w + w * (int64_t)dice(4);
    return true;
}

// --- running -----------------------------------------------------------------------------------------------

static void fill(CUdeviceptr at, uint64_t size, unsigned char first)
{
    static unsigned char bytes[LARGEST];
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(first + i);
    NEED(d.cuMemcpyHtoD_v2(at, bytes, size));
}

// Compares a buffer with what fill has written, except for the bytes that correct accesses change.
static void compare(CUdeviceptr at, uint64_t size, unsigned char first, int64_t except, unsigned width,
                    unsigned line)
{
    static unsigned char bytes[LARGEST];
    NEED(d.cuMemcpyDtoH_v2(bytes, at, size));
    for (int64_t i = 0; i < (int64_t)size; i++)
        if (bytes[i] != (unsigned char)(first + i) && !(except <= i && i < except + width)) {
            printf("changed %u: byte %lld of %llu\n", line, (long long)i, (unsigned long long)size);
            return;
        }
}

// A skipped load or atomic has to give 0.
static void compare_results(const struct plan *p, const struct run *r, bool bad)
{
    uint64_t results[WARP];
    NEED(d.cuMemcpyDtoH_v2(results, r->out, sizeof results));
    if (bad && results[p->thread])
        printf("result %u: 0x%llx instead of 0\n", p->access.line, (unsigned long long)results[p->thread]);
}

static const char *type_name(const struct plan *p, const struct run *r, const char *class)
{
    return is_freed(class)           ? "heap-use-after-free"
           : in(class, "misaligned") ? "misaligned-address"
           : p->root == BY_VARIABLE  ? "global-buffer-overflow"
           : r->wrong < 0            ? "heap-buffer-underflow"
                                     : "heap-buffer-overflow";
}

static void launch(CUfunction kernel, const struct plan *p, struct run *r)
{
    CUdeviceptr target = r->target, s[4] = {0};
    int64_t wrong = r->wrong, right = r->right;
    if (p->idiom == FROM_BEFORE || p->idiom == FROM_END) {
        int64_t shift = p->idiom == FROM_END ? (int64_t)(p->size / p->access.width * p->access.width)
                                             : -(int64_t)p->access.width;
        target += (CUdeviceptr)shift;
        wrong -= shift;
        right -= shift;
    }
    s[1] = r->other;
    s[2] = target;
    void *arguments[] = {&target, &r->other, &r->holder, &r->out, &wrong, &right, (void *)&p->thread, s};
    NEED(d.cuLaunchKernel(kernel, 1, 1, 1, WARP, 1, 1, 0, NULL, arguments, NULL));
    NEED(d.cuCtxSynchronize());
}

static void free_target(struct run *r, const char *class)
{
    give(r->target);
    for (unsigned i = 0; in(class, "late") && i < 3; i++) {
        CUdeviceptr p = take(1 + dice(MOST));
        if (dice(2))
            give(p);
    }
}

static void run_case(CUmodule module, const struct plan *p, struct run *r, bool bad, const char *class,
                     unsigned n)
{
    char name[32];
    CUfunction kernel;
    CUdeviceptr variable = 0;
    size_t bytes;
    snprintf(name, sizeof name, "kernel_%u", n);
    NEED(d.cuModuleGetFunction(&kernel, module, name));
    CUdeviceptr words[2] = {r->target, r->holder};
    NEED(d.cuMemcpyHtoD_v2(r->holder, words, sizeof words));
    fill(r->other, p->other_size, 33);
    if (p->root == BY_VARIABLE) {
        snprintf(name, sizeof name, "variable_%u", n);
        NEED(d.cuModuleGetGlobal_v2(&variable, &bytes, module, name));
    }
    CUdeviceptr place = variable ? variable : r->target;
    fill(place, p->size, 77);
    if (is_freed(class))
        free_target(r, class);
    launch(kernel, p, r);
    compare(r->other, p->other_size, 33, 0, 0, p->access.line);
    if (!is_freed(class))
        compare(place, p->size, 77, r->right, p->access.width, p->access.line);
    compare_results(p, r, bad);
    if (!bad)
        printf("good %u\n", p->access.line);
    else
        printf("bad %u %s %s %u %u 0x%llx %llu root %d sum %d op %d%s\n", p->access.line,
               type_name(p, r, class), p->access.op == LOAD ? "read" : "write", p->access.width,
               is_freed(class) ? 0 : p->thread, variable ? 0 : (unsigned long long)r->target,
               (unsigned long long)p->size, p->root, p->sum, p->access.op, p->generic ? " generic" : "");
    if (!is_freed(class))
        give(r->target);
    give(r->other);
}

static void run_batch(unsigned first, unsigned count, const char *class, CUdeviceptr holder, CUdeviceptr out)
{
    struct plan plans[BATCH];
    struct run runs[BATCH];
    bool bad[BATCH];
    CUmodule module;
    used = 0;
    put(".version 7.0\n.target sm_75\n.address_size 64\n.file 1 \"random.cu\"\n");
    // Kernels of a module that calls malloc look pointers up in its heap at once; others ask at each access.
    if (heap.on && dice(2))
        put(MALLOC);
    for (unsigned i = 0; i < count; i++) {
        plans[i] = plan_case(class, first + i);
        runs[i] = (struct run){.holder = holder, .out = out};
        runs[i].target = take(plans[i].size);
        runs[i].other = take(plans[i].other_size);
        bad[i] = choose(&plans[i], &runs[i], class);
        put_kernel(&plans[i], &runs[i], i);
    }
    if (getenv("CHECK_RANDOM_TEXT"))
        fputs(text, stderr);
    NEED(d.cuModuleLoadData(&module, text));
    for (unsigned i = 0; i < count; i++)
        run_case(module, &plans[i], &runs[i], bad[i], class, i);
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
    CUdeviceptr holder, out;
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuMemAlloc_v2(&holder, 16));
    NEED(d.cuMemAlloc_v2(&out, 8 * WARP));
    const char *class = argv[3];
    if (strncmp(class, "heap-", 5) == 0) {
        class += 5;
        start_heap();
    }
    for (unsigned i = 0; i < cases; i += BATCH)
        run_batch(i, cases - i < BATCH ? cases - i : BATCH, class, holder, out);
    printf("done %u\n", cases);
    return 0;
}
