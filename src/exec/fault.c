// SPDX-License-Identifier: MIT
// What ended a grid: the first fault wins, and says exactly where.
#include <string.h>

#include "exec/sched.h"

static void locate(struct exec_fault *f, const struct exec_func *func, const struct exec_insn *i)
{
    if (!func->module || i < func->code || i >= func->code + func->ncode)
        return;
    const struct ptx_module *m = func->module->ptx;
    uint32_t at = (uint32_t)(i - func->code);
    f->module = func->module->name;
    if (func->pos[at] != PTX_NONE) {
        struct diag_place place = diag_locate(m->source.text, func->pos[at]);
        f->line = place.line;
        f->column = place.column;
        struct str rest = str_skip(m->source.text, func->pos[at]);
        const char *end = memchr(rest.ptr, ';', rest.len);
        f->instruction = (struct str){rest.ptr, end ? (size_t)(end - rest.ptr) : 0};
    }
    struct ptx_source source;
    if (func->loc[at] != PTX_NONE && ptx_loc_source(m, func->program->locs[func->loc[at]], &source)) {
        f->source_file = source.file;
        f->source_line = source.line;
    }
}

static void record(struct exec_warp *w, const struct exec_insn *i, struct exec_fault *fault, unsigned lane)
{
    struct exec_grid *g = w->block->grid;
    fault->kernel = g->launch.kernel;
    for (unsigned k = 0; k < 3; k++) {
        fault->block[k] = w->block->ctaid[k];
        fault->thread[k] = w->tid[k][lane];
    }
    // What the system provides has no code of its own: the call is what the program knows.
    const struct exec_frame *frame = w->frame;
    if (frame->func->intrinsic)
        locate(fault, frame->caller->func, frame->call);
    else
        locate(fault, frame->func, i);
    // Pairs with the acquire in grid.c: whoever sees stop == 2 may read the fault.
    int expected = 0;
    if (atomic_compare_exchange_strong_explicit(&g->stop, &expected, GRID_FAULTING, memory_order_acq_rel,
                                                memory_order_acquire)) {
        g->fault = *fault;
        atomic_store_explicit(&g->stop, GRID_STOPPED, memory_order_release);
    }
    w->state = WARP_FAULT;
}

const struct exec_insn *fault_raise(struct exec_warp *w, const struct exec_insn *i, enum exec_fault_kind kind)
{
    struct exec_fault fault = {.kind = kind};
    record(w, i, &fault, w->mask ? (unsigned)__builtin_ctz(w->mask) : 0);
    return NULL;
}

const struct exec_insn *fault_memory(struct exec_warp *w, const struct exec_insn *i,
                                     enum exec_fault_kind kind, unsigned lane, uint64_t address,
                                     uint32_t size, bool write, const char *space)
{
    struct exec_fault fault = {
        .kind = kind, .address = address, .size = size, .write = write, .space = space};
    record(w, i, &fault, lane);
    return NULL;
}
