// SPDX-License-Identifier: MIT
#include "exec/control.h"

#include "exec/access.h"
#include "exec/native.h"

static uint32_t predicate(const struct exec_warp *w, const struct exec_insn *i)
{
    uint32_t p = *(const uint32_t *)(w->regs + i->a);
    return (i->flags & CONTROL_NEGATED ? ~p : p) & w->mask;
}

const struct exec_insn *control_join(struct exec_warp *w, const struct exec_insn *i)
{
    return w->nsplits ? sched_join(w, i) : i + 1;
}

const struct exec_insn *control_guard(struct exec_warp *w, const struct exec_insn *i)
{
    uint32_t all = w->mask;
    w->mask = predicate(w, i);
    if (w->mask && !i[1].fn(w, i + 1))
        return NULL;
    w->mask = all;
    return i + 2;
}

static inline const struct exec_insn *jump(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *target = i->target;
    int32_t cost = (int32_t)(i->flags >> CONTROL_COST_SHIFT);
    if (cost && (w->fuel -= cost) < 0) {
        w->spins = i->flags & CONTROL_SPINS;
        return sched_yield_turn(w, target);
    }
    return !w->nsplits && i->flags & CONTROL_JOIN ? target + 1 : target;
}

const struct exec_insn *control_bra(struct exec_warp *w, const struct exec_insn *i)
{
    return jump(w, i);
}

// Splits the warp at a branch; the part with the lower position continues. It is kept apart from branches
// that all lanes take, which then need no stack.
static __attribute__((noinline)) const struct exec_insn *split(struct exec_warp *w, const struct exec_insn *i,
                                                               uint32_t taken)
{
    uint32_t rest = w->mask & ~taken;
    if (i->target > i) {
        sched_push(w, i->target, taken);
        w->mask = rest;
        return i + 1;
    }
    sched_push(w, i + 1, rest);
    w->mask = taken;
    return jump(w, i);
}

const struct exec_insn *control_bra_if(struct exec_warp *w, const struct exec_insn *i)
{
    uint32_t taken = predicate(w, i);
    if (!taken)
        return i + 1;
    return taken == w->mask ? jump(w, i) : split(w, i, taken);
}

const struct exec_insn *control_brx(struct exec_warp *w, const struct exec_insn *i)
{
    const struct control_table *table = i->ptr;
    const uint32_t *index = (const uint32_t *)(w->regs + i->a);
    uint32_t left = w->mask;
    const struct exec_insn *first = NULL;
    uint32_t first_mask = 0;
    while (left) {
        uint32_t chosen = index[__builtin_ctz(left)], same = 0;
        if (chosen >= table->n)
            return fault_raise(w, i, EXEC_INVALID_PC);
        const struct exec_insn *target = table->targets[chosen];
        for (unsigned l = 0; l < EXEC_LANES; l++)
            if (left >> l & 1 && index[l] < table->n && table->targets[index[l]] == target)
                same |= (uint32_t)1 << l;
        left &= ~same;
        if (first && target > first) {
            sched_push(w, target, same);
        } else {
            if (first)
                sched_push(w, first, first_mask);
            first = target;
            first_mask = same;
        }
    }
    w->mask = first_mask;
    if (first <= i && (w->fuel -= SCHED_STEP + (int32_t)((i - first) / SCHED_STRETCH)) < 0)
        return sched_yield_turn(w, first);
    return first;
}

// --- calls -------------------------------------------------------------------------------------------------

static void copy_params(struct exec_warp *w, uint32_t to_base, const struct exec_place *to,
                        uint32_t from_base, const struct exec_place *from, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        uint32_t size = to[k].size < from[k].size ? to[k].size : from[k].size;
        access_local_copy(w, to_base + to[k].offset, from_base + from[k].offset, (size + 3) & ~3u, w->mask);
    }
}

// Returns the function that the lanes call, and splits off lanes that call another one. Returns NULL after a
// fault of w.
static const struct exec_func *callee(struct exec_warp *w, const struct exec_insn *i,
                                      const struct control_call *call)
{
    if (call->func)
        return call->func;
    const uint64_t *address = (const uint64_t *)(w->regs + i->a);
    uint64_t chosen = address[__builtin_ctz(w->mask)];
    uint32_t others = 0;
    for (unsigned l = 0; l < EXEC_LANES; l++)
        if (w->mask >> l & 1 && address[l] != chosen)
            others |= (uint32_t)1 << l;
    const struct exec_func *f = code_find(chosen);
    if (!f || f->program != w->frame->func->program || f->nparams != call->nargs || f->nrets != call->nrets ||
        f->kernel) {
        fault_memory(w, i, EXEC_INVALID_PC, (unsigned)__builtin_ctz(w->mask), chosen, 0, false, "call");
        return NULL;
    }
    if (others) {
        sched_push(w, i, others);
        w->mask &= ~others;
    }
    return f;
}

const struct exec_insn *control_call(struct exec_warp *w, const struct exec_insn *i)
{
    const struct control_call *call = i->ptr;
    // Nested calls can take forever without any loop.
    if (w->fuel < 0)
        return sched_yield_turn(w, i);
    const struct exec_func *f = callee(w, i, call);
    if (!f)
        return NULL;
    w->fuel -= SCHED_STEP + (int32_t)(f->ncode / SCHED_STRETCH);
    if (f->native && native_call(w, i, f))
        return i + 1;
    struct exec_frame *caller = w->frame;
    uint32_t base = (caller->local_top + 15) & ~15u;
    if (base + (uint64_t)f->local_size > w->block->grid->local_size)
        return fault_memory(w, i, EXEC_ILLEGAL_ADDRESS, (unsigned)__builtin_ctz(w->mask),
                            space.local_window + base, f->local_size, true, "stack");
    struct exec_frame *frame = frame_new(w->block, f);
    if (!frame)
        return fault_raise(w, i, EXEC_OUT_OF_MEMORY);
    frame->caller = caller;
    frame->call = i;
    frame->depth = caller->depth + 1;
    frame->local_base = base;
    frame->local_top = base + f->local_size;
    copy_params(w, base, f->params, caller->local_base, call->args, call->nargs);
    frame_enter(w, frame);
    return f->intrinsic ? f->intrinsic(w, i) : f->code;
}

const struct exec_insn *control_ret(struct exec_warp *w, const struct exec_insn *i)
{
    struct exec_frame *frame = w->frame, *caller = frame->caller;
    if (!caller)
        return sched_end(w, i, w->mask);
    const struct control_call *call = frame->call->ptr;
    copy_params(w, caller->local_base, call->rets, frame->local_base, frame->func->rets, call->nrets);
    const struct exec_insn *next = frame->call + 1;
    caller->references++;
    frame_release(w->block, frame);
    frame_enter(w, caller);
    return next;
}

// --- ends --------------------------------------------------------------------------------------------------

const struct exec_insn *control_exit(struct exec_warp *w, const struct exec_insn *i)
{
    uint32_t mask = i->flags & CONTROL_IF ? predicate(w, i) : w->mask;
    return mask ? sched_end(w, i, mask) : i + 1;
}

const struct exec_insn *control_trap(struct exec_warp *w, const struct exec_insn *i)
{
    return fault_raise(w, i, EXEC_LAUNCH_FAILED);
}

const struct exec_insn *control_illegal(struct exec_warp *w, const struct exec_insn *i)
{
    return fault_raise(w, i, EXEC_ILLEGAL_INSTRUCTION);
}

const struct exec_insn *control_nanosleep(struct exec_warp *w, const struct exec_insn *i)
{
    w->spins = true;
    return sched_yield_turn(w, i + 1);
}
