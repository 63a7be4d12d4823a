// SPDX-License-Identifier: MIT
// For tests: a host with a little memory, loading with captured reports, running.
#ifndef MOAT_EXEC_EXEC_TESTING_H
#define MOAT_EXEC_EXEC_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "exec/exec.h"
#include "exec/space.h"

#define EXEC_TESTING_HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

enum { EXEC_TESTING_MEMORY = 1 << 21, EXEC_TESTING_TEXTS = 4 };

// What a test sees of its host. Setting `used` to 0 frees the memory.
struct exec_testing {
    uint64_t used;
    char printed[1 << 16], reported[4096];
};
static struct exec_testing exec_testing;

static uint64_t exec_testing_take(uint64_t size, uint64_t align)
{
    uint64_t at = (exec_testing.used + align - 1) / align * align;
    if (size > EXEC_TESTING_MEMORY || at > EXEC_TESTING_MEMORY - size)
        return 0;
    exec_testing.used = at + size;
    return space.device_base + at;
}

static uint64_t exec_testing_place(void *ctx, enum exec_variable_kind kind, uint64_t size, uint64_t align)
{
    (void)ctx;
    (void)kind;
    return exec_testing_take(size, align);
}

static void exec_testing_heap_alloc(void *ctx, uint32_t lanes, const uint64_t *sizes, uint64_t *at)
{
    (void)ctx;
    for (unsigned l = 0; l < 32; l++) {
        if (lanes >> l & 1)
            at[l] = exec_testing_take(sizes[l] ? sizes[l] : 1,
                                      sizes[l] > 16 && !(sizes[l] & (sizes[l] - 1)) ? sizes[l] : 16);
    }
}

static uint32_t exec_testing_heap_free(void *ctx, uint32_t lanes, const uint64_t *at)
{
    (void)ctx;
    uint32_t bad = 0;
    for (unsigned l = 0; l < 32; l++) {
        if (lanes >> l & 1)
            bad |= (uint32_t)(at[l] && !space_is_device(at[l])) << l;
    }
    return bad;
}

static void exec_testing_print(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    size_t at = strlen(exec_testing.printed);
    snprintf(exec_testing.printed + at, sizeof exec_testing.printed - at, "%.*s", (int)len, text);
}

static const struct exec_host exec_testing_host = {
    NULL, exec_testing_place, exec_testing_heap_alloc, exec_testing_heap_free, exec_testing_print, NULL};

static inline int exec_testing_setup(void **state)
{
    (void)state;
    if (space_init())
        return -1;
    void *p = mmap(space_host(space.device_base), EXEC_TESTING_MEMORY, PROT_READ | PROT_WRITE,
                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    space_set(space.device_base, EXEC_TESTING_MEMORY, SPACE_READ | SPACE_WRITE);
    return p == MAP_FAILED ? -1 : 0;
}

// Appends "NAME:LINE:COLUMN: message" to the reports, a line each.
static void exec_testing_emit(struct diag_sink *sink, const struct diag *d)
{
    (void)sink;
    size_t at = strlen(exec_testing.reported);
    struct diag_place p = diag_locate(d->source.text, d->offset);
    snprintf(exec_testing.reported + at, sizeof exec_testing.reported - at, "%s%s:%u:%u: %s", at ? "\n" : "",
             d->source.name, p.line, p.column, d->message);
}

// Loads texts named "a", "b", ... up to a NULL, after clearing the memory and the reports.
static inline int exec_testing_load(const char *const *texts, struct exec_program **out)
{
    static const char *const names[EXEC_TESTING_TEXTS] = {"a", "b", "c", "d"};
    struct exec_text list[EXEC_TESTING_TEXTS];
    unsigned n = 0;
    for (; n < EXEC_TESTING_TEXTS && texts[n]; n++)
        list[n] = (struct exec_text){names[n], str_from(texts[n])};
    exec_testing = (struct exec_testing){.used = 4096};
    memset(space_host(space.device_base), 0, EXEC_TESTING_MEMORY);
    struct diag_sink sink = {exec_testing_emit, 0, 0};
    return exec_load(list, n, &exec_testing_host, &sink, out);
}

// Loads texts, which must succeed.
static inline struct exec_program *exec_testing_texts(const char *const *texts)
{
    struct exec_program *p;
    int err = exec_testing_load(texts, &p);
    if (err)
        print_error("%s\n", exec_testing.reported);
    assert_int_equal(err, 0);
    return p;
}

// Loads one text, without its head, which must succeed.
static inline struct exec_program *exec_testing_text(const char *text)
{
    char *all;
    assert_true(asprintf(&all, "%s%s", EXEC_TESTING_HEAD, text) > 0);
    struct exec_program *p = exec_testing_texts((const char *const[]){all, NULL});
    free(all);
    return p;
}

// Loads texts, which must fail with err and that report.
static inline void exec_testing_refuse(const char *const *texts, int err, const char *report)
{
    struct exec_program *p;
    int got = exec_testing_load(texts, &p);
    if (got != err)
        print_error("%s\n%s\n", texts[0], exec_testing.reported);
    assert_int_equal(got, err);
    assert_null(p);
    assert_string_equal(exec_testing.reported, report);
}

static inline uint32_t exec_testing_word(uint64_t address)
{
    uint32_t value;
    memcpy(&value, space_host(address), sizeof value);
    return value;
}

// Runs a grid to its end, or cancels it after most_steps steps. Returns what ended it.
static inline struct exec_fault exec_testing_run(const struct exec_launch *launch, unsigned most_steps)
{
    struct exec_grid *g = exec_grid_new(launch, NULL);
    struct exec_runner *r = exec_runner_new();
    struct exec_fault fault = {.kind = EXEC_OUT_OF_MEMORY};
    unsigned steps = 0;
    if (g && r) {
        while (exec_grid_step(g, r) != EXEC_DONE) {
            if (++steps == most_steps)
                exec_grid_cancel(g, EXEC_LAUNCH_FAILED);
            assert_true(steps < most_steps + 10);
        }
        fault = *exec_grid_fault(g);
    }
    exec_grid_free(g);
    exec_runner_free(r);
    return fault;
}

static inline struct exec_launch exec_testing_launch(struct exec_program *p, const char *name,
                                                     uint32_t blocks, uint32_t threads, const void *params)
{
    const struct exec_kernel *k = exec_find_kernel(p, str_from(name));
    assert_non_null(k);
    uint64_t at = exec_testing_take(k->param_size + 1, 16);
    if (params)
        memcpy(space_host(at), params, k->param_size);
    return (struct exec_launch){.kernel = k,
                                .grid = {blocks, 1, 1},
                                .block = {threads, 1, 1},
                                .stack_size = 1024,
                                .params = at,
                                .sm_count = 1,
                                .most_resident = 4};
}

#endif
