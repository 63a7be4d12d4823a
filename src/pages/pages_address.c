// SPDX-License-Identifier: MIT
#include "pages/pages_address.h"

#include "core/lock.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/checked.h"

static struct pages_address_range *at(const struct pages_address *a, uint64_t i)
{
    return &a->queue[i & (PAGES_ADDRESS_QUEUE - 1)];
}

static void *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

// Checks the equations that need no walk over the queue. Requires the lock.
static bool is_sound(const struct pages_address *a)
{
    return a->next <= a->end && a->end <= PAGES_ADDRESS_UNITS && a->first <= a->last &&
           a->last - a->first <= PAGES_ADDRESS_QUEUE && (a->queue || a->first == a->last) &&
           (a->first == a->last || at(a, a->first)->units) && a->pieces <= PAGES_ADDRESS_PIECES &&
           a->piece <= (a->pieces == PAGES_ADDRESS_PIECES ? 0 : PAGES_ADDRESS_LARGEST);
}

// Marks units. Returns false if one of them was marked already, or is out of range.
static bool mark(uint64_t *ones, uint32_t unit, uint32_t units)
{
    if (unit > PAGES_ADDRESS_UNITS || units > PAGES_ADDRESS_UNITS - unit)
        return false;
    for (; units; unit++, units--) {
        if (ones[unit / 64] >> (unit & 63) & 1)
            return false;
        ones[unit / 64] |= (uint64_t)1 << (unit & 63);
    }
    return true;
}

bool pages_address_valid(struct pages_address *a)
{
    uint64_t *ones = map(PAGES_ADDRESS_UNITS / 8);
    if (!ones)
        return true;
    lock_take(&a->lock);
    bool valid = is_sound(a) && mark(ones, a->next, a->end - a->next);
    for (uint64_t i = a->first; i < a->last && valid; i++)
        valid = mark(ones, at(a, i)->unit, at(a, i)->units);
    lock_give(&a->lock);
    munmap(ones, PAGES_ADDRESS_UNITS / 8);
    return valid;
}

// Adds a range to the queue. If the queue has no room the range is lost and never handed out again. Requires
// the lock.
static void push(struct pages_address *a, uint32_t unit, uint32_t units)
{
    if (!a->queue)
        a->queue = map(PAGES_ADDRESS_QUEUE * sizeof *a->queue);
    if (!a->queue || !units)
        return;
    // Merge with the newest range: buffers are mostly freed in the order of their allocation, or in reverse.
    struct pages_address_range *newest = a->last > a->first ? at(a, a->last - 1) : NULL;
    if (newest && newest->units && newest->unit + newest->units == unit)
        newest->units += units;
    else if (newest && newest->units && unit + units == newest->unit)
        *newest = (struct pages_address_range){unit, newest->units + units};
    else if (a->last - a->first < PAGES_ADDRESS_QUEUE)
        *at(a, a->last++) = (struct pages_address_range){unit, units};
}

void pages_address_give(struct pages_address *a, uint64_t base, uint32_t units)
{
    lock_take(&a->lock);
    assert(units && base % PAGES_ADDRESS_UNIT == 0);
    push(a, (uint32_t)(base >> PAGES_ADDRESS_BITS), units);
    checked_assert(is_sound(a));
    lock_give(&a->lock);
}

static bool take_new(struct pages_address *a, uint32_t units, uint32_t *unit)
{
    if (a->end - a->next < units)
        return false;
    *unit = a->next;
    a->next += units;
    return true;
}

static void cut_front(struct pages_address *a, struct pages_address_range *r, uint32_t units)
{
    r->unit += units;
    r->units -= units;
    while (a->first < a->last && !at(a, a->first)->units)
        a->first++;
}

// Takes from the oldest range that is long enough.
static bool take_oldest(struct pages_address *a, uint32_t units, uint32_t *unit)
{
    for (uint64_t i = a->first; i < a->last; i++) {
        struct pages_address_range *r = at(a, i);
        if (r->units >= units) {
            *unit = r->unit;
            cut_front(a, r, units);
            return true;
        }
    }
    return false;
}

// Returns the start of the first run of `units` ones, or PAGES_ADDRESS_UNITS if there is none.
static uint32_t find_run(const uint64_t *ones, uint32_t units)
{
    uint32_t run = 0;
    for (uint32_t i = 0; i < PAGES_ADDRESS_UNITS; i++) {
        if (!(i & 63) && !ones[i / 64]) {
            run = 0;
            i += 63;
            continue;
        }
        run = ones[i / 64] >> (i & 63) & 1 ? run + 1 : 0;
        if (run == units)
            return i + 1 - units;
    }
    return PAGES_ADDRESS_UNITS;
}

// Takes from several adjacent ranges when no single one is long enough. A run starts where a range starts, so
// the ranges in [unit, unit + units) vanish, and the last may keep its end.
static bool take_neighbours(struct pages_address *a, uint32_t units, uint32_t *unit)
{
    uint64_t *ones = map(PAGES_ADDRESS_UNITS / 8);
    if (!ones)
        return false;
    for (uint64_t i = a->first; i < a->last; i++)
        for (uint32_t u = at(a, i)->unit, n = at(a, i)->units; n; u++, n--)
            ones[u / 64] |= (uint64_t)1 << (u & 63);
    uint32_t found = find_run(ones, units), end = found + units;
    munmap(ones, PAGES_ADDRESS_UNITS / 8);
    if (found == PAGES_ADDRESS_UNITS)
        return false;
    for (uint64_t i = a->first; i < a->last; i++) {
        struct pages_address_range *r = at(a, i);
        if (!r->units || r->unit < found || r->unit >= end)
            continue;
        cut_front(a, r, r->unit + r->units <= end ? r->units : end - r->unit);
    }
    *unit = found;
    return true;
}

// Reserves a piece, without the lock, since the driver may be slow. Another thread may add a piece at the
// same time; both are used.
static void add_piece(struct pages_address *a, uint32_t units)
{
    uint64_t base = 0;
    int err = a->reserve(units * PAGES_ADDRESS_UNIT, &base);
    lock_take(&a->lock);
    if (err) {
        if (a->piece >= units)
            a->piece = units / 2 >= PAGES_ADDRESS_LEAST ? units / 2 : 0;
    } else {
        push(a, a->next, a->end - a->next);
        // The first unit stays free, so that nothing is mapped directly before the first buffer.
        a->next = (uint32_t)(base >> PAGES_ADDRESS_BITS) + 1;
        a->end = a->next - 1 + units;
        if (++a->pieces == PAGES_ADDRESS_PIECES)
            a->piece = 0;
    }
    checked_assert(is_sound(a));
    lock_give(&a->lock);
}

int pages_address_take(struct pages_address *a, uint32_t units, uint64_t *base, bool *again)
{
    uint32_t unit = 0;
    assert(units);
    for (;;) {
        lock_take(&a->lock);
        bool found = take_new(a, units, &unit);
        uint32_t piece = found || units >= a->piece ? 0 : a->piece;
        *again = !found && !piece && a->queue &&
                 (take_oldest(a, units, &unit) || take_neighbours(a, units, &unit));
        a->reused += *again;
        checked_assert(is_sound(a));
        lock_give(&a->lock);
        if (found || *again) {
            *base = (uint64_t)unit << PAGES_ADDRESS_BITS;
            return 0;
        }
        if (!piece)
            return -ENOMEM;
        add_piece(a, piece);
    }
}
