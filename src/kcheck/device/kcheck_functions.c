// SPDX-License-Identifier: MIT
// The functions that judge an access in a checked kernel, and that note a launch. Weak: linked modules share
// one copy.
#include "kcheck/kcheck_judge.h"

__attribute__((address_space(4), weak)) struct kcheck_module __moat_check_module;

void moat_check_enter(uint64_t launch);
uint32_t moat_check_access(uint64_t what, uint64_t address, uint64_t root, uint64_t launch);

// A function of its own: its many registers are saved only if it is called.
KPRIM_FAR uint32_t kcheck_access_slow(uint64_t what, uint64_t address, uint64_t root, uint64_t launch)
{
    struct kcheck_module m = __moat_check_module;
    return kcheck_judge_access(&m, what, address, root, launch);
}

__attribute__((weak)) uint32_t moat_check_access(uint64_t what, uint64_t address, uint64_t root,
                                                 uint64_t launch)
{
    struct kcheck_module m = __moat_check_module;
    if (what >> 48 & KCHECK_INSIDE && !(what >> 48 & KCHECK_ALIGNED))
        return KCHECK_PERFORM;
    if (kcheck_judge_is_quick(&m, what, address))
        return KCHECK_PERFORM;
    return kcheck_access_slow(what, address, root, launch);
}

uint64_t moat_check_bounds(uint64_t pointer);

__attribute__((weak)) uint64_t moat_check_bounds(uint64_t pointer)
{
    struct kcheck_module m = __moat_check_module;
    uint64_t quick = kfind_quick(m.heap, pointer);
    if (quick)
        return quick;
    struct kcheck_block b = kcheck_judge_find(&m, pointer);
    return kcheck_judge_is_live(b) && !(b.size >> 32) ? (pointer - b.base) << 32 | b.size : 0;
}

__attribute__((weak)) void moat_check_enter(uint64_t launch)
{
    uint64_t state = __moat_check_module.state;
    if (state)
        kcheck_judge_enter(state, launch);
}
