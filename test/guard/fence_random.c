// SPDX-License-Identifier: MIT
// Random kernels whose addresses are anything, for the tests of --mode=fence.
//
//   fence_random COUNT SEED [KERNEL]
//
// Makes COUNT kernels in PTX, of loads and stores of all widths by pointers that are sums of the kernel's
// buffer with numbers of the program, with numbers from memory, and with constants as large as a fence may
// leave unmasked; under conditions, in loops, of shared memory and of variables. Launches each with right
// numbers, wrong ones and a mixture of both, so that all variants of it are used. After each launch the
// context must work, and memory of a neighbour, which is allocated past moat (FENCE_DRIVER), be as it was.
// Prints the kernel for which that is not so. KERNEL: only the one with this number, whose text is printed.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

enum {
    BUFFER = 1 << 16,
    NEIGHBOUR = 1 << 18,
    WORDS = 1024,
    POINTERS = 6,
    INDICES = 6,
    PLACES = 4,
    LAUNCHES = 5
};

static uint64_t state;

static uint64_t random_word(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t v = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(random_word() % n);
}

// --- a kernel ----------------------------------------------------------------------------------------------

static char text[1 << 17];
static size_t length;
static unsigned labels, target;

static void put(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    length += (size_t)vsnprintf(text + length, sizeof text - length, fmt, args);
    va_end(args);
    if (length >= sizeof text)
        exit(2);
}

// A guard, or nothing.
static const char *guard(void)
{
    static char to[16];
    if (below(4))
        return "";
    snprintf(to, sizeof to, "@%s%%p%u ", below(2) ? "!" : "", below(3));
    return to;
}

// What is added to addresses: around the steps that a fence counts, and the offsets that it leaves alone.
static int64_t constant(void)
{
    static const int64_t of[] = {1,         2,         4,         8,        16,
                                 32,        64,        100,       128,      1000,
                                 1008,      1024,      4096,      16368,    16384,
                                 65536,     1 << 20,   1048575,   1048560,  (1 << 20) + 16,
                                 1 << 21,   1 << 22,   1 << 24,   1 << 25,  16777215,
                                 100 << 20, 1LL << 31, 1LL << 32, 1LL << 40};
    int64_t c = of[below(below(3) ? 16 : sizeof of / sizeof *of)];
    return below(3) ? c : -c;
}

static int32_t offset(void)
{
    int64_t c = below(3) ? 4 * (int64_t)below(8) : constant();
    return c > 1 << 24 || c < -(1 << 24) ? 0 : (int32_t)c;
}

static void pointer(void)
{
    unsigned to = below(POINTERS), from = below(POINTERS), x = below(INDICES);
    const char *g = guard();
    switch (below(18)) {
    case 0:
    case 1:
    case 2: put("%sadd.s64 %%q%u, %%q%u, %lld;\n", g, to, from, (long long)constant()); break;
    case 3: put("%ssub.s64 %%q%u, %%q%u, %lld;\n", g, to, from, (long long)constant()); break;
    case 4: put("%smov.u64 %%q%u, %%q%u;\n", g, to, from); break;
    case 5: put("%smov.u64 %%q%u, %%own;\n", g, to); break;
    case 6: put("mad.wide.u32 %%q%u, %%r%u, %u, %%own;\n", to, x, 1u << below(5)); break;
    case 7: put("%smad.wide.s32 %%q%u, %%r%u, %u, %%q%u;\n", g, to, x, 4u << below(3), from); break;
    case 8: put("%sadd.s64 %%q%u, %%own, %%far;\n", g, to); break;
    case 9: put("%sselp.b64 %%q%u, %%q%u, %%q%u, %%p%u;\n", g, to, from, below(POINTERS), below(3)); break;
    case 10: put("%sld.param.u64 %%q%u, [k_own];\n", g, to); break;
    // A pointer, or anything, from memory, and fields of a struct that has a pointer, and a number.
    case 11: put("%sld.global.u64 %%q%u, [%%q%u+%u];\n", g, to, from, 8 * below(9)); break;
    case 12: put("ld.param.u64 %%q%u, [k_both+%u];\n", to, 8 * below(4)); break;
    case 13:
        put("mov.b64 %%e%u, k_both;\nld.param.u64 %%q%u, [%%e%u+%u];\n", labels, to, labels, 8 * below(4));
        labels++;
        break;
    case 14:
        put("%scvt.u64.u32 %%d0, %%s%u;\n%scvta.shared.u64 %%q%u, %%d0;\n", "", below(PLACES), g, to);
        break;
    case 15:
        put("mul.wide.s32 %%d0, %%r%u, %u;\n%ssub.s64 %%q%u, %%%s, %%d0;\n", x, 1u << below(5), g, to,
            below(2) ? "own" : "q0");
        break;
    // Another block's shared memory; without clusters it is the block's own.
    case 16:
        if (target >= 90)
            put("cvt.u64.u32 %%d0, %%s%u;\ncvta.shared.u64 %%d0, %%d0;\nmapa.u64 %%d1, %%d0, 0;\n"
                "mad.wide.u32 %%q%u, %%r%u, %u, %%d1;\n",
                below(PLACES), to, x, 1u << below(5));
        break;
    default:
        put("cvt.u64.u32 %%d0, %%r%u;\nshl.b64 %%d0, %%d0, %u;\n%sadd.s64 %%q%u, %%q%u, %%d0;\n", x,
            below(34), g, to, from);
    }
}

static void index_of(void)
{
    unsigned to = below(INDICES), x = below(INDICES), y = below(INDICES);
    switch (below(9)) {
    case 0: put("mov.u32 %%r%u, %%i;\n", to); break;
    case 1: put("add.s32 %%r%u, %%r%u, %d;\n", to, x, (int)below(40) - 20); break;
    case 2: put("xor.b32 %%r%u, %%r%u, %%r%u;\n", to, x, y); break;
    case 3: put("and.b32 %%r%u, %%r%u, %u;\n", to, x, (1u << below(12)) - 1); break;
    case 4: put("setp.lt.u32 %%p%u, %%r%u, %%n;\n", below(3), x); break;
    case 5: put("setp.ge.s32 %%p%u, %%r%u, %%r%u;\n", below(3), x, y); break;
    case 6: put("mul.lo.s32 %%r%u, %%r%u, %%r%u;\n", to, x, y); break;
    case 7: put("shfl.sync.idx.b32 %%r%u, %%r%u, %u, 31, -1;\n", to, x, below(32)); break;
    default: put("shl.b32 %%r%u, %%r%u, %u;\n", to, x, below(8));
    }
}

// An address in shared memory, or in a variable in global memory.
static void place(void)
{
    unsigned to = below(PLACES), x = below(INDICES);
    const char *g = guard();
    switch (below(7)) {
    case 0: put("%smov.u32 %%s%u, %s;\n", g, to, below(2) ? "tile" : "dynamic"); break;
    case 1: put("%sadd.s32 %%s%u, %%s%u, %d;\n", g, to, below(PLACES), offset()); break;
    case 2: put("%smad.lo.s32 %%s%u, %%r%u, %u, %%s%u;\n", g, to, x, 1u << below(5), below(PLACES)); break;
    case 3: put("%smov.u64 %%v%u, table;\n", g, to); break;
    case 4: put("%sadd.s64 %%v%u, %%v%u, %d;\n", g, to, below(PLACES), offset()); break;
    case 5: put("%smad.wide.s32 %%v%u, %%r%u, 4, %%v%u;\n", g, to, x, below(PLACES)); break;
    default: put("mov.u64 %%v%u, table+%u;\n", to, 4 * below(64));
    }
}

static void access(void)
{
    static const char *const loads[] = {
        "ld.%su8 %%h0, [%s];\n%scvt.u32.u16 %%r%u, %%h0;\n",
        "ld.%su16 %%h0, [%s];\n%scvt.u32.u16 %%r%u, %%h0;\n", "ld.%su32 %%w, [%s];\n%smov.u32 %%r%u, %%w;\n",
        "ld.%sv2.u32 {%%w, %%w1}, [%s];\n%smov.u32 %%r%u, %%w1;\n",
        "ld.%sv4.u32 {%%w, %%w1, %%w2, %%w3}, [%s];\n%smov.u32 %%r%u, %%w3;\n"};
    static const char *const stores[] = {
        "st.%su8 [%s], %%r%u;\n",
        "st.%sb32 [%s], %%r%u;\n",
        "st.%sv2.b32 [%s], {%%r%u, %%i};\n",
        "st.%sv4.b32 [%s], {%%r%u, %%i, %%i, %%i};\n",
        "red.%sadd.u32 [%s], %%r%u;\n",
    };
    char where[48], held[16];
    const char *space = below(4) ? "global." : "", *g = guard();
    int32_t by = offset();
    unsigned kind = below(7), x = below(INDICES);
    if (kind == 0) {
        space = below(5) || target < 90 ? "shared." : "shared::cluster.";
        snprintf(where, sizeof where, "%%s%u%+d", below(PLACES), (int)by);
    } else if (kind == 1) {
        space = below(5) || target < 90 ? "shared." : "shared::cluster.";
        snprintf(where, sizeof where, "%s%+d", below(2) ? "tile" : "dynamic", (int)(by < 0 ? -by : by));
    } else if (kind == 2) {
        space = "global.";  // behind a variable the CPU device has memory that is not of the global space
        snprintf(where, sizeof where, "%%v%u%+d", below(PLACES), (int)by);
    } else {
        snprintf(where, sizeof where, "%%q%u%+d", below(POINTERS), (int)by);
    }
    snprintf(held, sizeof held, "%s", g);
    put("%s", held);
    if (below(2))
        put(loads[below(5)], space, where, held, x);
    else
        put(stores[below(5)], space, where, x);
}

// An access that a proof bounds where the numbers are right, of the buffer or of shared memory.
static void proved(void)
{
    unsigned label = labels++;
    put("setp.ge.u32 %%p3, %%i, %%n;\n@%%p3 bra L%u;\n", label);
    if (below(3))
        put("mad.wide.u32 %%d1, %%i, 4, %%own;\nst.global.u32 [%%d1+%u], %%i;\nadd.s64 %%q%u, %%d1, 0;\n",
            4 * below(4), below(POINTERS));
    else
        put("shl.b32 %%w, %%i, 2;\nmov.u32 %%w1, tile;\nadd.s32 %%w, %%w, %%w1;\nst.shared.u32 [%%w], "
            "%%i;\n");
    put("L%u:\n", label);
}

static void statements(unsigned n, unsigned depth)
{
    for (; n; n--) {
        unsigned k = below(16), label;
        if (k < 4) {
            pointer();
        } else if (k < 9) {
            access();
        } else if (k < 11) {
            index_of();
        } else if (k < 13) {
            place();
        } else if (k == 13) {
            proved();
        } else if (k == 14 && depth) {
            label = labels++;
            put("@%s%%p%u bra L%u;\n", below(2) ? "!" : "", below(3), label);
            statements(1 + below(5), depth - 1);
            put("L%u:\n", label);
        } else if (depth) {
            label = labels++;
            put("mov.u32 %%c%u, 0;\nL%u:\n", depth, label);
            statements(1 + below(5), depth - 1);
            put("add.s32 %%c%u, %%c%u, 1;\nsetp.lt.u32 %%p3, %%c%u, %u;\n@%%p3 bra L%u;\n", depth, depth,
                depth, 2 + below(5), label);
        }
    }
}

static void make_kernel(void)
{
    length = labels = 0;
    target = below(3) ? 90 : 75;  // shared memory is fenced in another way where there are clusters
    put(".version 8.0\n.target sm_%u\n.address_size 64\n.shared .align 16 .b8 tile[1024];\n"
        ".extern .shared .align 16 .b8 dynamic[];\n.global .align 16 .b8 table[%u];\n",
        target, 16 + 16 * below(64));
    put(".visible .entry k(.param .u64 k_own, .param .u64 k_words, .param .u64 k_far, .param .u32 k_n, "
        ".param .align 8 .b8 k_both[32])\n{\n"
        ".reg .b16 %%h0;\n.reg .b32 %%r<%d>;\n.reg .b32 %%s<%d>;\n.reg .b64 %%q<%d>;\n.reg .b64 %%v<%d>;\n"
        ".reg .b64 %%e<200>;\n.reg .b32 %%c<4>;\n.reg .b32 %%w;\n.reg .b32 %%w1;\n.reg .b32 %%w2;\n.reg .b32 "
        "%%w3;\n"
        ".reg .b32 %%i;\n.reg .b32 %%n;\n.reg .b64 %%d<3>;\n.reg .b64 %%own;\n.reg .b64 %%far;\n.reg .pred "
        "%%p<4>;\n",
        INDICES, PLACES, POINTERS, PLACES);
    put("ld.param.u64 %%own, [k_own];\nld.param.u64 %%d2, [k_words];\nld.param.u64 %%far, [k_far];\n"
        "ld.param.u32 %%n, [k_n];\nmov.u32 %%w, %%ctaid.x;\nmov.u32 %%w1, %%ntid.x;\nmov.u32 %%w2, %%tid.x;\n"
        "mad.lo.s32 %%i, %%w, %%w1, %%w2;\n");
    if (below(2))
        put("cvta.to.global.u64 %%own, %%own;\n");
    for (unsigned k = 0; k < INDICES; k++) {
        if (below(2))
            put("ld.global.u32 %%r%u, [%%d2+%u];\n", k, 4 * below(WORDS));
        else
            put("mov.u32 %%r%u, %%i;\n", k);
    }
    for (unsigned k = 0; k < 3; k++)
        put("setp.lt.u32 %%p%u, %%r%u, %%n;\n", k, k);
    for (unsigned k = 0; k < POINTERS; k++)
        put("add.s64 %%q%u, %%own, %u;\n", k, 16 * below(20));
    for (unsigned k = 0; k < PLACES; k++)
        put("mov.u32 %%s%u, tile;\nmov.u64 %%v%u, table;\n", k, k);
    statements(6 + below(20), 3);
    put("ret;\n}\n");
}

// --- the neighbour -----------------------------------------------------------------------------------------

static struct {
    void *library;
    uint64_t base;
    uint8_t before[NEIGHBOUR], now[NEIGHBOUR];
} neighbour;

static void make_neighbour(void)
{
    const char *path = getenv("FENCE_DRIVER");
    neighbour.library = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!neighbour.library)
        exit(2);
    CUresult (*take)(uint64_t *, size_t) =
        (CUresult(*)(uint64_t *, size_t))dlsym(neighbour.library, "cuMemAlloc_v2");
    CUresult (*fill)(uint64_t, const void *, size_t) =
        (CUresult(*)(uint64_t, const void *, size_t))dlsym(neighbour.library, "cuMemcpyHtoD_v2");
    for (size_t i = 0; i < NEIGHBOUR; i++)
        neighbour.before[i] = (uint8_t)random_word();
    if (take(&neighbour.base, NEIGHBOUR) || fill(neighbour.base, neighbour.before, NEIGHBOUR))
        exit(2);
}

static bool is_intact(void)
{
    CUresult (*copy)(void *, uint64_t, size_t) =
        (CUresult(*)(void *, uint64_t, size_t))dlsym(neighbour.library, "cuMemcpyDtoH_v2");
    return !copy(neighbour.now, neighbour.base, NEIGHBOUR) &&
           !memcmp(neighbour.now, neighbour.before, NEIGHBOUR);
}

// --- launches ----------------------------------------------------------------------------------------------

static CUdeviceptr own, words;

static void need(CUresult r, const char *what)
{
    if (!r)
        return;
    printf("%s gives %d\n", what, r);
    exit(2);
}

// A number that the program adds to its buffer's address: to where it still is right, or not.
static uint64_t far(unsigned launch)
{
    switch (launch ? below(6) : 0) {
    case 0: return 16 * below(BUFFER / 32);
    case 1: return neighbour.base + below(NEIGHBOUR) - own;
    case 2: return random_word() - own;
    case 3: return below(4096) - own;
    case 4: return (uint64_t)constant();
    default: return neighbour.base + below(NEIGHBOUR) / 16 * 16 - own;
    }
}

static CUresult launch(CUfunction f, unsigned which)
{
    uint32_t host[WORDS], n = which < 3 ? 64 : below(2) ? 1u << below(32) : (uint32_t)random_word();
    for (unsigned i = 0; i < WORDS; i++)
        host[i] = !which || below(2) ? below(64) : below(2) ? 1u << below(32) : (uint32_t)random_word();
    CUresult r = cuMemcpyHtoD_v2(words, host, sizeof host);
    uint64_t distance = far(which);
    uint64_t both[4] = {own, distance, own + 16 * below(99), which ? own + distance : own};
    void *params[] = {&own, &words, &distance, &n, both};
    if (!r)
        r = cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, below(2) ? 0 : 1024, NULL, params, NULL);
    return r ? r : cuCtxSynchronize();
}

// Returns whether all is well.
static bool try_kernel(void)
{
    CUmodule module;
    CUfunction f;
    need(cuModuleLoadData(&module, text), "cuModuleLoadData");
    need(cuModuleGetFunction(&f, module, "k"), "cuModuleGetFunction");
    for (unsigned i = 0; i < LAUNCHES; i++) {
        CUresult r = launch(f, i);
        bool intact = is_intact();
        if (!r && intact)
            continue;
        printf("launch %u: %d%s\n", i, r, intact ? "" : ", the neighbour HAS CHANGED");
        return false;
    }
    need(cuModuleUnload(module), "cuModuleUnload");
    return true;
}

int main(int argc, char **argv)
{
    CUcontext context;
    if (argc != 3 && argc != 4)
        return 2;
    int only = argc == 4 ? atoi(argv[3]) : -1;
    need(cuInit(0), "cuInit");
    need(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    need(cuMemAlloc_v2(&own, BUFFER), "cuMemAlloc");
    need(cuMemAlloc_v2(&words, sizeof(uint32_t) * WORDS), "cuMemAlloc");
    make_neighbour();
    for (int i = 0; i < atoi(argv[1]); i++) {
        state = strtoull(argv[2], NULL, 0) * 1000003 + (uint64_t)i;
        make_kernel();
        if (only >= 0 && i != only)
            continue;
        if (only >= 0)
            fputs(text, stdout);
        if (try_kernel())
            continue;
        printf("kernel %d of seed %s:\n%s", i, argv[2], text);
        return 1;
    }
    return 0;
}
