// SPDX-License-Identifier: MIT
// count_run: kernels of counted_kernels.ptx, rewritten by the counting pass and run on the CPU device, must
// count what is computed here; with and without redux.
// count_run plain|counted: launches them with one thread in a block, original or rewritten. Rewritten, it
// prints a line for each: its name, then the loads and the stores in each space. See count.sh.
// Run it in the root of the tree.
#include "../cpu/driver_check.h"
#include "pass/pass.h"
#include "pass/pass_count.h"

// Rounds of `many`: enough that bytes do not fit one part of a sum. With a sanitizer that would take a
// minute.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#ifdef SANITIZED
enum { MANY = 1000 };
#else
enum { MANY = 600000 };
#endif
enum { MEMORY = 1 << 16, MOST_FUNCS = 16 };

static void emit(struct diag_sink *sink, const struct diag *d)
{
    (void)sink;
    printf("%s: %s\n", d->source.name, d->message);
}

struct counted {
    CUmodule module;
    struct pass_result *about;
    CUdeviceptr table;
};

static char *read_kernels(const char *target)
{
    char *text = calloc(1, MEMORY), *at;
    FILE *f = fopen("test/pass/counted_kernels.ptx", "r");
    check_need(text && f && fread(text, 1, MEMORY - 1, f) > 0);
    fclose(f);
    at = strstr(text, "sm_90");
    memcpy(at, target, 5);
    return text;
}

static struct counted load(const char *target)
{
    struct diag_sink sink = {.emit = emit};
    struct pass_request request = {.passes = "count", .arch = 90, .verify = true};
    struct counted c;
    char *text = read_kernels(target), name[100];
    size_t bytes;
    check_need(!pass_rewrite("counted_kernels.ptx", str_from(text), &request, &sink, &c.about));
    free(text);
    bool redux = strstr(c.about->text.ptr, "redux");
    CHECK(redux == !strcmp(target, "sm_90"));
    TRY(cuModuleLoadData(&c.module, c.about->text.ptr));
    EQUAL(c.about->nsymbols, 1);
    snprintf(name, sizeof name, STR_FMT, STR_ARG(c.about->symbols[0].name));
    TRY(cuModuleGetGlobal_v2(&c.table, &bytes, c.module, name));
    EQUAL(bytes, c.about->symbols[0].bytes);
    EQUAL(bytes, 8 * PASS_COUNT_ROW * c.about->nfuncs);
    return c;
}

static void unload(struct counted *c)
{
    TRY(cuModuleUnload(c->module));
    pass_result_free(c->about);
}

static struct pass_count_sums counts(const struct counted *c, const char *func)
{
    static uint64_t table[MOST_FUNCS * PASS_COUNT_ROW];
    struct pass_count_sums sums = {0};
    check_need(c->about->symbols[0].bytes <= sizeof table);
    TRY(cuMemcpyDtoH_v2(table, c->table, c->about->symbols[0].bytes));
    for (uint32_t i = 0; i < c->about->nfuncs; i++)
        if (str_eq(c->about->funcs[i].name, str_from(func))) {
            EQUAL(c->about->funcs[i].why, PASS_REWRITTEN);
            pass_count_add(table, i, &sums);
            return sums;
        }
    printf("no function %s\n", func);
    check_wrong++;
    return sums;
}

static void launch(CUmodule module, const char *kernel, unsigned blocks, unsigned threads, unsigned n)
{
    CUdeviceptr memory = check_zeroed(MEMORY);
    TRY(LAUNCH(check_function(module, kernel), blocks, threads, 0, NULL, &memory, &n));
    TRY(cuCtxSynchronize());
    TRY(cuMemFree_v2(memory));
}

// --- what must be counted ---------------------------------------------------------------------------------

static bool is(const char *what, struct pass_count_sums got, struct pass_count_sums expected)
{
    EQUAL(got.launches, expected.launches);
    EQUAL(got.threads, expected.threads);
    for (unsigned s = 0; s < PASS_COUNT_SPACES; s++) {
        EQUAL(got.space[s].loads, expected.space[s].loads);
        EQUAL(got.space[s].stores, expected.space[s].stores);
        EQUAL(got.space[s].loaded, expected.space[s].loaded);
        EQUAL(got.space[s].stored, expected.space[s].stored);
    }
    if (check_wrong)
        printf("in %s\n", what);
    return !check_wrong;
}

#define GENERIC space[PASS_COUNT_GENERIC]
#define GLOBAL space[PASS_COUNT_GLOBAL]
#define SHARED space[PASS_COUNT_SHARED]
#define LOCAL space[PASS_COUNT_LOCAL]

// Blocks of 70 threads: two warps and a partial one.
static void simple(const struct counted *c)
{
    enum { B = 3, T = 70, ALL = B * T, N = 41 };
    launch(c->module, "widths", B, T, N);
    is("widths", counts(c, "widths"),
       (struct pass_count_sums){.launches = 1,
                                .threads = ALL,
                                .GLOBAL = {2 * B * N, B * N, 17 * B * N, 8 * B * N},
                                .GENERIC = {B * N, B * N, 8 * B * N, 2 * B * N}});
    uint64_t rounds = B * N * (N + 1) / 2;
    launch(c->module, "rounds", B, T, N);
    is("rounds", counts(c, "rounds"),
       (struct pass_count_sums){.launches = 1,
                                .threads = ALL,
                                .SHARED = {rounds, rounds + B * N, 4 * rounds, 4 * (rounds + B * N)}});
    uint64_t even = B * T / 2;
    launch(c->module, "guards", B, T, N);
    is("guards", counts(c, "guards"),
       (struct pass_count_sums){
           .launches = 1,
           .threads = ALL,
           .GLOBAL = {B * N + even, B * (T - N) + 2 * even, 4 * (B * N + even), 4 * B * (T - N) + 2 * even}});
    launch(c->module, "atomics", B, T, N);
    launch(c->module, "atomics", 1, 1, N);
    is("atomics", counts(c, "atomics"),
       (struct pass_count_sums){.launches = 2,
                                .threads = ALL + 1,
                                .GLOBAL = {2 * ALL + 2, 2 * ALL + 2, 12 * ALL + 12, 12 * ALL + 12},
                                .GENERIC = {ALL + 1, ALL + 1, 4 * ALL + 4, 4 * ALL + 4},
                                .SHARED = {ALL + 1, ALL + 1, 4 * ALL + 4, 4 * ALL + 4}});
    launch(c->module, "locals", B, T, N);
    is("locals", counts(c, "locals"),
       (struct pass_count_sums){.launches = 1,
                                .threads = ALL,
                                .LOCAL = {ALL, 2 * ALL, 4 * ALL, 24 * ALL},
                                .GENERIC = {ALL, 0, 4 * ALL, 0}});
}

static void copies(const struct counted *c)
{
    enum { B = 3, T = 70, N = 41 };
    uint64_t read = 0;
    for (unsigned t = 0; t < T; t++)
        read += (t % 16) * (1 + (t < N)) * B;
    launch(c->module, "copies", B, T, N);
    is("copies", counts(c, "copies"),
       (struct pass_count_sums){.launches = 1,
                                .threads = B * T,
                                .GLOBAL = {B * (T + N), 0, read, 0},
                                .SHARED = {0, B * (T + N), 0, 16 * B * (T + N)}});
}

// One warp, which loads matrices of 512, 256, 1024, 256, 256 and 512 bytes into as many registers as they
// need or more, stores one of 16 x 16, and moves four and two of 8 x 8.
static void matrices(const struct counted *c)
{
    enum { B = 3, T = 32, ALL = B * T };
    launch(c->module, "matrices", B, T, 0);
    is("matrices", counts(c, "matrices"),
       (struct pass_count_sums){.launches = 1,
                                .threads = ALL,
                                .GLOBAL = {6 * ALL, 0, B * 2816, 0},
                                .GENERIC = {0, ALL, 0, 32 * ALL},
                                .SHARED = {ALL, ALL, 16 * ALL, 8 * ALL}});
}

// One thread: an mbarrier is initialised, arrived at, tested and invalidated, and signalled by a copy of 64
// bytes; another copy has no mbarrier.
static void barriers(const struct counted *c)
{
    launch(c->module, "barriers", 3, 1, 0);
    is("barriers", counts(c, "barriers"),
       (struct pass_count_sums){.launches = 1,
                                .threads = 3,
                                .GLOBAL = {3, 3, 3 * 64, 3 * 32},
                                .SHARED = {12, 15, 3 * (3 * 8 + 32), 3 * (4 * 8 + 64)}});
}

static void functions(const struct counted *c)
{
    enum { B = 3, T = 64, ALL = B * T };
    launch(c->module, "calls", B, T, 0);
    is("calls", counts(c, "calls"),
       (struct pass_count_sums){.launches = 1, .threads = ALL, .GLOBAL = {0, ALL, 0, 4 * ALL}});
    // Of four threads those with 1, 2 and 3 call as often; if that is odd they load once a call, otherwise
    // twice.
    uint64_t fours = ALL / 4;
    is("twice", counts(c, "twice"),
       (struct pass_count_sums){.threads = 6 * fours, .GLOBAL = {8 * fours, 0, 32 * fours, 0}});
}

static void many(const struct counted *c)
{
    enum { T = 33 };
    uint64_t loads = (uint64_t)17 * MANY * T, bytes = (uint64_t)260 * MANY * T;
    launch(c->module, "many", 1, T, MANY);
    is("many", counts(c, "many"),
       (struct pass_count_sums){.launches = 1, .threads = T, .GLOBAL = {loads, 0, bytes, 0}});
}

static void check_all(const char *target)
{
    struct counted c = load(target);
    simple(&c);
    copies(&c);
    matrices(&c);
    barriers(&c);
    functions(&c);
    many(&c);
    unload(&c);
}

// --- to be compared with --stats --------------------------------------------------------------------------

static const char *const kernels[] = {"widths", "rounds",   "guards",   "locals",   "calls",
                                      "copies", "matrices", "barriers", "spellings"};
enum { KERNELS = sizeof kernels / sizeof *kernels, BLOCKS = 7 };

static void launch_all(CUmodule module)
{
    for (unsigned i = 0; i < KERNELS; i++)
        launch(module, kernels[i], BLOCKS, 1, 3);
}

static void print_counts(const struct counted *c)
{
    for (unsigned i = 0; i < KERNELS; i++) {
        struct pass_count_sums s = counts(c, kernels[i]);
        printf("%s", kernels[i]);
        for (unsigned k = 0; k < PASS_COUNT_SPACES; k++)
            printf(" %llu", (unsigned long long)s.space[k].loads);
        for (unsigned k = 0; k < PASS_COUNT_SPACES; k++)
            printf(" %llu", (unsigned long long)s.space[k].stores);
        printf("\n");
    }
}

static void run_plain(void)
{
    CUmodule module;
    char *text = read_kernels("sm_90");
    TRY(cuModuleLoadData(&module, text));
    launch_all(module);
    free(text);
}

static void run_counted(void)
{
    struct counted c = load("sm_90");
    launch_all(c.module);
    print_counts(&c);
    unload(&c);
}

int main(int argc, char **argv)
{
    CUcontext context = check_context();
    if (argc == 1) {
        check_all("sm_90");
        check_all("sm_75");
    } else if (!strcmp(argv[1], "plain")) {
        run_plain();
    } else {
        run_counted();
    }
    TRY(cuCtxDestroy_v2(context));
    if (argc > 1)
        return check_wrong != 0;
    return check_end("count_run");
}
