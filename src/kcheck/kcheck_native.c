// SPDX-License-Identifier: MIT
// The judge's functions for the CPU device. An access that is not good is declined: what writes records is
// the PTX alone.
#define KPRIM_NATIVE
#include "kcheck/kcheck_native.h"

#include "kcheck/kcheck_judge.h"

static struct kcheck_module module_of(const struct native_call *c)
{
#define FIELD(name) kprim_get64(c->variables[0] + __builtin_offsetof(struct kcheck_module, name))
    return (struct kcheck_module){
        .directory = FIELD(directory),
        .records = FIELD(records),
        .state = FIELD(state),
        .number = FIELD(number),
        .heap = FIELD(heap),
        .heap_bytes = FIELD(heap_bytes),
        .shadow = FIELD(shadow),
        .shift = kprim_get32(c->variables[0] + __builtin_offsetof(struct kcheck_module, shift)),
    };
#undef FIELD
}

static bool is_good(const struct kcheck_module *m, const struct kcheck_access *a)
{
    uint64_t flags = a->what >> 48;
    if (!m->state || (flags & KCHECK_INSIDE && (!(flags & KCHECK_ALIGNED) || !(a->address & (a->width - 1)))))
        return true;
    return !kcheck_judge(m, a).kind;
}

static void access_body(struct native_call *c, struct kprim_native *here)
{
    struct kcheck_module m = module_of(c);
    KPRIM_NATIVE_EACH(here, c->mask)
    {
        uint32_t l = here->lane;
        uint64_t what = c->argument[0][l], width = what >> 32 & 0xffff;
        struct kcheck_access a = {what, c->argument[1][l], c->argument[2][l], c->argument[3][l],
                                  width ? width : 1};
        c->result[l] = KCHECK_PERFORM;
        if (kcheck_judge_is_quick(&m, what, a.address) || is_good(&m, &a))
            here->done |= (uint32_t)1 << l;
    }
}

static void bounds_body(struct native_call *c, struct kprim_native *here)
{
    struct kcheck_module m = module_of(c);
    KPRIM_NATIVE_EACH(here, c->mask)
    {
        uint64_t pointer = c->argument[0][here->lane];
        uint64_t quick = kfind_quick(m.heap, pointer);
        if (!quick) {
            struct kcheck_block b = kcheck_judge_find(&m, pointer);
            if (kcheck_judge_is_live(b) && !(b.size >> 32))
                quick = (pointer - b.base) << 32 | b.size;
        }
        c->result[here->lane] = quick;
        here->done |= (uint32_t)1 << here->lane;
    }
}

static void enter_body(struct native_call *c, struct kprim_native *here)
{
    uint64_t state = kprim_get64(c->variables[0] + __builtin_offsetof(struct kcheck_module, state));
    KPRIM_NATIVE_EACH(here, c->mask)
    {
        if (state)
            kcheck_judge_enter(state, c->argument[0][here->lane]);
        here->done |= (uint32_t)1 << here->lane;
    }
}

static uint32_t native_access(struct native_call *c)
{
    return kprim_native_run(c, access_body);
}

static uint32_t native_bounds(struct native_call *c)
{
    return kprim_native_run(c, bounds_body);
}

static uint32_t native_enter(struct native_call *c)
{
    return kprim_native_run(c, enter_body);
}

const struct native_row kcheck_native[KCHECK_NATIVE] = {
    {KCHECK_ACCESS, kcheck_functions_ptx, {KCHECK_VARIABLE}, native_access},
    {KCHECK_BOUNDS, kcheck_functions_ptx, {KCHECK_VARIABLE}, native_bounds},
    {KCHECK_ENTER, kcheck_functions_ptx, {KCHECK_VARIABLE}, native_enter},
};
