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

enum { NOTED = 32 };

// Returns whether an address is in a freed buffer and in no live one.
static bool find_freed(uint64_t address, struct track_copy *freed)
{
    unsigned section = epoch_enter();
    const struct track_block *b =
        track_announced(address) || track_live(address) ? NULL : track_freed(address);
    if (b)
        *freed = track_copy(b, true);
    epoch_leave(section);
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

void check_args_look(const struct launch_call *l)
{
    struct kernel *k = kernels_find(l->function);
    const struct kernels_layout *layout = k ? kernels_layout(k) : NULL;
    const void *bytes;
    size_t size;
    bool any = false;
    if (!layout || !layout->count || !launch_call_parameters(l, &bytes, &size))
        return;
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct kernels_parameter *p = &layout->parameter[i];
        uint64_t value;
        struct track_copy freed;
        if (p->size != sizeof value || p->offset + sizeof value > size)
            continue;
        memcpy(&value, (const char *)bytes + p->offset, sizeof value);
        if (!value || !find_freed(value, &freed))
            continue;
        any = true;
        note(kernels_name(l->function), i, value, &freed);
    }
    if (any)
        guard_count(GUARD_CHECK_STALE);
}
