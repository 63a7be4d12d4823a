// SPDX-License-Identifier: MIT
// Any bytes as PTX to be executed: a module that loads is run, kernel by kernel, for a while. Nothing that a kernel
// does may touch memory that it has no right to.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exec/exec.h"
#include "exec/space.h"

enum { MEMORY = 1 << 21, MOST_STEPS = 64, MOST_PARAMS = 4096 };

static uint64_t used;
static volatile size_t consumed;

static uint64_t place(void *ctx, enum exec_variable_kind kind, uint64_t size, uint64_t align)
{
    (void)ctx;
    (void)kind;
    uint64_t at = (used + align - 1) / align * align;
    if (size > MEMORY || at > MEMORY - size)
        return 0;
    used = at + size;
    return space.device_base + at;
}

static uint64_t heap_alloc(void *ctx, uint64_t size)
{
    return place(ctx, EXEC_GLOBAL, size ? size : 1, 16);
}

static bool heap_free(void *ctx, uint64_t addr)
{
    (void)ctx;
    return space_is_device(addr);
}

static void print(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    consumed += strnlen(text, len);
}

static const struct exec_host host = {NULL, place, heap_alloc, heap_free, print};

static void emit_nothing(struct diag_sink *sink, const struct diag *d)
{
    (void)sink;
    consumed += strlen(d->message);
}

static void run(const struct exec_kernel *k, struct exec_runner *runner, struct exec_stats *stats)
{
    if (k->param_size > MOST_PARAMS || k->shared_size > 64 << 10)
        return;
    uint64_t params = place(NULL, EXEC_GLOBAL, k->param_size + 8, 16);
    if (!params)
        return;
    // Arguments that are pointers into memory that there is.
    for (uint32_t n = 0; n + 8 <= k->param_size; n += 8)
        memcpy(space_host(params) + n, &space.device_base, 8);
    uint32_t threads = k->max_threads < 40 ? k->max_threads : 40;
    struct exec_launch l = {.kernel = k,
                            .grid = {2, 1, 1},
                            .block = {threads, 1, 1},
                            .dynamic_shared = 256,
                            .stack_size = 1024,
                            .params = params,
                            .sm_count = 1,
                            .most_resident = 2};
    struct exec_grid *g = exec_grid_new(&l, stats);
    if (!g)
        return;
    for (unsigned steps = 0; exec_grid_step(g, runner) != EXEC_DONE;)
        if (++steps == MOST_STEPS)
            exec_grid_cancel(g, EXEC_LAUNCH_FAILED);
    const struct exec_fault *f = exec_grid_fault(g);
    consumed += f->kind + f->instruction.len;
    exec_grid_free(g);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (space_init())
        abort();
    void *p = mmap(space_host(space.device_base), MEMORY, PROT_READ | PROT_WRITE,
                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        abort();
    space_set(space.device_base, MEMORY, SPACE_READ | SPACE_WRITE);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct exec_runner *runner;
    if (!runner)
        runner = exec_runner_new();
    used = 4096;
    struct diag_sink sink = {emit_nothing, 0, 0};
    struct exec_text text = {"fuzz", {(const char *)data, size}};
    struct exec_program *p;
    if (exec_load(&text, 1, &host, &sink, &p))
        return 0;
    struct exec_stats stats = {0};
    for (unsigned k = 0; k < exec_kernel_count(p) && k < 4; k++)
        run(exec_kernel(p, k), runner, k % 2 ? &stats : NULL);
    exec_program_free(p);
    return 0;
}
