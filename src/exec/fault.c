// SPDX-License-Identifier: MIT
// What ended a grid: the first fault wins, with its exact position.
#include <string.h>

#include "exec/sched.h"

static struct exec_fault_frame *add_frame(struct exec_fault *f, struct str function, bool inlined)
{
    if (f->nframes == EXEC_FAULT_FRAMES)
        return NULL;
    struct exec_fault_frame *frame = &f->frames[f->nframes++];
    *frame = (struct exec_fault_frame){.function = function, .inlined = inlined};
    return frame;
}

static void set_source(struct exec_fault_frame *frame, const struct ptx_module *m, const struct ptx_loc *loc)
{
    struct ptx_source source;
    if (frame && ptx_loc_source(m, loc, &source)) {
        frame->file = source.file;
        frame->line = source.line;
    }
}

// Returns the .loc of the position that code was inlined at, and its index; NULL if no .loc before `before`
// has it.
static const struct ptx_loc *find_caller(const struct exec_func *func, uint32_t before,
                                         const struct ptx_inlined *at, uint32_t *index)
{
    for (uint32_t k = before; k-- > func->first_loc;) {
        const struct ptx_loc *loc = func->program->locs[k];
        if (loc->file == at->file && loc->line == at->line && loc->column == at->column) {
            *index = k;
            return loc;
        }
    }
    return NULL;
}

// Adds the frames of one activation: inlined functions, innermost first, and the function itself.
static void add_frames(struct exec_fault *f, const struct exec_func *func, const struct exec_insn *i)
{
    if (!func->module || i < func->code || i >= func->code + func->ncode) {
        add_frame(f, func->name, false);
        return;
    }
    const struct ptx_module *m = func->module->ptx;
    uint32_t index = func->loc[i - func->code];
    const struct ptx_loc *loc = index == PTX_NONE ? NULL : func->program->locs[index];
    struct ptx_loc place;
    struct ptx_inlined at;
    // Each step goes back in the list, so the loop ends.
    while (loc && f->nframes < EXEC_FAULT_FRAMES && ptx_loc_inlined(m, loc, &at)) {
        set_source(add_frame(f, at.function, true), m, loc);
        loc = find_caller(func, index, &at, &index);
        if (!loc) {
            place = (struct ptx_loc){at.file, at.line, at.column, {NULL, 0}};
            loc = &place;
        }
    }
    struct exec_fault_frame *own = add_frame(f, func->name, false);
    if (loc)
        set_source(own, m, loc);
}

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

static void describe(struct exec_warp *w, const struct exec_insn *i, struct exec_fault *fault, unsigned lane)
{
    fault->kernel = w->block->grid->launch.kernel;
    for (unsigned k = 0; k < 3; k++) {
        fault->block[k] = w->block->ctaid[k];
        fault->thread[k] = w->tid[k][lane];
    }
    // An intrinsic has no PTX code: the fault is reported at the call.
    const struct exec_frame *frame = w->frame;
    if (frame->func->intrinsic) {
        i = frame->call;
        frame = frame->caller;
    }
    locate(fault, frame->func, i);
    for (; frame && fault->nframes < EXEC_FAULT_FRAMES; i = frame->call, frame = frame->caller)
        add_frames(fault, frame->func, i);
}

static void record(struct exec_warp *w, const struct exec_insn *i, struct exec_fault *fault, unsigned lane)
{
    struct exec_grid *g = w->block->grid;
    describe(w, i, fault, lane);
    // Pairs with the acquire in grid.c: a thread that reads GRID_STOPPED may read the fault.
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

// Returns whether the instruction was not reported yet; this thread then reports it, and no other does.
// Relaxed: each place stands alone.
static bool is_first(struct exec_grid *g, const struct exec_insn *i)
{
    for (unsigned k = 0; k < GRID_SKIPPED; k++) {
        const struct exec_insn *was = NULL;
        if (atomic_compare_exchange_strong_explicit(&g->skipped[k], &was, i, memory_order_relaxed,
                                                    memory_order_relaxed))
            return true;
        if (was == i)
            return false;
    }
    return false;
}

bool fault_skip(struct exec_warp *w, const struct exec_insn *i, enum exec_fault_kind kind, unsigned lane,
                uint64_t address, uint32_t size, bool write, const char *space)
{
    struct exec_grid *g = w->block->grid;
    if (!g->launch.skipped)
        return false;
    if (is_first(g, i)) {
        struct exec_fault fault = {
            .kind = kind, .address = address, .size = size, .write = write, .space = space};
        describe(w, i, &fault, lane);
        g->launch.skipped(g->launch.owner, &fault);
    }
    return true;
}
