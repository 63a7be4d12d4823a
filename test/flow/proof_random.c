// SPDX-License-Identifier: MIT
// proof_random [KERNELS [SEED]]: makes random kernels, executes each with several launches on the CPU, and
// compares every address that a thread touches with the bound that proof_memo_eval gives for it. Most
// launches differ from the one before in a number or two, so that closed forms are used with other numbers;
// their answers for further launches, which are not executed, are compared with what proof_eval knows to be
// touched.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/diag.h"
#include "exec/exec.h"
#include "exec/space.h"
#include "flow/brute.h"
#include "flow/proof_memo.h"
#include "flow/ranges.h"
#include "random_kernel.h"

enum { MEMORY = 1 << 20, LAUNCHES = 5, VARIANTS = 12 };

// --- comparison --------------------------------------------------------------------------------------------

struct totals {
    unsigned long long kernels, launches, accesses, bounded, unknown, unreachable, touched, remembered,
        closed;
    unsigned long long variants, equal, wider, tighter;
};

struct params {
    uint64_t log, base[2];
    int32_t scalar[SCALARS];
    uint64_t size;
};

static uint64_t place(void *ctx, enum exec_variable_kind kind, uint64_t size, uint64_t align)
{
    (void)ctx, (void)kind, (void)size, (void)align;
    return 0;
}

static const struct exec_host HOST = {.place = place};

static uint32_t dimension(uint32_t most)
{
    return below(3) ? 1 + below(most) : 1;
}

static uint64_t random_size(void)
{
    return below(3) ? below(300) : below(2) ? (uint64_t)odd_number() : 1ULL << below(64);
}

static void make_launch(struct proof_launch *l, struct params *p)
{
    *l = (struct proof_launch){{dimension(4), dimension(2), dimension(2)},
                               {1 + below(40), dimension(2), dimension(2)},
                               0,
                               sizeof *p,
                               p};
    p->base[0] = 0x700000000000 + 256 * below(100);
    p->base[1] = 0x7000F0000000 + 256 * below(100);
    for (int i = 0; i < SCALARS; i++)
        p->scalar[i] = (int32_t)(below(4) ? (long long)below(200) : odd_number());
    p->size = random_size();
}

// Changes a number or two of a launch.
static void vary_launch(struct proof_launch *l, struct params *p)
{
    for (uint32_t n = 1 + below(2); n > 0; n--) {
        uint32_t k = below(SCALARS);
        switch (below(8)) {
        case 0: l->grid[below(3)] = dimension(4); break;
        case 1: l->block[0] = 1 + below(40); break;
        case 2: p->size = random_size(); break;
        case 3: p->scalar[k] = (int32_t)((uint32_t)p->scalar[k] * 2); break;
        case 4: p->scalar[k] = (int32_t)odd_number(); break;
        case 5: p->scalar[k] = (int32_t)below(200); break;
        default: p->scalar[k] = (int32_t)((uint32_t)p->scalar[k] + below(9) - 4);
        }
    }
}

// Runs the kernel; *all says whether no loop was cut short.
static bool execute(const struct exec_kernel *k, const struct proof_launch *l, struct params *p, int64_t *log)
{
    uint64_t base = space.device_base;
    int64_t *at = (int64_t *)space_host(base + 4096);
    p->log = base + 4096;
    for (int i = 0; i < g.naccesses; i++) {
        at[2 * i] = INT64_MAX;
        at[2 * i + 1] = INT64_MIN;
    }
    memcpy(space_host(base), p, sizeof *p);
    struct exec_launch launch = {
        .kernel = k, .params = base, .stack_size = 1024, .sm_count = 1, .most_resident = 4};
    memcpy(launch.grid, l->grid, sizeof launch.grid);
    memcpy(launch.block, l->block, sizeof launch.block);
    struct exec_grid *grid = exec_grid_new(&launch, NULL);
    struct exec_runner *r = exec_runner_new();
    if (!grid || !r)
        abort();
    while (exec_grid_step(grid, r) != EXEC_DONE)
        ;
    bool ok = exec_grid_fault(grid)->kind == EXEC_NO_FAULT;
    exec_grid_free(grid);
    exec_runner_free(r);
    memcpy(log, at, 16 * MOST_ACCESSES);
    return ok;
}

static bool agrees(int k, const struct proof_bound *b, const int64_t *log, const struct proof *p,
                   const char **why)
{
    bool touched = log[0] <= log[1];
    if (!touched)
        return true;
    if (b->verdict == PROOF_UNKNOWN)
        return true;
    *why = "an access that is called unreachable was executed";
    if (b->verdict == PROOF_UNREACHABLE)
        return false;
    const struct proof_root *root = &p->roots[b->root];
    *why = "the root is another one";
    if (g.access[k].root == 2
            ? root->kind != PROOF_ROOT_SHARED
            : root->kind != PROOF_ROOT_PARAM || root->param != 1u + (unsigned)g.access[k].root)
        return false;
    *why = "an address is not of its residue";
    for (int i = 0; i < 2 && log[0] <= log[1]; i++)
        if (((uint64_t)log[i] - b->residue) & ((1u << b->power) - 1))
            return false;
    *why = "an access lies outside of its bound";
    return log[0] >= b->lowest && log[1] + g.access[k].bytes - 1 <= b->highest;
}

static int by_stmt(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

// Asks first for the same launch with other pointers, so that most answers are remembered ones.
static const struct proof_bound *bounds_of(const struct proof *proof, struct proof_memo *memo,
                                           const struct proof_launch *l, struct totals *t)
{
    const struct proof_bound *bounds;
    struct params other = *(const struct params *)l->params;
    struct proof_launch before = *l;
    void *work = malloc(proof_work_size(proof));
    bool remembered;
    other.base[0] ^= 0x5A0000;
    other.base[1] ^= 0x1230;
    before.params = &other;
    if (!work || proof_memo_eval(memo, &before, work, &bounds, NULL) ||
        proof_memo_eval(memo, l, work, &bounds, &remembered))
        abort();
    free(work);
    t->remembered += remembered;
    t->closed += proof_memo_is_closed(memo);
    return bounds;
}

static bool compare(const struct ranges *r, struct proof_memo *memo, const struct proof_launch *l,
                    const struct params *p, const int64_t *log, struct totals *t)
{
    uint32_t order[MOST_ACCESSES + 8][2];
    const struct proof *proof = &r->proof;
    const struct proof_bound *bounds = bounds_of(proof, memo, l, t);
    for (uint32_t i = 0; i < proof->head->naccesses; i++) {
        order[i][0] = proof->accesses[i].stmt;
        order[i][1] = i;
    }
    qsort(order, proof->head->naccesses, sizeof *order, by_stmt);
    for (int i = 0; i < g.naccesses && (uint32_t)i < proof->head->naccesses; i++) {
        const struct proof_bound *b = &bounds[order[i][1]];
        const char *why = "";
        t->accesses++;
        t->bounded += b->verdict == PROOF_BOUNDED;
        t->unknown += b->verdict == PROOF_UNKNOWN;
        t->unreachable += b->verdict == PROOF_UNREACHABLE;
        t->touched += log[2 * i] <= log[2 * i + 1];
        if (agrees(i, b, log + 2 * i, proof, &why))
            continue;
        printf("access %d: %s: bound %lld .. %lld, touched %lld .. %lld and %d bytes\n", i, why,
               (long long)b->lowest, (long long)b->highest, (long long)log[2 * i], (long long)log[2 * i + 1],
               g.access[i].bytes);
        printf("grid %u %u %u block %u %u %u scalars %d %d %d %d size %lld\n", l->grid[0], l->grid[1],
               l->grid[2], l->block[0], l->block[1], l->block[2], p->scalar[0], p->scalar[1], p->scalar[2],
               p->scalar[3], (long long)p->size);
        return false;
    }
    return true;
}

// Compares an answer of a closed form with a fresh one: if either is exact, the other cannot leave anything
// out.
static bool consistent(const struct proof_bound *closed, const struct proof_bound *fresh, struct totals *t)
{
    if (closed->verdict == PROOF_UNKNOWN || fresh->verdict == PROOF_UNKNOWN) {
        t->wider += fresh->verdict != PROOF_UNKNOWN;
        t->tighter += closed->verdict != PROOF_UNKNOWN;
        t->equal += fresh->verdict == closed->verdict;
        return true;
    }
    bool none = closed->verdict == PROOF_UNREACHABLE, no = fresh->verdict == PROOF_UNREACHABLE;
    if (none || no) {
        t->wider += !none;
        t->tighter += !no;
        t->equal += none && no;
        return !(none ? fresh : closed)->exact || (none && no);
    }
    bool inside = closed->lowest >= fresh->lowest && closed->highest <= fresh->highest;
    bool around = closed->lowest <= fresh->lowest && closed->highest >= fresh->highest;
    t->equal += inside && around;
    t->wider += around && !inside;
    t->tighter += inside && !around;
    return closed->root == fresh->root && (inside || !closed->exact) && (around || !fresh->exact);
}

static bool try_variants(const struct proof *proof, struct proof_memo *memo, const struct proof_launch *from,
                         struct totals *t)
{
    struct params p = *(const struct params *)from->params;
    struct proof_launch l = *from;
    void *work = malloc(proof_work_size(proof));
    const struct proof_bound *out;
    struct proof_bound fresh[MOST_ACCESSES + 8];
    bool remembered, ok = true;
    l.params = &p;
    for (int i = 0; i < VARIANTS && ok; i++) {
        vary_launch(&l, &p);
        if ((uint64_t)l.block[0] * l.block[1] * l.block[2] > 1024)
            continue;
        if (!work || proof_memo_eval(memo, &l, work, &out, &remembered))
            abort();
        if (remembered || !proof_memo_is_closed(memo))
            continue;
        if (proof_eval(proof, &l, work, fresh, NULL))
            abort();
        t->variants++;
        for (uint32_t k = 0; k < proof->head->naccesses && ok; k++) {
            ok = consistent(&out[k], &fresh[k], t);
            if (!ok)
                printf("row %u: a closed form says %u %lld .. %lld%s, proof_eval %u %lld .. %lld%s\n", k,
                       out[k].verdict, (long long)out[k].lowest, (long long)out[k].highest,
                       out[k].exact ? " exactly" : "", fresh[k].verdict, (long long)fresh[k].lowest,
                       (long long)fresh[k].highest, fresh[k].exact ? " exactly" : "");
        }
    }
    free(work);
    return ok;
}

static bool run_kernel(struct totals *t)
{
    struct diag_printer sink;
    struct ptx_module *m;
    struct exec_program *program;
    struct ranges *r;
    bool ok = true;
    diag_printer_init(&sink, 5);
    struct exec_text text = {"executed", {g.executed.at, g.executed.len}};
    if (ptx_parse("analysed", (struct str){g.analysed.at, g.analysed.len}, &sink.sink, NULL, &m) ||
        exec_load(&text, 1, &HOST, &sink.sink, &program))
        return false;
    struct flow w = {.m = m, .f = ptx_find(m, STR("k"))->func};
    if (ranges_build(&w, &r))
        abort();
    void *memory = malloc(proof_memo_size(&r->proof)), *work = malloc(proof_work_size(&r->proof));
    if (!memory || !work)
        abort();
    struct proof_memo *memo = proof_memo_init(&r->proof, memory, work);
    free(work);
    struct proof_launch l;
    struct params p = {0};
    for (int i = 0; i < LAUNCHES && ok; i++) {
        int64_t log[2 * MOST_ACCESSES];
        if (i && below(4))
            vary_launch(&l, &p);
        else
            make_launch(&l, &p);
        if ((uint64_t)l.block[0] * l.block[1] * l.block[2] > 1024)
            continue;
        if (!execute(exec_find_kernel(program, STR("k")), &l, &p, log)) {
            printf("the kernel faulted\n");
            ok = false;
        }
        t->launches++;
        ok = ok && compare(r, memo, &l, &p, log, t) && try_variants(&r->proof, memo, &l, t);
    }
    t->kernels++;
    free(memory);
    ranges_free(r);
    flow_drop(&w);
    exec_program_free(program);
    ptx_free(m);
    return ok;
}

int main(int argc, char **argv)
{
    unsigned long kernels = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000,
                  seed = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
    struct totals t = {0};
    if (space_init() || mmap(space_host(space.device_base), MEMORY, PROT_READ | PROT_WRITE,
                             MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return 2;
    space_set(space.device_base, MEMORY, SPACE_READ | SPACE_WRITE);
    for (unsigned long k = 0; k < kernels; k++) {
        g.random.state = (seed + k) * 0x9E3779B97F4A7C15ULL | 1;
        make_kernel();
        if (run_kernel(&t))
            continue;
        printf("kernel of seed %lu:\n%.*s", seed + k, (int)g.analysed.len, g.analysed.at);
        return 1;
    }
    printf("covered: %llu kernels, %llu launches, %llu accesses: %llu bounded, %llu unknown, %llu "
           "unreachable; %llu touched; %llu launches remembered, %llu by closed "
           "forms; %llu not executed: %llu bounds equal to fresh ones, %llu wider, %llu tighter\n",
           t.kernels, t.launches, t.accesses, t.bounded, t.unknown, t.unreachable, t.touched, t.remembered,
           t.closed, t.variants, t.equal, t.wider, t.tighter);
    return 0;
}
