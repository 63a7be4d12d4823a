// SPDX-License-Identifier: MIT
// Errors with memory from malloc and new in kernels, which --mode=check must find, each with a correct twin:
// see check_cases.cuh.
#include "check_cases.cuh"

static void expect(const int *device, int n, int value)
{
    static int out[4096];
    NEED(cudaMemcpy(out, device, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (out[i] != value) {
            printf("%d: %d instead of %d\n", i, out[i], value);
            exit(3);
        }
}

// --- one kernel --------------------------------------------------------------------------------------------

__global__ void in_one(int *out, int n, int from, int to)
{
    int *p = (int *)malloc(n * sizeof(int));
    for (int i = from; i < to; i++)
        p[i] = 7;
    out[threadIdx.x] = p[n / 2];
    free(p);
}

static void at_once(bool bad)
{
    int *out = take<int>(64);
    in_one<<<1, 64>>>(out, 100, 0, 100 + bad);
    wait();
    expect(out, 64, 7);
}

static void before(bool bad)
{
    int *out = take<int>(32);
    in_one<<<1, 32>>>(out, 33, bad ? -1 : 0, 33);
    wait();
    expect(out, 32, 7);
}

// A block of many chunks of the heap.
static void large(bool bad)
{
    int *out = take<int>(1);
    in_one<<<1, 1>>>(out, 100000, 0, 100000 + bad);
    wait();
    expect(out, 1, 7);
}

__global__ void after_free_in_one(int *out, bool bad)
{
    int *volatile p = (int *)malloc(40), *q = p;
    q[3] = 7;
    out[0] = q[3];
    if (bad) {
        free(p);
        q[3] = 8;
    } else {
        q[3] = 8;
        free(p);
    }
}

static void freed_in_one(bool bad)
{
    int *out = take<int>(1);
    after_free_in_one<<<1, 1>>>(out, bad);
    wait();
    expect(out, 1, 7);
}

// --- several kernels ---------------------------------------------------------------------------------------

struct node {
    node *next;
    int *values;
    int n;
};

__device__ node *first;

__global__ void build(int nodes, int n)
{
    for (int i = 0; i < nodes; i++) {
        node *b = new node;
        b->next = first;
        b->values = new int[n];
        b->n = n;
        for (int k = 0; k < n; k++)
            b->values[k] = 7;
        first = b;
    }
}

__global__ void visit(int *out, int more)
{
    int s = 0, n = 0;
    for (node *b = first; b; b = b->next)
        for (int k = 0; k < b->n + more; k++, n++)
            s += b->values[k];
    out[0] = s / (7 * 20 * 5);
}

__global__ void drop(int skip)
{
    node *b = first;
    while (skip--)
        b = b->next;
    delete[] b->values;
}

__global__ void drop_all(void)
{
    while (first) {
        node *b = first;
        first = b->next;
        delete[] b->values;
        delete b;
    }
}

static void list(bool bad)
{
    int *out = take<int>(1);
    build<<<1, 1>>>(20, 5);
    visit<<<1, 1>>>(out, bad);
    drop_all<<<1, 1>>>();
    wait();
    expect(out, 1, 1);
}

static void stale_list(bool bad)
{
    int *out = take<int>(1);
    build<<<1, 1>>>(20, 5);
    if (bad)
        drop<<<1, 1>>>(3);
    visit<<<1, 1>>>(out, 0);
    wait();
}

static void twice(bool bad)
{
    build<<<1, 1>>>(20, 5);
    if (bad)
        drop<<<1, 1>>>(3);
    drop_all<<<1, 1>>>();
    wait();
}

__global__ void free_it(char *p)
{
    free(p);
}

static void not_from_malloc(bool bad)
{
    char *p = take<char>(64);
    build<<<1, 1>>>(1, 5);
    free_it<<<1, 1>>>(bad ? p + 16 : nullptr);
    drop_all<<<1, 1>>>();
    wait();
}

__device__ char *middle;

__global__ void make_middle(int by)
{
    middle = (char *)malloc(100) + by;
}

__global__ void free_middle(void)
{
    free(middle);
}

static void inside_of_a_block(bool bad)
{
    make_middle<<<1, 1>>>(bad ? 16 : 0);
    free_middle<<<1, 1>>>();
    wait();
}

// The pointer that a kernel gets points into the heap.
__global__ void pass(int **to, int n)
{
    *to = (int *)malloc(n * sizeof(int));
}

__global__ void fill(int *p, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        p[i] = 7;
}

static void as_a_parameter(bool bad)
{
    int **to = take<int *>(1), *p;
    pass<<<1, 1>>>(to, 1000);
    NEED(cudaMemcpy(&p, to, sizeof p, cudaMemcpyDeviceToHost));
    fill<<<1, 32>>>(p, 1000 + bad);
    wait();
}

// Far behind its own block, in the middle of another one.
__device__ int *blocks[64];

__global__ void make_blocks(void)
{
    blocks[threadIdx.x] = (int *)malloc(256);
    for (int i = 0; i < 64; i++)
        blocks[threadIdx.x][i] = 7;
}

__device__ long distance;

__global__ void measure(bool bad)
{
    distance = bad ? blocks[9] + 5 - blocks[3] : 5;
}

__global__ void jump(int *out)
{
    blocks[3][distance] = 8;
    *out = blocks[9][5];
}

static void neighbour(bool bad)
{
    int *out = take<int>(1);
    make_blocks<<<1, 64>>>();
    measure<<<1, 1>>>(bad);
    jump<<<1, 1>>>(out);
    wait();
    expect(out, 1, 7);
}

// From the end of a block backwards, and from one before the first: right as long as it stays inside.
__device__ int *ends[2];

__global__ void make_ends(void)
{
    int *p = (int *)malloc(48 * sizeof(int));
    ends[0] = p + 48;
    ends[1] = p - 1;
}

__global__ void from_ends(int *out, int n)
{
    for (int i = 1; i <= n; i++)
        ends[0][-i] = i;
    for (int i = 1; i <= 48; i++)
        out[i - 1] = ends[1][i] ? 7 : 0;
}

static void reverse(bool bad)
{
    int *out = take<int>(48);
    make_ends<<<1, 1>>>();
    from_ends<<<1, 1>>>(out, 48 + bad);
    wait();
    expect(out, 48, 7);
}

// --- objects -----------------------------------------------------------------------------------------------

class shape {
public:
    __device__ virtual ~shape() {}
    __device__ virtual int at(int i) const = 0;
};

class polygon : public shape {
public:
    __device__ explicit polygon(int n) : n(n), sides(new int[n])
    {
        for (int i = 0; i < n; i++)
            sides[i] = 7;
    }
    __device__ ~polygon() override
    {
        delete[] sides;
    }
    __device__ int at(int i) const override
    {
        return sides[i];
    }

private:
    int n, *sides;
};

__global__ void make_shapes(shape **to)
{
    to[threadIdx.x] = new polygon(threadIdx.x + 1);
}

__global__ void ask_shapes(shape **from, int *out, int more)
{
    out[threadIdx.x] = from[threadIdx.x]->at(threadIdx.x + more) ? 7 : 7;
}

__global__ void delete_shapes(shape **from, int n)
{
    if (threadIdx.x < n)
        delete from[threadIdx.x];
}

static void objects(bool bad)
{
    shape **shapes = take<shape *>(64);
    int *out = take<int>(64);
    make_shapes<<<1, 64>>>(shapes);
    ask_shapes<<<1, 64>>>(shapes, out, bad);
    delete_shapes<<<1, 64>>>(shapes, 64);
    wait();
    expect(out, 64, 7);
}

// Types that must be aligned to more than 16 bytes.
struct alignas(64) line {
    int words[16];
};
struct alignas(1024) page {
    int words[300];
};

template <typename T> __global__ void use_aligned(int *out, int n, bool again)
{
    T *p = new T;
    if ((uintptr_t)p % alignof(T))
        *out = 8;
    for (int i = 0; i < n; i++)
        p->words[i] = 7;
    if (threadIdx.x == 0 && p->words[0] == 7 && !*out)
        *out = 7;
    delete p;
    if (again)
        free(p);
}

static void aligned(bool bad)
{
    int *out = take<int>(1);
    use_aligned<line><<<1, 32>>>(out, 16 + bad, false);
    wait();
    expect(out, 1, 7);
}

static void aligned_to_a_page(bool bad)
{
    int *out = take<int>(1);
    use_aligned<page><<<1, 32>>>(out, 512 + bad, false);
    wait();
    expect(out, 1, 7);
}

static void aligned_twice(bool bad)
{
    int *out = take<int>(1);
    use_aligned<line><<<1, 1>>>(out, 16, bad);
    wait();
    expect(out, 1, 7);
}


// --- lookups that are kept ---------------------------------------------------------------------------------

__global__ void make_rows(int **rows, int n, int last)
{
    for (int i = 0; i < n; i++) {
        int *p = rows[i] = (int *)malloc((i == n - 1 ? last : 10) * sizeof(int));
        for (int k = 0; k < last; k++)
            p[k] = 7;
    }
}

__global__ void last_of_rows(int *out, int *const *rows, int n, int rounds)
{
    int sum = 0;
#pragma unroll 1
    for (int round = 0; round < rounds; round++)
        sum += rows[round % n][9];
    out[0] = sum;
}

// The rows are taken in turns, so that no lookup holds in the next round.
static void in_turns(bool bad)
{
    int *out = take<int>(1), **rows = take<int *>(2);
    make_rows<<<1, 1>>>(rows, 2, bad ? 9 : 10);
    last_of_rows<<<1, 1>>>(out, rows, 2, 4);
    wait();
    expect(out, 1, 28);
}

__global__ void both_rows(int *out, int **cell, int rounds)
{
    int sum = 0;
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
        asm volatile("" ::: "memory");
        int *p = cell[0];
        cell[0] = cell[1];
        cell[1] = p;
        asm volatile("" ::: "memory");
        int *q = cell[0];
        sum += p[9] + q[9];
    }
    out[0] = sum;
}

// Two pointers of one place are in use at a time.
static void at_a_time(bool bad)
{
    int *out = take<int>(1), **cell = take<int *>(2);
    make_rows<<<1, 1>>>(cell, 2, bad ? 9 : 10);
    both_rows<<<1, 1>>>(out, cell, 4);
    wait();
    expect(out, 1, 56);
}

__device__ __noinline__ int leave(int **cell)
{
    return cell[0] != nullptr;
}

__device__ __noinline__ int give_back(int **cell)
{
    free(cell[0]);
    return 1;
}

__device__ int (*const calls[])(int **) = {leave, give_back};

__global__ void call_between(int *out, int **cell, int freed, int rounds)
{
    int sum = 0;
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
        sum += cell[0][3];
        sum += calls[round == freed](cell);
    }
    out[0] = sum;
}

// A function that is called through a pointer frees what the loop loads in each round.
static void freed_by_pointer(bool bad)
{
    int *out = take<int>(1), **cell = take<int *>(1);
    make_rows<<<1, 1>>>(cell, 1, 10);
    call_between<<<1, 1>>>(out, cell, bad ? 1 : -1, 4);
    wait();
    expect(out, 1, 32);
}

__device__ void meet()
{
    asm volatile("bar.sync 1, 64;" ::: "memory");
}

__global__ void free_between(int *out, int **cell, int freed, int rounds)
{
    int sum = 0;
    if (threadIdx.x / 32 == 0) {
#pragma unroll 1
        for (int round = 0; round < rounds; round++) {
            meet();
            if (round == freed && threadIdx.x == 0)
                free(cell[0]);
            meet();
        }
    } else {
#pragma unroll 1
        for (int round = 0; round < rounds; round++) {
            sum += cell[0][3];
            meet();
            meet();
        }
    }
    if (threadIdx.x == 32)
        out[0] = sum;
}

// Another thread frees it, and a barrier says so.
static void freed_by_neighbour(bool bad)
{
    int *out = take<int>(1), **cell = take<int *>(1);
    make_rows<<<1, 1>>>(cell, 1, 10);
    free_between<<<1, 64>>>(out, cell, bad ? 1 : -1, 4);
    wait();
    expect(out, 1, 28);
}

static const struct check_case cases[] = {
    {"at_once", at_once, "heap-buffer-overflow"},
    {"before", before, "heap-buffer-underflow"},
    {"large", large, "heap-buffer-overflow"},
    {"freed_in_one", freed_in_one, "heap-use-after-free"},
    {"list", list, "heap-buffer-overflow"},
    {"stale_list", stale_list, "heap-use-after-free"},
    {"twice", twice, "double-free"},
    {"not_from_malloc", not_from_malloc, "bad-free"},
    {"inside_of_a_block", inside_of_a_block, "bad-free"},
    {"as_a_parameter", as_a_parameter, "heap-buffer-overflow"},
    {"neighbour", neighbour, "heap-buffer-overflow|heap-buffer-underflow"},
    {"reverse", reverse, "wild-access|heap-buffer-underflow"},
    {"objects", objects, "heap-buffer-overflow"},
    {"in_turns", in_turns, "heap-buffer-overflow"},
    {"at_a_time", at_a_time, "heap-buffer-overflow"},
    {"freed_by_pointer", freed_by_pointer, "heap-use-after-free"},
    {"freed_by_neighbour", freed_by_neighbour, "heap-use-after-free"},
    {"aligned", aligned, "heap-buffer-overflow"},
    {"aligned_to_a_page", aligned_to_a_page, "heap-buffer-overflow"},
    {"aligned_twice", aligned_twice, "double-free"},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
