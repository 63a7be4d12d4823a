// SPDX-License-Identifier: MIT
#include "flow/access_witness.h"

enum { INDICES = 6 };

// The indices of a thread: its own, then its block's. Each is from 0 to `most`, and one step of it adds
// `step` to the address.
struct index {
    uint32_t *value, most;
    int64_t step;
};

static void start(struct access_thread *t, struct index list[INDICES])
{
    for (unsigned i = 0; i < INDICES; i++) {
        list[i].value = i < 3 ? &t->thread[i] : &t->block[i - 3];
        list[i].most = (i < 3 ? t->l->block[i] : t->l->grid[i - 3]) - 1;
        list[i].step = 0;
        *list[i].value = 0;
    }
}

// A bound that is exact has no counter that could have several values: the first is the only one.
static bool first_address(struct access_thread *t, uint32_t insn, uint64_t *first)
{
    t->loop = PROOF_NONE;
    t->counter = 0;
    if (access_thread_address(t, insn, first))
        return true;
    t->loop = t->other;
    return t->loop != PROOF_NONE && access_thread_address(t, insn, first);
}

// Finds out what each index adds. Returns false if that is not known. *first: the address with all of them 0.
static bool measure(struct access_thread *t, uint32_t insn, struct index list[INDICES], uint64_t *first)
{
    uint64_t next;
    start(t, list);
    if (!first_address(t, insn, first))
        return false;
    for (unsigned i = 0; i < INDICES; i++) {
        if (!list[i].most)
            continue;
        *list[i].value = 1;
        if (!access_thread_address(t, insn, &next))
            return false;
        *list[i].value = 0;
        list[i].step = (int64_t)(next - *first);
    }
    return true;
}

static uint64_t magnitude(int64_t step)
{
    return step < 0 ? -(uint64_t)step : (uint64_t)step;
}

uint64_t access_witness_step(struct access_thread *t, uint32_t insn)
{
    struct index list[INDICES];
    uint64_t first, least = 0;
    if (!measure(t, insn, list, &first))
        return 0;
    for (unsigned i = 0; i < INDICES; i++)
        if (list[i].step && (!least || magnitude(list[i].step) < least))
            least = magnitude(list[i].step);
    return least;
}

// Starts from the lowest address, and gives each index as many steps as fit, those with large ones first.
bool access_witness(struct access_thread *t, uint32_t insn, uint64_t address)
{
    struct index list[INDICES];
    uint64_t first, reached;
    if (!measure(t, insn, list, &first))
        return false;
    int64_t left = (int64_t)(address - first);
    for (unsigned i = 0; i < INDICES; i++) {
        int64_t down = 0;
        *list[i].value = list[i].step < 0 ? list[i].most : 0;
        if (list[i].step < 0 && (__builtin_mul_overflow(list[i].step, (int64_t)list[i].most, &down) ||
                                 __builtin_sub_overflow(left, down, &left)))
            return false;
    }
    for (unsigned round = 0; round < INDICES && left > 0; round++) {
        struct index *largest = &list[0];
        for (unsigned i = 1; i < INDICES; i++)
            if (magnitude(list[i].step) > magnitude(largest->step))
                largest = &list[i];
        uint64_t step = magnitude(largest->step), n = step ? (uint64_t)left / step : 0;
        n = n < largest->most ? n : largest->most;
        *largest->value = largest->step < 0 ? largest->most - (uint32_t)n : (uint32_t)n;
        left -= (int64_t)(n * step);
        largest->step = 0;
    }
    return !left && access_thread_address(t, insn, &reached) && reached == address;
}
