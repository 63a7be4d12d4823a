// SPDX-License-Identifier: MIT
// flow_time FILE.ptx...: how long each analysis takes over all functions, and over the one it takes longest for.
// What passes a limit is named.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/diag.h"
#include "flow/cfg.h"
#include "flow/dom.h"
#include "flow/live.h"
#include "flow/loops.h"
#include "flow/reach.h"
#include "flow/regs.h"

enum { PARSE, CFG, DOMINATORS, POSTDOMINATORS, LOOPS, REGISTERS, LIVENESS, REACHING, STEPS };

static const char *const step_names[STEPS] = {"parse", "cfg",       "dominators", "postdominators",
                                              "loops", "registers", "liveness",   "reaching"};

struct timing {
    double total, most;
    char name[120];  // of the function that took most
};

static struct timing timings[STEPS];
static unsigned long long functions, statements, blocks;

// Processor time: the machine may be busy with other things.
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Adds the time since *start to a step, and starts anew.
static void lap(unsigned step, double *start, struct str name, uint32_t nstmts)
{
    struct timing *t = &timings[step];
    double took = now() - *start;
    t->total += took;
    if (took > t->most) {
        t->most = took;
        snprintf(t->name, sizeof t->name, "%u statements: %.*s", nstmts, (int)(name.len < 80 ? name.len : 80),
                 name.ptr);
    }
    *start = now();
}

static void time_func(const struct ptx_module *m, const struct ptx_func *f)
{
    struct cfg *cfg = NULL;
    struct dom *dom = NULL, *post = NULL;
    struct loops *loops = NULL;
    struct regs *regs = NULL;
    struct live *live = NULL;
    struct reach *reach = NULL;
    struct str name = ptx_func_name(m, f);
    double start = now();
    int err = cfg_build(m, f, &cfg);
    lap(CFG, &start, name, f->nstmts);
    err = err ? err : dom_build(cfg->graph, &dom);
    lap(DOMINATORS, &start, name, f->nstmts);
    err = err ? err : dom_build_post(cfg->graph, cfg->exits, &post);
    lap(POSTDOMINATORS, &start, name, f->nstmts);
    err = err ? err : loops_build(cfg->graph, dom, &loops);
    lap(LOOPS, &start, name, f->nstmts);
    err = err ? err : regs_build(f, 0, &regs);
    lap(REGISTERS, &start, name, f->nstmts);
    int live_err = err ? err : live_build(cfg, regs, 0, &live);
    lap(LIVENESS, &start, name, f->nstmts);
    int reach_err = err ? err : reach_build(cfg, dom, regs, 0, &reach);
    lap(REACHING, &start, name, f->nstmts);
    if (live_err || reach_err)
        printf(STR_FMT ": liveness: %s, reaching definitions: %s\n", STR_ARG(name), strerror(-live_err),
               strerror(-reach_err));
    functions++;
    statements += f->nstmts;
    blocks += cfg ? cfg->nblocks : 0;
    reach_free(reach);
    live_free(live);
    regs_free(regs);
    loops_free(loops);
    dom_free(post);
    dom_free(dom);
    cfg_free(cfg);
}

static int time_file(const char *path)
{
    struct diag_printer sink;
    struct ptx_module *m;
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        fprintf(stderr, "flow_time: cannot read %s\n", path);
        return 1;
    }
    size_t size = (size_t)ftell(file);
    char *text = malloc(size + 1);
    rewind(file);
    size = text ? fread(text, 1, size, file) : 0;
    fclose(file);
    diag_printer_init(&sink, 20);
    double start = now();
    int err = ptx_parse(path, (struct str){text, size}, &sink.sink, NULL, &m);
    lap(PARSE, &start, str_from(path), 0);
    for (uint32_t i = 0; !err && i < m->nitems; i++)
        if (m->items[i].kind == PTX_ITEM_FUNC && m->items[i].func->has_body)
            time_func(m, m->items[i].func);
    if (!err)
        ptx_free(m);
    free(text);
    return err != 0;
}

int main(int argc, char **argv)
{
    int status = 0;
    for (int i = 1; i < argc; i++)
        status |= time_file(argv[i]);
    printf("%llu functions, %llu statements, %llu blocks\n", functions, statements, blocks);
    for (unsigned i = 0; i < STEPS; i++)
        printf("%-15s %8.3f s, at most %8.4f s in %s\n", step_names[i], timings[i].total, timings[i].most,
               timings[i].name);
    return status;
}
