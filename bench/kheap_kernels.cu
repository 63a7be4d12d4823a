// SPDX-License-Identifier: MIT
// Programs that allocate inside kernels: the five that GMODx is measured with, malloc alone, and a check of
// the heap itself. Compiled by nvcc, or by clang with test/clang/ptx. test/cpu/kheap_load.c launches them:
// one thread for each element of table.
typedef unsigned long long u64;
#ifdef __clang__
extern "C" __device__ void *malloc(unsigned long);
extern "C" __device__ void free(void *);
#endif
#define KERNEL extern "C" __global__ void

static __device__ unsigned self()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ void count(unsigned *at)
{
    asm volatile("red.relaxed.gpu.add.u32 [%0], 1;" ::"l"(at) : "memory");
}

static __device__ u64 swap(u64 *at, u64 v)
{
    u64 old;
    asm volatile("atom.acq_rel.gpu.exch.b64 %0, [%1], %2;" : "=l"(old) : "l"(at), "l"(v) : "memory");
    return old;
}

static __device__ unsigned hash(unsigned x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

// --- alloc-dealloc ----------------------------------------------------------------------------------------

KERNEL alloc_dealloc(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (self() >= n)
        return;
    unsigned *p = (unsigned *)malloc(size);
    if (!p) {
        count(wrong);
        return;
    }
    *p = self();
    free(p);
}

// --- alloc-cycle-dealloc ----------------------------------------------------------------------------------

KERNEL alloc_only(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (self() >= n)
        return;
    unsigned *p = (unsigned *)malloc(size);
    if (p)
        *p = self();
    else
        count(wrong);
    table[self()] = (u64)p;
}

KERNEL cycle(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (self() >= n)
        return;
    unsigned *p = (unsigned *)table[self()];
    if (p && *p != self())
        count(wrong);
    free(p);
    p = (unsigned *)malloc(size);
    if (p)
        *p = self();
    else
        count(wrong);
    table[self()] = (u64)p;
}

KERNEL dealloc_only(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (self() >= n)
        return;
    unsigned *p = (unsigned *)table[self()];
    if (p && *p != self())
        count(wrong);
    free(p);
    table[self()] = 0;
}

// --- grid-point: points of a plane, each put into the list of its cell; then the lists are taken apart ----

struct point {
    struct point *next;
    float x, y;
};

KERNEL grid_point(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (self() >= n)
        return;
    unsigned h = hash(self());
    struct point *p = (struct point *)malloc(sizeof *p);
    if (!p) {
        count(wrong);
        return;
    }
    p->x = (float)(h & 0xffff);
    p->y = (float)(h >> 16);
    // The first in a cell may be anybody: the cells are as many as the points.
    u64 first = swap(&table[h % n], 0);
    p->next = (struct point *)first;
    u64 lost = swap(&table[h % n], (u64)p);
    // Somebody was faster: his list is nobody's now.
    for (struct point *q = (struct point *)lost; q;) {
        struct point *next = q->next;
        free(q);
        q = next;
    }
}

KERNEL grid_free(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (self() >= n)
        return;
    for (struct point *q = (struct point *)swap(&table[self()], 0); q;) {
        struct point *next = q->next;
        free(q);
        q = next;
    }
}

// --- add-string: strings are made, others are added to them, all are freed --------------------------------

KERNEL string_make(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (self() >= n)
        return;
    unsigned length = 8 + hash(self()) % 24;
    char *s = (char *)malloc(length + 1);
    if (!s) {
        count(wrong);
        table[self()] = 0;
        return;
    }
    for (unsigned i = 0; i < length; i++)
        s[i] = (char)('a' + (self() + i) % 26);
    s[length] = 0;
    table[self()] = (u64)s;
}

KERNEL string_add(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (self() >= n)
        return;
    char *s = (char *)table[self()];
    unsigned length = 0, more = 4 + hash(self() + size) % 12;
    if (!s)
        return;
    while (s[length])
        length++;
    char *t = (char *)malloc(length + more + 1);
    if (!t) {
        count(wrong);
        return;
    }
    for (unsigned i = 0; i < length; i++)
        t[i] = s[i];
    for (unsigned i = length; i < length + more; i++)
        t[i] = (char)('a' + (self() + i) % 26);
    t[length + more] = 0;
    free(s);
    table[self()] = (u64)t;
}

KERNEL string_free(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (self() >= n)
        return;
    char *s = (char *)table[self()];
    for (unsigned i = 0; s && s[i]; i++)
        if (s[i] != (char)('a' + (self() + i) % 26)) {
            count(wrong);
            break;
        }
    free(s);
    table[self()] = 0;
}

// --- random-graph: a vertex is a thread; its list of edges grows twice ------------------------------------

KERNEL random_graph(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (self() >= n)
        return;
    unsigned room = 4, degree = 4 + hash(self()) % 13;
    unsigned *edges = (unsigned *)malloc(room * sizeof *edges);
    for (unsigned i = 0; edges && i < degree; i++) {
        if (i == room) {
            unsigned *larger = (unsigned *)malloc(2 * room * sizeof *edges);
            if (!larger)
                break;
            for (unsigned j = 0; j < room; j++)
                larger[j] = edges[j];
            free(edges);
            edges = larger;
            room *= 2;
        }
        edges[i] = hash(self() * 31 + i) % n;
    }
    if (!edges)
        count(wrong);
    for (unsigned i = 0; edges && i < degree && i < room; i++)
        if (edges[i] != hash(self() * 31 + i) % n) {
            count(wrong);
            break;
        }
    free(edges);
}

// --- the heap against what its users know -----------------------------------------------------------------

// Each thread has a place in the table; in each round it frees what is there, after a look whether it is as
// it was left, and takes another block of another size. Its bytes say whose it is.
KERNEL stress(unsigned n, u64 *table, unsigned *wrong, unsigned round)
{
    unsigned me = self();
    if (me >= n)
        return;
    unsigned char *p = (unsigned char *)table[me];
    unsigned h = hash(me * 977 + round), before = hash(me * 977 + round - 1);
    unsigned old = before % 64 ? 1 + before / 64 % 200 : before / 64 % 40000,
             size = h % 64 ? 1 + h / 64 % 200 : h / 64 % 40000;
    if (p) {
        for (unsigned i = 0; i < old; i += 1 + old / 64)
            if (p[i] != (unsigned char)(hash(me + i) + round - 1)) {
                count(wrong);
                break;
            }
        free(p);
    }
    p = 0;
    if (h % 5) {
        p = (unsigned char *)malloc(size);
        if ((u64)p % 16)
            count(wrong);
        for (unsigned i = 0; p && i < size; i++)
            p[i] = (unsigned char)(hash(me + i) + round);
    }
    table[me] = (u64)p;
}

KERNEL stress_end(unsigned n, u64 *table, unsigned *wrong, unsigned round)
{
    if (self() >= n)
        return;
    free((void *)table[self()]);
    table[self()] = 0;
}

// Writes one byte behind, or before, the block of every thread whose number is a multiple of `every`.
KERNEL overflow(unsigned n, u64 *table, unsigned *wrong, unsigned every)
{
    if (self() >= n || !table[self()] || self() % every)
        return;
    unsigned char *p = (unsigned char *)table[self()];
    p[self() / every % 2 ? 16 : -1] ^= 1;
}

// A kernel that keeps a multiprocessor busy until the host says so, or for `turns`.
KERNEL occupy(unsigned n, u64 *table, unsigned *wrong, unsigned turns)
{
    volatile u64 *stop = table;
    for (unsigned i = 0; i < turns && !*stop; i++)
        asm volatile("nanosleep.u32 1000;");
}

KERNEL zero_size(unsigned n, u64 *table, unsigned *wrong, unsigned size)
{
    if (!self())
        table[0] = (u64)malloc(0);
}
