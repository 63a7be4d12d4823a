// SPDX-License-Identifier: MIT
// Runs combinations on a device, many to a module, and hands over the results of each.
#ifndef MOAT_TEST_GOLDEN_RUN_H
#define MOAT_TEST_GOLDEN_RUN_H

#include "device.h"
#include "results.h"
#include "snippets.h"

enum { PER_MODULE = 200 };

struct run {
    const struct combos *all;
    struct device device;
    struct bank bank;
    uint64_t *rows;  // results of the current combination
    // The outcome of combination i: its results are in rows; the driver did not load it; it ended the
    // context.
    void (*done)(struct run *r, size_t i, const struct inputs *in);
    void (*refused)(struct run *r, size_t i);
    void (*fault)(struct run *r, size_t i, CUresult result);
};

static int run_open(struct run *r, const char *libcuda)
{
    int err = device_open(&r->device, libcuda);
    if (err)
        return err;
    r->rows = mem_zalloc((size_t)INPUT_COUNT * KERNEL_WORDS, 8);
    return r->rows ? 0 : -ENOMEM;
}

static void run_close(struct run *r)
{
    bank_free(&r->bank);
    mem_free(r->rows);
    device_close(&r->device);
}

static void print_module(const struct combos *all, size_t first, size_t last, struct out *to)
{
    kernel_print_header(to);
    out_cstr(to, snippets_header);
    for (size_t i = first; i < last; i++) {
        out_fmt(to, ".visible .entry g%zu", i);
        kernel_print(&all->list.items[i], to);
        out_char(to, '\n');
    }
    out_char(to, '\0');
}

// Returns 0, a negative code, or the CUresult of a fault.
static int run_one(struct run *r, size_t i)
{
    const struct combo *c = &r->all->list.items[i];
    const struct inputs *in = bank_find(&r->bank, c);
    char name[32];
    if (!in)
        return -ENOMEM;
    snprintf(name, sizeof name, "g%zu", i);
    CUresult result = device_run(&r->device, name, in->values, in->n, r->rows, kernel_outputs(c));
    if (result)
        return (int)result;
    r->done(r, i, in);
    return 0;
}

static int run_range(struct run *r, size_t first, size_t last);

// A fault ends the context: the rest of the module is run in a new one.
static int run_after_fault(struct run *r, size_t i, size_t last, CUresult result)
{
    r->fault(r, i, result);
    if (device_reopen(&r->device))
        return -EIO;
    return i + 1 < last ? run_range(r, i + 1, last) : 0;
}

static int run_range(struct run *r, size_t first, size_t last)
{
    struct out text;
    if (out_to_memory(&text))
        return -ENOMEM;
    print_module(r->all, first, last, &text);
    CUresult result = device_load(&r->device, text.buf);
    out_close(&text);
    if (result && last - first > 1) {
        size_t middle = first + (last - first) / 2;
        int err = run_range(r, first, middle);
        return err ? err : run_range(r, middle, last);
    }
    if (result) {
        r->refused(r, first);
        return 0;
    }
    for (size_t i = first; i < last; i++) {
        int err = run_one(r, i);
        if (err > 0)
            return run_after_fault(r, i, last, (CUresult)err);
        if (err)
            return err;
    }
    return 0;
}

static int run_all(struct run *r)
{
    size_t n = r->all->list.len;
    int err = 0;
    for (size_t i = 0; i < n && !err; i += PER_MODULE)
        err = run_range(r, i, i + PER_MODULE < n ? i + PER_MODULE : n);
    return err;
}

// Returns the driver's messages about a module, in one line.
static char *run_log(struct run *r)
{
    for (char *p = r->device.log; *p; p++)
        if (*p == '\n')
            *p = ' ';
    return r->device.log;
}

#endif
