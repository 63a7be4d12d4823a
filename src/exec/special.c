// SPDX-License-Identifier: MIT
#include "exec/special.h"

#include <time.h>

#include "exec/cluster.h"
#include "exec/lane.h"
#include "exec/sched.h"
#include "exec/space.h"
#include "ptx/op.h"

static uint64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t component(const uint32_t v[3], unsigned which)
{
    return which < 3 ? v[which] : 0;
}

// Returns the value of a register that is the same in all lanes of a warp.
static uint64_t uniform(const struct exec_warp *w, uint32_t id, unsigned which)
{
    const struct exec_block *b = w->block;
    const struct exec_grid *g = b->grid;
    switch (id) {
    case PTX_SREG_NTID: return component(g->launch.block, which);
    case PTX_SREG_CTAID: return component(b->ctaid, which);
    case PTX_SREG_NCTAID: return component(g->launch.grid, which);
    case PTX_SREG_CLUSTERID: return which < 3 ? b->ctaid[which] / g->cluster[which] : 0;
    case PTX_SREG_NCLUSTERID: return component(g->nclusters, which);
    case PTX_SREG_CLUSTER_CTAID: return which < 3 ? b->ctaid[which] % g->cluster[which] : 0;
    case PTX_SREG_CLUSTER_NCTAID: return component(g->cluster, which);
    case PTX_SREG_CLUSTER_CTARANK: return b->rank;
    case PTX_SREG_CLUSTER_NCTARANK: return g->cluster_size;
    case PTX_SREG_IS_EXPLICIT_CLUSTER: return g->launch.cluster[0] != 0;
    case PTX_SREG_WARPID: return w->index;
    case PTX_SREG_NWARPID: return 64;
    case PTX_SREG_SMID: return b->runner->number % (g->launch.sm_count ? g->launch.sm_count : 1);
    case PTX_SREG_NSMID: return g->launch.sm_count;
    case PTX_SREG_GRIDID: return g->launch.grid_id;
    case PTX_SREG_CLOCK:
    case PTX_SREG_CLOCK64: return __builtin_ia32_rdtsc();
    case PTX_SREG_CLOCK_HI: return __builtin_ia32_rdtsc() >> 32;
    case PTX_SREG_GLOBALTIMER:
    case PTX_SREG_GLOBALTIMER_LO: return nanoseconds();
    case PTX_SREG_GLOBALTIMER_HI: return nanoseconds() >> 32;
    // The end of what the system uses of its bytes, not of the bytes: variables begin at the latter.
    case PTX_SREG_RESERVED_SMEM_OFFSET_END: return 0;
    case PTX_SREG_RESERVED_SMEM_OFFSET_CAP: return EXEC_RESERVED_SHARED;
    case PTX_SREG_TOTAL_SMEM_SIZE: return b->shared_size - EXEC_RESERVED_SHARED;
    case PTX_SREG_AGGR_SMEM_SIZE: return b->shared_size;
    case PTX_SREG_DYNAMIC_SMEM_SIZE: return g->launch.dynamic_shared;
    case PTX_SREG_CURRENT_GRAPH_EXEC:
        return g->launch.children ? g->launch.children->current_graph(g->launch.owner) : 0;
    case PTX_SREG_ENVREG1: return g->launch.workspace >> 32;
    case PTX_SREG_ENVREG2: return (uint32_t)g->launch.workspace;
    default: return 0;
    }
}

// Reads a register that differs from lane to lane. Returns false for other registers.
static bool of_lane(const struct exec_warp *w, const struct exec_insn *i, uint32_t lane, uint64_t *value)
{
    uint32_t bit = (uint32_t)1 << lane;
    switch (i->lo) {
    case PTX_SREG_TID: *value = i->hi < 3 ? w->tid[i->hi][lane] : 0; return true;
    case PTX_SREG_LANEID: *value = lane; return true;
    case PTX_SREG_LANEMASK_EQ: *value = bit; return true;
    case PTX_SREG_LANEMASK_LE: *value = bit | (bit - 1); return true;
    case PTX_SREG_LANEMASK_LT: *value = bit - 1; return true;
    case PTX_SREG_LANEMASK_GE: *value = (uint32_t) ~(bit - 1); return true;
    case PTX_SREG_LANEMASK_GT: *value = (uint32_t) ~(bit | (bit - 1)); return true;
    default: return false;
    }
}

static void set(const struct exec_warp *w, const struct exec_insn *i, uint32_t lane, uint64_t value)
{
    if (i->flags & SPECIAL_WIDE)
        ((uint64_t *)(w->regs + i->d))[lane] = value;
    else if (i->flags & SPECIAL_NARROW)
        ((uint16_t *)(w->regs + i->d))[lane] = (uint16_t)value;
    else
        ((uint32_t *)(w->regs + i->d))[lane] = (uint32_t)value;
}

static void set_all(const struct exec_warp *w, const struct exec_insn *i, uint64_t value)
{
    if (w->mask == EXEC_ALL && !(i->flags & SPECIAL_NARROW)) {
        if (i->flags & SPECIAL_WIDE)
            for (uint32_t l = 0; l < EXEC_LANES; l++)
                ((uint64_t *)(w->regs + i->d))[l] = value;
        else
            for (uint32_t l = 0; l < EXEC_LANES; l++)
                ((uint32_t *)(w->regs + i->d))[l] = (uint32_t)value;
        return;
    }
    for (uint32_t l = 0; l < EXEC_LANES; l++)
        if (w->mask >> l & 1)
            set(w, i, l, value);
}

static const struct exec_insn *read_any(struct exec_warp *w, const struct exec_insn *i)
{
    uint32_t id = i->lo, which = i->hi;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t value;
        if (!of_lane(w, i, lane, &value)) {
            set_all(w, i, uniform(w, id, which));
            break;
        }
        set(w, i, lane, value);
    }
    return i + 1;
}

exec_fn *special_fn(uint32_t id, uint32_t component, uint32_t flags)
{
    uint16_t row;
    return flags || lane_special((enum ptx_sreg)id, component, &row) ? read_any : lane_fn(row);
}

const struct exec_insn *special_predicate(struct exec_warp *w, const struct exec_insn *i)
{
    uint32_t *p = (uint32_t *)(w->regs + i->d);
    *p = (*p & ~w->mask) | (uniform(w, i->lo, 0) ? w->mask : 0);
    return i + 1;
}

const struct exec_insn *special_local(struct exec_warp *w, const struct exec_insn *i)
{
    set_all(w, i, w->frame->local_base + i->imm);
    return i + 1;
}

const struct exec_insn *special_param(struct exec_warp *w, const struct exec_insn *i)
{
    set_all(w, i, w->block->grid->launch.params + i->imm);
    return i + 1;
}

// PTX lets a kernel take a parameter's address in 32 bits, as Triton does. Parameters are less than 2 GiB, so
// the lower half of an address determines the offset in them.
const struct exec_insn *special_param_cvta(struct exec_warp *w, const struct exec_insn *i)
{
    uint64_t base = w->block->grid->launch.params;
    const uint64_t *a = (const uint64_t *)(w->regs + i->a);
    for (uint32_t left = w->mask; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        set(w, i, l, base + (uint64_t)(int64_t)(int32_t)((uint32_t)a[l] - (uint32_t)base));
    }
    return i + 1;
}

const struct exec_insn *special_dynamic(struct exec_warp *w, const struct exec_insn *i)
{
    set_all(w, i, w->block->shared_base + w->block->grid->dynamic_base + i->imm);
    return i + 1;
}

const struct exec_insn *special_shared(struct exec_warp *w, const struct exec_insn *i)
{
    set_all(w, i, w->block->shared_base + i->imm);
    return i + 1;
}

static bool is_constant(const struct exec_program *p, uint64_t address)
{
    for (uint32_t k = 0; k < p->nvariables; k++)
        if (p->variables[k].kind == EXEC_CONST && address - p->variables[k].address < p->variables[k].size)
            return true;
    return false;
}

static bool is_in(const struct exec_warp *w, uint32_t where, uint64_t a)
{
    const struct exec_launch *l = &w->block->grid->launch;
    bool shared = a - space.shared_window < SPACE_WINDOW, local = a - space.local_window < SPACE_WINDOW;
    switch (where) {
    case PTX_SPACE_SHARED: return shared && cluster_rank(a - space.shared_window) == w->block->rank;
    case PTX_SPACE_SHARED_CLUSTER: return shared;
    case PTX_SPACE_LOCAL: return local;
    case PTX_SPACE_PARAM: return a - l->params < l->kernel->param_size;
    case PTX_SPACE_CONST: return is_constant(l->kernel->program, a);
    default: return !shared && !local && !is_constant(l->kernel->program, a);
    }
}

const struct exec_insn *special_isspacep(struct exec_warp *w, const struct exec_insn *i)
{
    uint32_t is = 0;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint64_t a = i->flags & SPECIAL_WIDE ? ((const uint64_t *)(w->regs + i->a))[l]
                                             : ((const uint32_t *)(w->regs + i->a))[l];
        is |= (uint32_t)is_in(w, i->lo, a) << l;
    }
    uint32_t *p = (uint32_t *)(w->regs + i->d);
    *p = (*p & ~w->mask) | is;
    return i + 1;
}

// --- the stack ---------------------------------------------------------------------------------------------

const struct exec_insn *special_alloca(struct exec_warp *w, const struct exec_insn *i)
{
    uint64_t most = 0;
    for (uint32_t l = 0; l < EXEC_LANES; l++) {
        uint64_t size = i->flags & SPECIAL_WIDE ? ((const uint64_t *)(w->regs + i->a))[l]
                                                : ((const uint32_t *)(w->regs + i->a))[l];
        if (w->mask >> l & 1 && size > most)
            most = size;
    }
    uint64_t align = i->imm < 16 ? 16 : i->imm;
    uint64_t at = (w->frame->local_top + align - 1) & ~(align - 1);
    if (most > w->block->grid->local_size || at + most > w->block->grid->local_size)
        return fault_memory(w, i, EXEC_ILLEGAL_ADDRESS, (unsigned)__builtin_ctz(w->mask),
                            space.local_window + at, (uint32_t)most, true, "stack");
    w->frame->local_top = (uint32_t)(at + most);
    set_all(w, i, at);
    return i + 1;
}

const struct exec_insn *special_stacksave(struct exec_warp *w, const struct exec_insn *i)
{
    set_all(w, i, w->frame->local_top);
    return i + 1;
}

const struct exec_insn *special_stackrestore(struct exec_warp *w, const struct exec_insn *i)
{
    // Other lanes of the frame may still use their memory: release it only when all are here.
    if (w->frame->references > 1)
        return i + 1;
    uint32_t lane = (uint32_t)__builtin_ctz(w->mask);
    uint64_t top = i->flags & SPECIAL_WIDE ? ((const uint64_t *)(w->regs + i->a))[lane]
                                           : ((const uint32_t *)(w->regs + i->a))[lane];
    if (top >= w->frame->local_base + w->frame->func->local_size && top <= w->frame->local_top)
        w->frame->local_top = (uint32_t)top;
    return i + 1;
}
