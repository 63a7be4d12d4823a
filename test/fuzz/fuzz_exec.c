// SPDX-License-Identifier: MIT
// Any bytes as PTX to be executed: modules that load are run, kernel by kernel, for a while. No kernel may
// access memory that it has no right to, every loop must end when it is stopped, and a refusal must have a
// reason. A line "//&" separates texts that are linked. In every fourth input one allocation fails, and all
// after it.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "exec/exec.h"
#include "exec/space.h"
#include "ptx_mutate.h"

enum { MEMORY = 1 << 17, MOST_STEPS = 8, MOST_TEXTS = 4, MOST_KERNELS = 4 };

static uint64_t used;
static volatile size_t consumed;

static void require(bool holds)
{
    if (!holds)
        abort();
}

// --- a host -----------------------------------------------------------------------------------------------

static uint64_t place(void *ctx, enum exec_variable_kind kind, uint64_t size, uint64_t align)
{
    (void)ctx;
    (void)kind;
    require(size && align && !(align & (align - 1)));
    uint64_t at = (used + align - 1) / align * align;
    if (size > MEMORY || at > MEMORY - size)
        return 0;
    used = at + size;
    return space.device_base + at;
}

static void heap_alloc(void *ctx, uint32_t lanes, const uint64_t *sizes, uint64_t *at)
{
    for (unsigned l = 0; l < 32; l++) {
        if (lanes >> l & 1)
            at[l] = place(ctx, EXEC_GLOBAL, sizes[l] ? sizes[l] : 1, 16);
    }
}

static uint32_t heap_free(void *ctx, uint32_t lanes, const uint64_t *at)
{
    (void)ctx;
    uint32_t bad = 0;
    for (unsigned l = 0; l < 32; l++) {
        if (lanes >> l & 1)
            bad |= (uint32_t)(at[l] && !space_is_device(at[l])) << l;
    }
    return bad;
}

static void print(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    consumed += strnlen(text, len);
}

static const struct exec_host host = {NULL, place, heap_alloc, heap_free, print, NULL};

static void emit_nothing(struct diag_sink *sink, const struct diag *d)
{
    (void)sink;
    require(d->source.name && d->offset <= d->source.text.len);
    consumed += strlen(d->message) + diag_locate(d->source.text, d->offset).line;
}

// --- runs -------------------------------------------------------------------------------------------------

static void check_fault(const struct exec_kernel *k, const struct exec_fault *f)
{
    if (!f->kind)
        return;
    require(f->kernel == k);
    consumed += f->line + f->source_line + f->source_file.len;
    for (size_t n = 0; n < f->instruction.len; n++)
        consumed += (unsigned char)f->instruction.ptr[n];
}

static void run(const struct exec_kernel *k, struct exec_runner *runner, struct exec_stats *stats)
{
    uint64_t params = place(NULL, EXEC_GLOBAL, k->param_size + 8, 16);
    if (!params)
        return;
    // Arguments that point into existing memory.
    for (uint32_t n = 0; n + 8 <= k->param_size; n += 8)
        memcpy(space_host(params) + n, &space.device_base, 8);
    uint32_t threads = k->max_threads < 40 ? k->max_threads : 40;
    struct exec_launch l = {.kernel = k,
                            .grid = {2, 1, 1},
                            .block = {threads, 1, 1},
                            .cluster = {k->required_cluster[0] == 2 ? 2 : 0, 1, 1},
                            .dynamic_shared = 256,
                            .stack_size = 1024,
                            .params = params,
                            .sm_count = 1,
                            .most_resident = 2};
    struct exec_grid *g = exec_grid_new(&l, stats);
    if (!g)
        return;
    for (unsigned steps = 0; exec_grid_step(g, runner) != EXEC_DONE;) {
        if (++steps == MOST_STEPS)
            exec_grid_cancel(g, EXEC_LAUNCH_FAILED);
        require(steps < MOST_STEPS + 4);
    }
    check_fault(k, exec_grid_fault(g));
    exec_grid_free(g);
}

static void run_all(struct exec_program *p, struct exec_runner *runner)
{
    struct exec_stats stats = {0};
    for (unsigned k = 0; k < exec_variable_count(p); k++)
        require(exec_find_variable(p, exec_variable(p, k)->name) != NULL);
    for (unsigned k = 0; k < exec_kernel_count(p); k++) {
        require(exec_find_kernel(p, exec_kernel(p, k)->name) != NULL);
        if (k < MOST_KERNELS)
            run(exec_kernel(p, k), runner, k % 2 ? &stats : NULL);
    }
}

// --- inputs -----------------------------------------------------------------------------------------------

static unsigned divide(struct str all, struct exec_text texts[MOST_TEXTS])
{
    unsigned n = 0;
    for (; n < MOST_TEXTS - 1; n++) {
        const char *end = all.len ? memmem(all.ptr, all.len, "\n//&\n", 5) : NULL;
        if (!end)
            break;
        texts[n] = (struct exec_text){"fuzz", {all.ptr, (size_t)(end - all.ptr)}};
        all = str_skip(all, texts[n].ptx.len + 5);
    }
    texts[n] = (struct exec_text){"fuzz", all};
    return n + 1;
}

// Returns which allocation fails first; -1: none fails.
static long first_failure(const uint8_t *data, size_t size)
{
    uint32_t hash = 2166136261;
    for (size_t k = 0; k < size; k++)
        hash = (hash ^ data[k]) * 16777619;
    return hash % 4 ? -1 : (long)(hash / 4 % 512);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    require(space_init() == 0);
    void *p = mmap(space_host(space.device_base), MEMORY, PROT_READ | PROT_WRITE,
                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(p != MAP_FAILED);
    space_set(space.device_base, MEMORY, SPACE_READ | SPACE_WRITE);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct exec_runner *runner;
    if (!runner)
        runner = exec_runner_new();
    used = 4096;
    memset(space_host(space.device_base), 0, MEMORY);
    struct diag_sink sink = {emit_nothing, 0, 0};
    struct exec_text texts[MOST_TEXTS];
    unsigned n = divide((struct str){(const char *)data, size}, texts);
    struct exec_program *p;
    mem_fail_after(first_failure(data, size));
    int err = exec_load(texts, n, &host, &sink, &p);
    require(err == 0 || err == -ENOMEM || err == -EINVAL || err == -ENOTSUP || err == -ENOENT ||
            err == -EEXIST);
    require((err != 0) == (p == NULL) && (err == 0 || err == -ENOMEM || sink.errors));
    if (p)
        run_all(p, runner);
    mem_fail_after(-1);
    exec_program_free(p);
    return 0;
}
