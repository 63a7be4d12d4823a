// SPDX-License-Identifier: MIT
// Kernels with errors that --mode=check must find, each with a correct twin: check_errors bad|good NAME, or
// list. A wrong access is skipped, so every case ends normally, and results that the errors do not touch must
// be right.
#include "check_cases.cuh"

template <typename T> __global__ void fill(T *a, long from, long to)
{
    for (long i = from + threadIdx.x; i < to; i += blockDim.x)
        a[i] = T(i);
}

template <typename T> __global__ void sum(const T *a, T *out, long from, long to)
{
    T s = 0;
    for (long i = from; i < to; i++)
        s += a[i];
    *out = s;
}

// --- both ends, reads and writes ---------------------------------------------------------------------------

static void write_past(bool bad)
{
    int *a = take<int>(1000), out[1000];
    fill<<<1, 128>>>(a, 0l, 1000l + bad);
    wait();
    NEED(cudaMemcpy(out, a, sizeof out, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 1000; i++)
        if (out[i] != i)
            exit(3);
}

static void read_past(bool bad)
{
    double *a = take<double>(77), *out = take<double>(1);
    sum<<<1, 1>>>(a, out, 0l, 77l + bad);
    wait();
}

static void write_before(bool bad)
{
    short *a = take<short>(300);
    fill<<<1, 32>>>(a, bad ? -1l : 0l, 300l);
    wait();
}

static void read_before(bool bad)
{
    char *a = take<char>(300), *out = take<char>(1);
    sum<<<1, 1>>>(a, out, bad ? -3l : 0l, 300l);
    wait();
}

// The last bytes of a wide access are outside.
static __global__ void copy4(const char *from, float4 *to)
{
    *to = *(const float4 *)from;
}

static void wide(bool bad)
{
    char *a = take<char>(bad ? 60 : 64);
    copy4<<<1, 1>>>(a + 48, take<float4>(1));
    wait();
}

// Far behind its own buffer, in the middle of another one.
static __global__ void store_at(int *a, long i)
{
    a[i] = 7;
}

static void neighbour(bool bad)
{
    int *a = take<int>(1 << 20), *b = take<int>(1 << 20);
    store_at<<<1, 1>>>(a, bad ? (b + 1000) - a : 1000);
    wait();
}

// --- freed, null -------------------------------------------------------------------------------------------

static void used_after_free(bool bad)
{
    int *a = take<int>(100);
    if (bad)
        NEED(cudaFree(a));
    fill<<<1, 32>>>(a, 0l, 100l);
    wait();
}

static void used_long_after_free(bool bad)
{
    int *a = take<int>(100);
    if (bad)
        NEED(cudaFree(a));
    for (int i = 0; i < 50; i++) {
        int *b = take<int>(5000 + 100 * i);
        fill<<<1, 32>>>(b, 0l, 5000l);
        NEED(cudaFree(b));
    }
    fill<<<1, 32>>>(a, 0l, 100l);
    wait();
}

static void null(bool bad)
{
    fill<<<1, 32>>>(bad ? (int *)nullptr : take<int>(8), 0l, 8l);
    wait();
}

// --- pointers from memory ----------------------------------------------------------------------------------

struct node {
    node *next;
    int value;
};

static __global__ void walk(node *n, int *out)
{
    int s = 0;
    for (; n; n = n->next)
        s += n->value;
    *out = s;
}

static void list(bool bad)
{
    node *first = nullptr, *freed = nullptr;
    for (int i = 0; i < 20; i++) {
        node n = {first, i};
        first = take<node>(1);
        NEED(cudaMemcpy(first, &n, sizeof n, cudaMemcpyHostToDevice));
        if (i == 10)
            freed = first;
    }
    if (bad)
        NEED(cudaFree(freed));
    walk<<<1, 1>>>(first, take<int>(1));  // where the freed node was, if addresses were used again
    wait();
}

static __global__ void rows(float **row, int n, int m)
{
    for (int i = 0; i < n; i++)
        row[i][threadIdx.x % m] = i;
}

static void row_pointers(bool bad)
{
    float *row[16], **on_device = take<float *>(16);
    for (int i = 0; i < 16; i++)
        row[i] = take<float>(i == 9 && bad ? 31 : 32);
    NEED(cudaMemcpy(on_device, row, sizeof row, cudaMemcpyHostToDevice));
    rows<<<1, 32>>>(on_device, 16, 32);
    wait();
}

struct view {
    int n;
    float *data;
    float *more;
};

static __global__ void views(view v)
{
    for (int i = threadIdx.x; i < v.n; i += blockDim.x)
        v.data[i] = v.more[i] + 1;
}

static void in_a_struct(bool bad)
{
    view v = {100, take<float>(100), take<float>(bad ? 99 : 100)};
    views<<<1, 64>>>(v);
    wait();
}

// --- bases that are in no buffer ---------------------------------------------------------------------------

// a is the address before the first element, as in code that counts from 1.
static __global__ void from_one(float *a, int n)
{
    for (int i = 1 + threadIdx.x; i <= n; i += blockDim.x)
        a[i] = i;
}

static void counted_from_one(bool bad)
{
    float *a = take<float>(64);
    if (bad)
        NEED(cudaFree(a));
    from_one<<<1, 64>>>(a - 1, 64);
    wait();
}

// Behind the end, by a pointer that is in no buffer.
static void one_too_many(bool bad)
{
    take<float>(60);
    from_one<<<1, 64>>>(take<float>(60) - 1, 60 + bad);
    wait();
}

static __global__ void backwards(int *end, int n)
{
    for (int i = 1; i <= n; i++)
        end[-i] = i;
}

static void reverse(bool bad)
{
    int *a = take<int>(256);
    if (bad)
        NEED(cudaFree(a));
    backwards<<<1, 1>>>(a + 256, 256);
    wait();
}

static __global__ void moved(int *a, const int *b, const int *c, int n)
{
    for (int i = 0; i < n; i++)
        *(int *)((char *)a + ((const char *)(b + i) - (const char *)c)) = i;
}

// Never wrong: a + (b - c) is in a.
static void differences(bool bad)
{
    int *a = take<int>(64), *b = take<int>(64);
    moved<<<1, 1>>>(a, b, b, 64);
    if (bad)
        fill<<<1, 32>>>(a, 0l, 65l);
    wait();
}

// --- other accesses, other ways to launch ------------------------------------------------------------------

static __global__ void count(unsigned *bins, int n)
{
    atomicAdd(&bins[threadIdx.x % n], 1u);
}

static void atomics(bool bad)
{
    count<<<1, 64>>>(take<unsigned>(32), 32 + bad);
    wait();
}

static __device__ int table[16];

static __global__ void variable(int n)
{
    table[threadIdx.x % n] = n;
}

static void module_variable(bool bad)
{
    variable<<<1, 32>>>(16 + bad);
    wait();
}

// The address of a variable that the host cannot name comes from memory.
static __device__ int hidden[16], behind[16];
static __constant__ int constants[16] = {1}, more_constants[16] = {1};
struct places {
    int *hidden, *behind;
    const int *constants, *more;
};

static __global__ void store_places(places *p)
{
    *p = {hidden, behind, constants, more_constants};
}

static __global__ void by_place(places *p, int n)
{
    for (int i = 0; i < n; i++)
        p->hidden[i] = p->behind[i % 16] + 1;
}

static void loaded_variable(bool bad)
{
    places *p = take<places>(1);
    int out[16];
    store_places<<<1, 1>>>(p);
    by_place<<<1, 1>>>(p, 16 + bad);
    wait();
    NEED(cudaMemcpyFromSymbol(out, behind, sizeof out));
    if (out[0])
        exit(3);
}

static __global__ void by_constant_place(places *p, int n, int *out)
{
    for (int i = 0; i < n; i++)
        *out += p->constants[i] + p->more[i % 16];
}

static void loaded_constant(bool bad)
{
    places *p = take<places>(1);
    int *out = take<int>(1);
    store_places<<<1, 1>>>(p);
    by_constant_place<<<1, 1>>>(p, 16 + bad, out);
    wait();
}

static __device__ __noinline__ void set(int *p, int v)
{
    *p = v;
}

static __global__ void by_call(int *a, int n)
{
    for (int i = 0; i < n; i++)
        set(a + i, i);
}

static void in_a_function(bool bad)
{
    by_call<<<1, 1>>>(take<int>(10), 10 + bad);
    wait();
}

// The pointer is in another buffer before it is passed, in a structure and by two functions.
static __device__ __noinline__ void set_in_view(view v, int value)
{
    v.more[value] = value;
}

static __device__ __noinline__ void set_by_another(view v, float *more)
{
    v.more = more;
    set_in_view(v, 1);
}

static __global__ void by_calls(float *a, long i)
{
    set_by_another(view{1, a, a}, a + i);
}

static void passed_far(bool bad)
{
    float *a = take<float>(1 << 20), *b = take<float>(1 << 20);
    by_calls<<<1, 1>>>(a, bad ? (b + 1000) - a : 1000);
    wait();
}

// A function moves the pointer and returns it.
static __device__ __noinline__ int *element(int *a, long i)
{
    return a + i;
}

static __global__ void by_result(int *a, long i)
{
    *element(a, i) = 7;
}

static void returned_far(bool bad)
{
    int *a = take<int>(1 << 20), *b = take<int>(1 << 20);
    by_result<<<1, 1>>>(a, bad ? (b + 1000) - a : 1000);
    wait();
}

// A function that is called through a pointer, and calls another one.
static __device__ __noinline__ void set_after(int *p, int v)
{
    set(p + 1, v);
}

typedef void (*setter)(int *, int);
static __device__ setter setters[2] = {set_after, set_after};

static __global__ void by_pointer(int *a, int which)
{
    setters[which](a, 5);
}

static void through_a_pointer(bool bad)
{
    by_pointer<<<1, 1>>>(take<int>(10) + 8 + bad, 1);
    wait();
}

// Another kernel calls the same function before, at the same time and after.
static __global__ void by_pointer_too(int *a, int which)
{
    setters[which](a, 6);
}

static void second_through_a_pointer(bool bad)
{
    int *a = take<int>(10), *b = take<int>(10);
    cudaStream_t s;
    NEED(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    by_pointer_too<<<1, 1>>>(a, 1);
    by_pointer_too<<<300, 64, 0, s>>>(a, 1);
    by_pointer<<<3, 1>>>(b + 8 + bad, 1);
    by_pointer_too<<<1, 1>>>(a, 0);
    wait();
}

// A pointer to the host's memory, which the device may not access.
static void host_pointer(bool bad)
{
    static int own[16];
    int *heap = (int *)malloc(1 << 24), here = 0;
    int *of[] = {own, heap, &here};
    fill<<<1, 1>>>(take<int>(16), 0l, 16l);
    wait();
    if (bad)
        store_at<<<1, 1>>>(of[2], 0l);
    else
        store_at<<<1, 1>>>(take<int>(16), 0l);
    cudaError_t r = cudaDeviceSynchronize();
    exit(bad ? r == cudaSuccess : r != cudaSuccess);
}

static __global__ void trap(const int *a)
{
    if (*a == 0)
        __trap();
}

static void own_trap(bool bad)
{
    if (bad)
        trap<<<1, 1>>>(take<int>(1));
    wait();
}

static void async(bool bad)
{
    int *a;
    cudaStream_t s;
    NEED(cudaStreamCreate(&s));
    for (int i = 0; i < 20; i++) {
        NEED(cudaMallocAsync(&a, 4000 + 40 * i, s));
        fill<<<1, 64, 0, s>>>(a, 0l, 1000l);
        NEED(cudaFreeAsync(a, s));
    }
    if (bad)
        fill<<<1, 64, 0, s>>>(a, 0l, 1000l);
    NEED(cudaStreamSynchronize(s));
    wait();
}

static void graph(bool bad)
{
    int *a = take<int>(500);
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t e;
    NEED(cudaStreamCreate(&s));
    NEED(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    fill<<<1, 64, 0, s>>>(a, 0l, 500l + bad);
    NEED(cudaStreamEndCapture(s, &g));
    NEED(cudaGraphInstantiate(&e, g, 0));
    for (int i = 0; i < 3; i++)
        NEED(cudaGraphLaunch(e, s));
    NEED(cudaStreamSynchronize(s));
    wait();
}

// Memory that a graph allocates: blocks of one graph may share addresses, and a graph that runs again has the
// same ones.
static void graph_memory(bool bad)
{
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t exec;
    int *a, *b, *c, last[2], *out = take<int>(2);
    NEED(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    NEED(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    NEED(cudaMallocAsync(&a, 100 * sizeof *a, s));
    fill<<<1, 64, 0, s>>>(a, 0l, 100l);
    NEED(cudaFreeAsync(a, s));
    NEED(cudaMallocAsync(&b, 5000 * sizeof *b, s));
    fill<<<1, 64, 0, s>>>(b, 0l, 5000l);
    NEED(cudaMemcpyAsync(out, b + 4999, sizeof *b, cudaMemcpyDeviceToDevice, s));
    NEED(cudaMallocAsync(&c, 1000 * sizeof *c, s));
    fill<<<1, 64, 0, s>>>(c, 0l, 1000l + bad);
    NEED(cudaMemcpyAsync(out + 1, c + 999, sizeof *c, cudaMemcpyDeviceToDevice, s));
    NEED(cudaFreeAsync(b, s));
    NEED(cudaFreeAsync(c, s));
    NEED(cudaStreamEndCapture(s, &g));
    NEED(cudaGraphInstantiate(&exec, g, 0));
    for (int i = 0; i < 3; i++) {
        NEED(cudaGraphLaunch(exec, s));
        NEED(cudaStreamSynchronize(s));
        NEED(cudaMemcpy(last, out, sizeof last, cudaMemcpyDeviceToHost));
        if (last[0] != 4999 || last[1] != 999)
            exit(3);
    }
}

static void managed(bool bad)
{
    int *a;
    NEED(cudaMallocManaged(&a, 4000));
    fill<<<1, 64>>>(a, 0l, 1000l + bad);
    wait();
}

static void pinned(bool bad)
{
    int *a;
    NEED(cudaMallocHost(&a, 4000));
    fill<<<1, 64>>>(a, 0l, 1000l + bad);
    wait();
}

static void a_million(bool bad)
{
    fill<<<64, 256>>>(take<int>(1 << 14), 0l, bad ? (1l << 14) + 20000 : 1l << 14);
    wait();
}

// The program waits in no call of CUDA's.
static void host_idle(bool bad)
{
    fill<<<1, 32>>>(take<int>(10), 0l, 10l + bad);
    sleep(2);
    printf("went on\n");
    wait();
}

// Two errors in one run, of different types: the second is found too.
static void several(bool bad)
{
    int *a = take<int>(10), *b = take<int>(10);
    fill<<<1, 32>>>(a, 0l, 10l + bad);
    if (bad)
        NEED(cudaFree(b));
    walk<<<1, 1>>>((node *)(bad ? b : nullptr), a);
    wait();
}

// A pointer that the kernel does not use: no error, whether it is freed or not.
static __global__ void ignores(int *a, long from, int *unused)
{
    if (from)
        *unused = 1;
    *a = 1;
}

static void stale(bool bad)
{
    int *a = take<int>(1), *b = take<int>(100);
    ignores<<<1, 1>>>(a, 0, b + 5);  // what is known of the pointer from now on does not last
    wait();
    if (bad)
        NEED(cudaFree(b));
    ignores<<<1, 1>>>(a, 0, b + 5);
    wait();
}

static void wide_second(bool bad)
{
    copy4<<<1, 1>>>(take<char>(64), (float4 *)take<char>(bad ? 12 : 16));
    wait();
}

// The program's first launch: the table of variables is filled for it.
static __device__ int passed[16];
static __device__ __noinline__ void set_passed(int *p)
{
    *p = 1;
}

static __global__ void passes(int n)
{
    set_passed(&passed[threadIdx.x % n]);
}

static void passed_variable(bool bad)
{
    passes<<<1, 32>>>(16 + bad);
    wait();
}

// Contexts end, and the next one starts at once: RESETS of them. Nothing of theirs stays.
static void resets(bool bad)
{
    const char *number = getenv("RESETS");
    for (int n = number ? atoi(number) : 3; n > 0; n--) {
        int *a = take<int>(100);
        fill<<<1, 32>>>(a, 0, bad && n == 1 ? 101 : 100);
        wait();
        NEED(cudaDeviceReset());
    }
}

static const struct check_case cases[] = {
    {"write_past", write_past, "heap-buffer-overflow"},
    {"read_past", read_past, "heap-buffer-overflow"},
    {"write_before", write_before, "heap-buffer-underflow"},
    {"read_before", read_before, "heap-buffer-underflow"},
    {"wide", wide, "heap-buffer-overflow"},
    {"wide_second", wide_second, "heap-buffer-overflow"},
    {"neighbour", neighbour, "heap-buffer-overflow|heap-buffer-underflow"},
    {"used_after_free", used_after_free, "heap-use-after-free"},
    {"used_long_after_free", used_long_after_free, "heap-use-after-free"},
    {"null", null, "null-dereference"},
    {"list", list, "heap-use-after-free"},
    {"row_pointers", row_pointers, "heap-buffer-overflow"},
    {"in_a_struct", in_a_struct, "heap-buffer-overflow"},
    {"counted_from_one", counted_from_one, "heap-use-after-free"},
    {"one_too_many", one_too_many, "heap-buffer-overflow"},
    {"reverse", reverse, "heap-use-after-free"},
    {"differences", differences, "heap-buffer-overflow"},
    {"atomics", atomics, "heap-buffer-overflow"},
    {"module_variable", module_variable, "global-buffer-overflow"},
    {"loaded_variable", loaded_variable, "global-buffer-overflow"},
    {"passed_variable", passed_variable, "global-buffer-overflow"},
    {"loaded_constant", loaded_constant, "global-buffer-overflow"},
    {"in_a_function", in_a_function, "heap-buffer-overflow"},
    {"passed_far", passed_far, "heap-buffer-overflow|heap-buffer-underflow"},
    {"returned_far", returned_far, "heap-buffer-overflow|heap-buffer-underflow"},
    {"through_a_pointer", through_a_pointer, "heap-buffer-overflow"},
    {"second_through_a_pointer", second_through_a_pointer, "heap-buffer-overflow"},
    {"async", async, "heap-use-after-free"},
    {"graph", graph, "heap-buffer-overflow"},
    {"graph_memory", graph_memory, "heap-buffer-overflow"},
    {"managed", managed, "heap-buffer-overflow"},
    {"pinned", pinned, "heap-buffer-overflow"},
    {"a_million", a_million, "heap-buffer-overflow"},
    {"host_idle", host_idle, "heap-buffer-overflow"},
    {"resets", resets, "heap-buffer-overflow"},
    {"several", several, "heap-buffer-overflow heap-use-after-free"},
};

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[2], "stale")) {
        stale(!strcmp(argv[1], "bad"));
        return 0;
    }
    if (argc == 3 && !strcmp(argv[2], "host_pointer"))
        host_pointer(!strcmp(argv[1], "bad"));
    if (argc == 3 && !strcmp(argv[2], "own_trap")) {
        own_trap(!strcmp(argv[1], "bad"));
        return 0;
    }
    return check_main(argc, argv, cases);
}
