// SPDX-License-Identifier: MIT
#include "check/check_args.h"

#include <stdatomic.h>
#include <string.h>

#include "context/kernels.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "launch/launch_call.h"
#include "track/guard_report.h"
#include "track/track.h"

enum { NOTED = 32, KNOWN = 32 };

// Values that the calling thread has found outside of freed buffers when track_losses() was so much: only
// what raises it can change that. Programs pass the same buffers again and again.
static __thread struct known {
    uint64_t value, losses;
} known_values[KNOWN] __attribute__((tls_model("initial-exec")));

static struct known *known_of(uint64_t value)
{
    return &known_values[value * 0x9e3779b97f4a7c15u >> 59];
}
_Static_assert(KNOWN == 1 << (64 - 59), "the first bits of a hash are the number of an entry");

// Returns whether an address is in a freed buffer and in no live one. Call it inside an epoch section.
static bool find_freed(uint64_t address, struct track_copy *freed)
{
    const struct track_block *b =
        track_announced(address) || track_live(address) ? NULL : track_freed(address);
    if (b)
        *freed = track_copy(b, true);
    return b != NULL;
}

// Returns whether this argument of the kernel is to be noted: each is once, as long as there is room.
static bool is_new(const char *kernel, uint32_t argument)
{
    static _Atomic uint64_t noted[NOTED];  // relaxed: a number says all
    uint64_t key = ((uint64_t)(uintptr_t)kernel << 12) + argument + 1;
    for (unsigned i = 0; i < NOTED; i++) {
        uint64_t known = 0;
        if (atomic_compare_exchange_strong_explicit(&noted[i], &known, key, memory_order_relaxed,
                                                    memory_order_relaxed))
            return true;
        if (known == key)
            return false;
    }
    return false;
}

static const char *name_of(unsigned call)
{
    return call < DRIVER_CALLS ? driver_calls[call].symbol : "the program";
}

static void note(const char *kernel, uint32_t argument, uint64_t value, const struct track_copy *b)
{
    if (is_new(kernel, argument))
        guard_report_note(
            "check: kernel %s, which runs unchecked, was passed 0x%llx as argument %u: that is %llu "
            "bytes into a %llu-byte buffer that %s had allocated and %s had freed",
            kernel ? kernel : "(no name)", (unsigned long long)value, argument + 1,
            (unsigned long long)(value - b->base), (unsigned long long)b->size, name_of(b->facts.made_by),
            name_of(b->freed_by));
}

// A launch: inside an epoch section from the first lookup on.
struct looking {
    const struct launch_call *l;
    bool inside, any;
    unsigned section;
};

static void look(struct looking *w, uint32_t argument, uint64_t value)
{
    struct known *known = known_of(value);
    uint64_t losses = track_losses();  // loaded before the lookups
    struct track_copy freed;
    if (known->value == value && known->losses == losses)
        return;
    if (!w->inside)
        w->section = epoch_enter();
    w->inside = true;
    if (find_freed(value, &freed)) {
        note(kernels_name(w->l->function), argument, value, &freed);
        w->any = true;
    } else {
        *known = (struct known){value, losses};
    }
}

void check_args_look(const struct launch_call *l)
{
    struct kernel *k = kernels_find(l->function);
    const struct kernels_layout *layout = k ? kernels_layout(k) : NULL;
    struct looking w = {.l = l};
    uint64_t value;
    for (uint32_t i = 0; layout && i < layout->count; i++)
        if (layout->parameter[i].size == sizeof value && launch_call_word(l, layout, i, &value) && value)
            look(&w, i, value);
    if (w.inside)
        epoch_leave(w.section);
    if (w.any)
        guard_count(GUARD_CHECK_STALE);
}
