// SPDX-License-Identifier: MIT
// Treaps: search trees by base that are heaps by a random priority, so they are balanced whatever the order
// of insertions. Each node has the largest size in its subtree, which makes the first fit logarithmic.
#include <assert.h>

#include "base/mem.h"
#include "cpu/memory.h"

static uint32_t draw(struct memory_tree *t)
{
    uint32_t x = t->seed ? t->seed : 0x9e3779b9;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return t->seed = x;
}

static void update(struct memory_range *n)
{
    n->most = n->size;
    if (n->left && n->left->most > n->most)
        n->most = n->left->most;
    if (n->right && n->right->most > n->most)
        n->most = n->right->most;
}

static struct memory_range *turn_right(struct memory_range *n)
{
    struct memory_range *top = n->left;
    n->left = top->right;
    top->right = n;
    update(n);
    update(top);
    return top;
}

static struct memory_range *turn_left(struct memory_range *n)
{
    struct memory_range *top = n->right;
    n->right = top->left;
    top->left = n;
    update(n);
    update(top);
    return top;
}

static struct memory_range *insert(struct memory_range *n, struct memory_range *r)
{
    if (!n)
        return r;
    if (r->base < n->base) {
        n->left = insert(n->left, r);
        if (n->left->priority > n->priority)
            return turn_right(n);
    } else {
        n->right = insert(n->right, r);
        if (n->right->priority > n->priority)
            return turn_left(n);
    }
    update(n);
    return n;
}

void memory_range_insert(struct memory_tree *t, struct memory_range *r)
{
    assert(r->size && r->base + r->size > r->base);
    r->left = r->right = NULL;
    r->priority = draw(t);
    update(r);
    t->root = insert(t->root, r);
}

static struct memory_range *join(struct memory_range *low, struct memory_range *high)
{
    if (!low || !high)
        return low ? low : high;
    if (low->priority > high->priority) {
        low->right = join(low->right, high);
        update(low);
        return low;
    }
    high->left = join(low, high->left);
    update(high);
    return high;
}

static struct memory_range *without(struct memory_range *n, const struct memory_range *r)
{
    assert(n);
    if (n == r)
        return join(n->left, n->right);
    if (r->base < n->base)
        n->left = without(n->left, r);
    else
        n->right = without(n->right, r);
    update(n);
    return n;
}

void memory_range_remove(struct memory_tree *t, struct memory_range *r)
{
    t->root = without(t->root, r);
    r->left = r->right = NULL;
}

struct memory_range *memory_range_after(const struct memory_tree *t, uint64_t addr)
{
    struct memory_range *best = NULL;
    for (struct memory_range *n = t->root; n;) {
        if (memory_range_end(n) > addr) {
            best = n;
            n = n->left;
        } else {
            n = n->right;
        }
    }
    return best;
}

struct memory_range *memory_range_at(const struct memory_tree *t, uint64_t addr)
{
    struct memory_range *r = memory_range_after(t, addr);
    return r && r->base <= addr ? r : NULL;
}

static struct memory_range *fit(struct memory_range *n, uint64_t size, uint64_t align, uint64_t *at)
{
    if (!n || n->most < size)
        return NULL;
    struct memory_range *r = fit(n->left, size, align, at);
    if (r)
        return r;
    uint64_t start = (n->base + align - 1) & ~(align - 1);
    if (start >= n->base && start - n->base <= n->size && n->size - (start - n->base) >= size) {
        *at = start;
        return n;
    }
    return fit(n->right, size, align, at);
}

struct memory_range *memory_range_fit(const struct memory_tree *t, uint64_t size, uint64_t align,
                                      uint64_t *at)
{
    return fit(t->root, size, align, at);
}

struct memory_range *memory_range_take(struct memory_tree *t, struct memory_range *r, uint64_t at,
                                       uint64_t size)
{
    uint64_t before = at - r->base, behind = memory_range_end(r) - (at + size);
    struct memory_range *cut = r, *rest = NULL;
    if (before || behind) {
        cut = mem_alloc(sizeof *cut);
        if (!cut)
            return NULL;
        *cut = (struct memory_range){.base = at, .size = size};
    }
    if (before && behind) {
        rest = mem_alloc(sizeof *rest);
        if (!rest) {
            mem_free(cut);
            return NULL;
        }
        *rest = (struct memory_range){.base = at + size, .size = behind};
    }
    memory_range_remove(t, r);
    if (before) {
        r->size = before;
        memory_range_insert(t, r);
    } else if (behind) {
        r->base = at + size;
        r->size = behind;
        memory_range_insert(t, r);
    }
    if (rest)
        memory_range_insert(t, rest);
    return cut;
}

struct memory_range *memory_range_give(struct memory_tree *t, struct memory_range *r, uint64_t low,
                                       uint64_t high)
{
    struct memory_range *before = r->base > low ? memory_range_at(t, r->base - 1) : NULL;
    struct memory_range *behind = memory_range_end(r) < high ? memory_range_at(t, memory_range_end(r)) : NULL;
    if (before) {
        memory_range_remove(t, before);
        r->base = before->base;
        r->size += before->size;
        mem_free(before);
    }
    if (behind) {
        memory_range_remove(t, behind);
        r->size += behind->size;
        mem_free(behind);
    }
    memory_range_insert(t, r);
    return r;
}

static bool valid(const struct memory_range *n, uint64_t low, uint64_t high)
{
    if (!n)
        return true;
    uint64_t most = n->size;
    const struct memory_range *children[] = {n->left, n->right};
    for (int i = 0; i < 2; i++) {
        if (children[i] && children[i]->priority > n->priority)
            return false;
        if (children[i] && children[i]->most > most)
            most = children[i]->most;
    }
    return n->size && n->base >= low && memory_range_end(n) <= high && most == n->most &&
           valid(n->left, low, n->base) && valid(n->right, memory_range_end(n), high);
}

bool memory_range_valid(const struct memory_tree *t)
{
    return valid(t->root, 0, UINT64_MAX);
}
