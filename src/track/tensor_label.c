// SPDX-License-Identifier: MIT
#include "track/tensor_label.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/lock.h"

enum { LABELS = 1024, PROBES = 4 };

// A label is in one of PROBES places after the one that its address hashes to.
static struct lock lock = LOCK_INIT(TENSOR_LABELS);
static struct {
    struct tensor_label label;
    uint64_t age;  // 0: empty
} labels[LABELS];
static uint64_t sets;  // so far

void tensor_label_after_fork(void)
{
    lock_after_fork(&lock);
}

static bool is_same(const struct tensor_label *a, const struct tensor_label *b)
{
    return a->address == b->address && a->element == b->element && a->dimensions == b->dimensions &&
           !memcmp(a->shape, b->shape, sizeof a->shape);
}

void tensor_label_set(const struct tensor_label *label)
{
    if (!label->element || label->dimensions > TENSOR_LABEL_DIMENSIONS)
        return;
    uint64_t hash = label->address * 0x9e3779b97f4a7c15u >> 32;
    unsigned best = (unsigned)(hash % LABELS);
    lock_take(&lock);
    for (unsigned i = 0; i < PROBES; i++) {
        unsigned at = (unsigned)((hash + i) % LABELS);
        if (labels[at].age && is_same(&labels[at].label, label)) {
            best = at;
            break;
        }
        if (labels[at].age < labels[best].age)
            best = at;
    }
    labels[best].label = *label;
    labels[best].age = ++sets;
    lock_give(&lock);
}

// Returns the bytes from the first element to the end of the last. Wraps around for absurd numbers.
static uint64_t span(const struct tensor_label *l)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < l->dimensions; i++) {
        if (l->shape[i] <= 0)
            return 0;
        last += ((uint64_t)l->shape[i] - 1) * (uint64_t)l->strides[i];
    }
    return (last + 1) * l->element;
}

// Returns how far an address is from a tensor; 0: inside.
static uint64_t distance(const struct tensor_label *l, uint64_t address)
{
    uint64_t end = l->address + span(l);
    return address < l->address ? l->address - address : address >= end ? address - end + 1 : 0;
}

// A tensor that does not end in the buffer is most likely one of an earlier buffer at this address.
static bool fits(const struct tensor_label *l, uint64_t end)
{
    return span(l) <= end - l->address;
}

// Returns whether label i says more about an address than label k.
static bool is_better(int i, int k, uint64_t end, uint64_t address)
{
    const struct tensor_label *l = &labels[i].label, *other = &labels[k].label;
    if (fits(l, end) != fits(other, end))
        return fits(l, end);
    if (distance(l, address) != distance(other, address))
        return distance(l, address) < distance(other, address);
    return labels[i].age > labels[k].age;
}

static bool find(uint64_t base, uint64_t size, uint64_t address, struct tensor_label *out)
{
    int best = -1;
    lock_take(&lock);
    for (int i = 0; i < LABELS; i++)
        if (labels[i].age && labels[i].label.address - base < size &&
            (best < 0 || is_better(i, best, base + size, address)))
            best = i;
    if (best >= 0)
        *out = labels[best].label;
    lock_give(&lock);
    return best >= 0;
}

bool tensor_label_name(uint64_t address, char *name, size_t room)
{
    uint64_t age = 0;
    lock_take(&lock);
    for (int i = 0; i < LABELS; i++)
        if (labels[i].age > age && labels[i].label.address == address) {
            age = labels[i].age;
            snprintf(name, room, "%.*s", (int)sizeof labels[i].label.name, labels[i].label.name);
        }
    lock_give(&lock);
    return age;
}

// A text that is cut where its room ends.
struct text {
    char *to;
    size_t room, used;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = t->used < t->room ? vsnprintf(t->to + t->used, t->room - t->used, fmt, args) : 0;
    va_end(args);
    t->used += n > 0 ? (size_t)n : 0;
}

static void put_list(struct text *o, const int64_t *numbers, uint32_t n)
{
    put(o, "[");
    for (uint32_t i = 0; i < n; i++)
        put(o, "%s%lld", i ? ", " : "", (long long)numbers[i]);
    put(o, "]");
}

// Stores the index that leads to an element by the tensor's strides. The one of the largest stride may be too
// large.
static void index_of(const struct tensor_label *l, uint64_t element, int64_t *index)
{
    bool done[TENSOR_LABEL_DIMENSIONS] = {0};
    for (uint32_t turn = 0; turn < l->dimensions; turn++) {
        int next = -1;
        for (uint32_t i = 0; i < l->dimensions; i++)
            if (!done[i] && (next < 0 || l->strides[i] > l->strides[next]))
                next = (int)i;
        done[next] = true;
        index[next] = 0;
        if (l->strides[next] > 0) {
            index[next] = (int64_t)(element / (uint64_t)l->strides[next]);
            element %= (uint64_t)l->strides[next];
        }
    }
}

static void put_index(struct text *o, const struct tensor_label *l, uint64_t address)
{
    int64_t index[TENSOR_LABEL_DIMENSIONS];
    index_of(l, (address - l->address) / l->element, index);
    put(o, "index ");
    put_list(o, index, l->dimensions);
}

// An access that begins in the tensor may leave it, as one of a box. A tensor may be larger than its buffer,
// which ends at `end`.
static void put_place(struct text *o, const struct tensor_label *l, uint64_t address, uint64_t bytes,
                      uint64_t end)
{
    uint64_t last = address + (bytes ? bytes - 1 : 0);
    if (address < l->address) {
        uint64_t n = (l->address - address + l->element - 1) / l->element;
        put(o, "the access is %llu element%s before its first", (unsigned long long)n, n == 1 ? "" : "s");
        return;
    }
    bool inside = !distance(l, address), leaves = inside && last > address && distance(l, last);
    put(o, "the access %s%s at ", leaves ? "begins" : "is", inside ? " inside of it," : "");
    put_index(o, l, address);
    if (leaves) {
        put(o, ", and ends at ");
        put_index(o, l, last);
    }
    if (!inside || leaves)
        put(o, ", outside of it");
    else if (last >= end)
        put(o, ", but it is larger than the buffer");
}

bool tensor_label_describe(uint64_t base, uint64_t size, uint64_t address, uint64_t bytes, char *text,
                           size_t room)
{
    struct tensor_label l;
    struct text o = {text, room, 0};
    if (!find(base, size, address, &l))
        return false;
    put(&o, "the nearest tensor is %.*s: %.*s, shape ", (int)sizeof l.name, l.name, (int)sizeof l.type,
        l.type);
    put_list(&o, l.shape, l.dimensions);
    put(&o, ", strides ");
    put_list(&o, l.strides, l.dimensions);
    put(&o, "; ");
    put_place(&o, &l, address, bytes, base + size);
    return true;
}
