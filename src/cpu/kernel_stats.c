// SPDX-License-Identifier: MIT
#include "cpu/kernel_stats.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "base/vec.h"
#include "cpu/config.h"

// A leaf lock. Rows are never removed: launches in progress refer to theirs by index.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct kernel_stats) kernels;
static pid_t owner;

// --- the table ---------------------------------------------------------------------------------------------

enum { CELL = 24 };
enum kind { NUMBER, SECONDS, PERCENT };

struct column {
    const char *heading;
    enum kind kind;
};

static const struct column columns[] = {
#define COLUMN(heading, kind, value, of) {heading, kind},
#include "cpu/kernel_stats.def"
#undef COLUMN
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void read_values(const struct kernel_stats *r, uint64_t *values, uint64_t *wholes)
{
    size_t n = 0;
#define COLUMN(heading, kind, value, of) values[n] = (value), wholes[n++] = (of);
#include "cpu/kernel_stats.def"
#undef COLUMN
}

static int print_cell(char *to, enum kind kind, uint64_t value, uint64_t whole)
{
    if (kind == SECONDS)
        return snprintf(to, CELL, "%.6f", (double)value * 1e-9);
    if (kind == PERCENT)
        return snprintf(to, CELL, "%.1f", whole ? 100 * (double)value / (double)whole : 0);
    return snprintf(to, CELL, "%" PRIu64, value);
}

// Computes the width of each column; 0: the column is left out.
static void measure(const struct kernel_stats *rows, size_t n, int *widths)
{
    char cell[CELL];
    uint64_t values[COLUMNS], wholes[COLUMNS];
    memset(widths, 0, COLUMNS * sizeof *widths);
    for (size_t i = 0; i < n; i++) {
        read_values(&rows[i], values, wholes);
        for (int c = 0; c < COLUMNS && rows[i].launches; c++) {
            int width = values[c] ? print_cell(cell, columns[c].kind, values[c], wholes[c]) : 0;
            int heading = values[c] ? (int)strlen(columns[c].heading) : 0;
            width = width > heading ? width : heading;
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
}

void kernel_stats_table(const struct kernel_stats *rows, size_t n, struct out *o)
{
    int widths[COLUMNS];
    char cell[CELL];
    uint64_t values[COLUMNS], wholes[COLUMNS];
    measure(rows, n, widths);
    out_lit(o, "moat: kernels:");
    for (int c = 0; c < COLUMNS; c++)
        if (widths[c])
            out_fmt(o, " %*s", widths[c], columns[c].heading);
    out_lit(o, " kernel\n");
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].launches)
            continue;
        read_values(&rows[i], values, wholes);
        out_lit(o, "moat: kernels:");
        for (int c = 0; c < COLUMNS; c++) {
            print_cell(cell, columns[c].kind, values[c], wholes[c]);
            if (widths[c])
                out_fmt(o, " %*s", widths[c], cell);
        }
        out_char(o, ' ');
        out_clean(o, str_from(rows[i].name));
        out_char(o, '\n');
    }
}

// Renders the table and resets the sums of the rows. The lock must be held.
static bool render(struct out *o)
{
    uint64_t launches = 0;
    for (size_t i = 0; i < kernels.len; i++)
        launches += kernels.items[i].launches;
    if (!launches || out_to_memory(o))
        return false;
    kernel_stats_table(kernels.items, kernels.len, o);
    for (size_t i = 0; i < kernels.len; i++)
        kernels.items[i] = (struct kernel_stats){.name = kernels.items[i].name};
    return true;
}

void kernel_stats_print(void)
{
    struct out text;
    // A forked child has its parent's rows, which only the parent prints.
    if (owner != getpid())
        return;
    mutex_lock(&lock);
    bool some = render(&text);
    mutex_unlock(&lock);
    if (!some)
        return;
    // A failed write is ignored.
    ssize_t ignored = write(STDERR_FILENO, text.buf, text.len);
    (void)ignored;
    out_close(&text);
}

// --- launches ----------------------------------------------------------------------------------------------

static _Atomic(unsigned) open_launches;  // begun and not ended

// A program learns that its kernel failed a moment before the launch is counted, and may exit at once: so
// this waits up to 0.2 s for launches that have not been counted.
static void print_at_exit(void)
{
    struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < 200 && atomic_load_explicit(&open_launches, memory_order_acquire); i++)
        nanosleep(&moment, NULL);
    kernel_stats_print();
}

static void start_held(void)
{
    owner = getpid();
    atexit(print_at_exit);
}

// Other threads wait for this one.
static void start(void)
{
    mutex_hold();
    start_held();
    mutex_release();
}

// Returns the index of the kernel's row, which is added if need be; SIZE_MAX if out of memory. The lock must
// be held.
static size_t find_row(struct str name)
{
    for (size_t i = 0; i < kernels.len; i++)
        if (str_eq(str_from(kernels.items[i].name), name))
            return i;
    char *copy = mem_alloc(name.len + 1);
    if (!copy || vec_push(&kernels, (struct kernel_stats){.name = copy})) {
        mem_free(copy);
        return SIZE_MAX;
    }
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = 0;
    return kernels.len - 1;
}

struct kernel_stats_launch *kernel_stats_begin(struct str kernel)
{
    const struct config *config = config_get();
    if (!config->stats && !config->times)
        return NULL;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    struct kernel_stats_launch *l = mem_zalloc(1, sizeof *l);
    if (!l)
        return NULL;
    mutex_lock(&lock);
    l->kernel = find_row(kernel);
    mutex_unlock(&lock);
    l->counts = config->stats;
    if (l->kernel != SIZE_MAX) {
        atomic_fetch_add_explicit(&open_launches, 1, memory_order_relaxed);
        return l;
    }
    mem_free(l);
    return NULL;
}

static void add(struct exec_stats *sum, const struct exec_stats *s)
{
    sum->warp_insns += s->warp_insns;
    sum->thread_insns += s->thread_insns;
    sum->transactions += s->transactions;
    sum->branches += s->branches;
    sum->divergent += s->divergent;
    for (size_t i = 0; i < sizeof s->loads / sizeof *s->loads; i++) {
        sum->loads[i] += s->loads[i];
        sum->stores[i] += s->stores[i];
    }
}

void kernel_stats_end(struct kernel_stats_launch *l)
{
    if (!l)
        return;
    struct grid_clock now = pool_clock();
    mutex_lock(&lock);
    if (l->began.wall) {
        struct kernel_stats *k = &kernels.items[l->kernel];
        k->launches++;
        k->time.wall += now.wall - l->began.wall;
        k->time.cpu += now.cpu - l->began.cpu;
        add(&k->counters, &l->counters);
    }
    mutex_unlock(&lock);
    mem_free(l);
    atomic_fetch_sub_explicit(&open_launches, 1, memory_order_release);  // partner: print_at_exit
}
