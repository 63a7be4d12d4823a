// SPDX-License-Identifier: MIT
// Errors in memory that is not global, which --mode=check must find, each with a correct twin: see
// check_cases.cuh. A wrong access is skipped, so neighbours keep their values.
#include "check_cases.cuh"

#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

static void expect(const int *device, int n, int (*f)(int))
{
    static int out[4096];
    NEED(cudaMemcpy(out, device, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (out[i] != f(i)) {
            printf("%d: %d instead of %d\n", i, out[i], f(i));
            exit(3);
        }
}

static int seven(int)
{
    return 7;
}

// --- shared memory -----------------------------------------------------------------------------------------

// One array runs into the next one.
__global__ void into_neighbour(int *out, int n)
{
    __shared__ int tile[64];
    __shared__ int next[64];
    next[threadIdx.x] = 7;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += 64)
        tile[i] = i;
    __syncthreads();
    out[threadIdx.x] = next[threadIdx.x] + (tile[threadIdx.x] > 100);
}

static void shared_neighbour(bool bad)
{
    int *out = take<int>(64);
    into_neighbour<<<1, 64>>>(out, 64 + bad);
    wait();
    expect(out, 64, seven);
}

__global__ void read_neighbour(int *out, int by)
{
    __shared__ int tile[64], next[64];
    next[threadIdx.x] = 100;
    tile[threadIdx.x] = 7;
    __syncthreads();
    int got = tile[(threadIdx.x + by) % 65];  // skipped: 0
    out[threadIdx.x] = got ? got : 7;
    out[threadIdx.x] += next[threadIdx.x] - 100;
}

static void shared_read(bool bad)
{
    int *out = take<int>(64);
    read_neighbour<<<1, 64>>>(out, bad);
    wait();
    expect(out, 64, seven);
}

__global__ void before_array(int *out, int from)
{
    __shared__ int other[64], tile[64];
    other[threadIdx.x] = 7;
    __syncthreads();
    tile[(int)threadIdx.x + from] = 1;
    __syncthreads();
    out[threadIdx.x] = other[threadIdx.x] + (tile[threadIdx.x / 2] > 1);
}

static void shared_before(bool bad)
{
    int *out = take<int>(64);
    before_array<<<1, 64>>>(out, bad ? -1 : 0);
    wait();
    expect(out, 64, seven);
}

extern __shared__ int dynamic[];
__global__ void carve(int *out, int n, int m)
{
    int *a = dynamic, *b = dynamic + n;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        a[i] = 7;
    for (int i = threadIdx.x; i < m; i += blockDim.x)
        b[i] = 8;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = a[i];
}

static void shared_dynamic(bool bad)
{
    int *out = take<int>(100);
    carve<<<1, 32, 600>>>(out, 100, 50 + bad);
    wait();
    expect(out, 100, seven);
}

// None was asked for.
static void shared_missing(bool bad)
{
    int *out = take<int>(100);
    carve<<<1, 32, bad ? 0 : 400>>>(out, bad ? 4 : 100, 0);
    wait();
}


__device__ int always = 1;
// Through generic addresses, to which the pointers are converted.
__global__ void generic(int *out, int n, int *elsewhere)
{
    __shared__ int tile[32], sum[4];
    int *p = always ? tile : elsewhere;
    tile[threadIdx.x] = 1;
    if (threadIdx.x < 4)
        sum[threadIdx.x] = 0;
    __syncthreads();
    volatile int *q = tile;
    atomicAdd(&sum[n], q[threadIdx.x] + p[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0)
        out[0] = sum[3] == 64 ? 7 : sum[3];
}

static void shared_atomic(bool bad)
{
    int *out = take<int>(1);
    generic<<<1, 32>>>(out, bad ? 4 : 3, out);
    wait();
    if (!bad)
        expect(out, 1, seven);
}

__global__ void two_dimensions(float *out, int width)
{
    __shared__ float tile[16][16];
    __shared__ float next[16];
    next[threadIdx.x] = 7;
    for (int i = 0; i < width; i++)
        tile[threadIdx.x][i] = 1;
    __syncthreads();
    out[threadIdx.x] = next[threadIdx.x] + tile[threadIdx.x][0] - 1;
}

// Inside the array another row is no error that can be seen; behind the last row it is one.
static void shared_rows(bool bad)
{
    two_dimensions<<<1, 16>>>(take<float>(16), 16 + bad);
    wait();
}

__global__ void vectors(int4 *out, int at)
{
    __shared__ int4 tile[8];
    __shared__ int next[4];
    if (threadIdx.x < 8)
        tile[threadIdx.x] = make_int4(7, 7, 7, 7);
    next[threadIdx.x % 4] = 7;
    __syncthreads();
    *out = tile[at];
    out->x += next[at % 4] - 7;
}

static void shared_vector(bool bad)
{
    vectors<<<1, 8>>>(take<int4>(1), bad ? 8 : 7);
    wait();
}

// One of two arrays.
__global__ void either(int *out, int which, int at)
{
    __shared__ int small[16], large[64];
    small[threadIdx.x % 16] = 7;
    large[threadIdx.x] = 7;
    __syncthreads();
    int *p = small;
    int step = 1;
    for (int i = 0; i < which; i++) {
        p = large;
        step = 4;
    }
    p[at * step] = 7;
    __syncthreads();
    out[threadIdx.x] = large[threadIdx.x];
}

static void shared_either(bool bad)
{
    int *out = take<int>(64);
    either<<<1, 64>>>(out, !bad, bad ? 16 : 15);
    wait();
    expect(out, 64, seven);
}

// --- local and constant memory, parameters -----------------------------------------------------------------

__global__ void in_frame(int *out, int n, int at)
{
    int frame[20];
    for (int i = 0; i < n; i++)
        frame[(i * 5 + at) % 21] = 7;
    out[threadIdx.x] = frame[at] == 7 ? 7 : frame[at + 1];
}

static void local_array(bool bad)
{
    in_frame<<<1, 32>>>(take<int>(32), bad ? 21 : 2, 1);
    wait();
}

__constant__ int table[16] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
__constant__ int behind[16] = {1, 2, 3};
__global__ void from_table(int *out, int n)
{
    int i = threadIdx.x % n;
    out[threadIdx.x] = table[i] + behind[0] - 1;
}

static void constant_array(bool bad)
{
    from_table<<<1, 32>>>(take<int>(32), 16 + bad);
    wait();
}

struct settings {
    int values[12];
    int last;
};
__global__ void from_settings(const __grid_constant__ settings s, int *out, int n)
{
    out[threadIdx.x] = s.values[threadIdx.x % n] + s.last;
}

// The element behind the array is another one of the structure; only the end of the structure is known.
static void parameter_array(bool bad)
{
    settings s = {};
    from_settings<<<1, 32>>>(s, take<int>(32), 12 + 2 * bad);
    wait();
}

// nvcc copies such a structure to local memory.
__global__ void from_copy(settings s, int *out, int n)
{
    out[threadIdx.x] = s.values[threadIdx.x % n] + s.last;
}

static void parameter_copy(bool bad)
{
    settings s = {};
    from_copy<<<1, 32>>>(s, take<int>(32), 12 + 2 * bad);
    wait();
}

// --- alignment ---------------------------------------------------------------------------------------------

template <typename T> __global__ void add(const char *from, T *out, int at)
{
    out[threadIdx.x] = *(const T *)(from + sizeof(T) * threadIdx.x + at);
}

static void misaligned_offset(bool bad)
{
    add<<<1, 8>>>(take<char>(100), take<int>(8), bad ? 2 : 4);
    wait();
}

// The pointer itself is not aligned.
__global__ void add_all(const double *from, double *out)
{
    out[threadIdx.x] = from[threadIdx.x] + 1;
}

static void misaligned_pointer(bool bad)
{
    add_all<<<1, 8>>>((const double *)(take<char>(100) + (bad ? 4 : 8)), take<double>(8));
    wait();
}

__global__ void by_fours(const float *const *from, float4 *out)
{
    out[threadIdx.x] = ((const float4 *)*from)[threadIdx.x];
}

static void misaligned_vector(bool bad)
{
    const float *p = take<float>(64) + (bad ? 1 : 4), **list = take<const float *>(1);
    NEED(cudaMemcpy(list, &p, sizeof p, cudaMemcpyHostToDevice));
    by_fours<<<1, 8>>>(list, take<float4>(8));
    wait();
}

__global__ void in_bytes(int *out, int at)
{
    __shared__ __align__(8) char bytes[64];
    for (int i = threadIdx.x; i < 64; i += 8)
        bytes[i] = 1;
    __syncthreads();
    out[threadIdx.x] = *(int *)(bytes + 4 * threadIdx.x + at);
}

static void misaligned_shared(bool bad)
{
    in_bytes<<<1, 8>>>(take<int>(8), bad ? 3 : 4);
    wait();
}

// --- matrices and asynchronous copies ----------------------------------------------------------------------

__global__ void copied(const int4 *from, int4 *out, int to, int n)
{
    __shared__ int4 tile[32];
    __shared__ int next[32];
    next[threadIdx.x] = 7;
    tile[threadIdx.x] = make_int4(0, 0, 0, 0);
    __syncthreads();
    if (threadIdx.x < n)
        __pipeline_memcpy_async(&tile[threadIdx.x + to], &from[threadIdx.x], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
    out[threadIdx.x].x += next[threadIdx.x] - 7;
}

static void copy_from(bool bad)
{
    copied<<<1, 32>>>(take<int4>(31), take<int4>(32), 0, 31 + bad);
    wait();
}

static void copy_to(bool bad)
{
    copied<<<1, 32>>>(take<int4>(32), take<int4>(32), bad, 32);
    wait();
}

__device__ unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

__global__ void rows(int *out, int stride)
{
    __shared__ __align__(16) half tile[8 * 8];
    __shared__ __align__(16) half next[64];
    int got;
    tile[threadIdx.x] = tile[threadIdx.x + 32] = __float2half(1);
    next[threadIdx.x] = next[threadIdx.x + 32] = __float2half(2);
    __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(got)
                 : "r"(shared_address(tile + threadIdx.x % 8 * stride)));
    out[threadIdx.x] = got + (next[threadIdx.x] == __float2half(2));
}

static void matrix_rows(bool bad)
{
    rows<<<1, 32>>>(take<int>(32), 8 + 8 * bad);
    wait();
}

__global__ void row_alignment(int *out, int by)
{
    __shared__ __align__(16) half tile[8 * 16];
    int got;
    for (int i = threadIdx.x; i < 128; i += 32)
        tile[i] = __float2half(1);
    __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(got)
                 : "r"(shared_address(tile + threadIdx.x % 8 * 8 + by)));
    out[threadIdx.x] = got;
}

static void misaligned_rows(bool bad)
{
    row_alignment<<<1, 32>>>(take<int>(32), bad ? 4 : 8);
    wait();
}

// The stride of the tiles is known at run time.
__global__ void tiles(const half *a, const half *b, float *c, int stride)
{
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> x;
    fragment<matrix_b, 16, 16, 16, half, row_major> y;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    load_matrix_sync(x, a, 16);
    load_matrix_sync(y, b, stride);
    mma_sync(sum, x, y, sum);
    store_matrix_sync(c, sum, 16, mem_row_major);
}

static void tile_from(bool bad)
{
    tiles<<<1, 32>>>(take<half>(256), take<half>(15 * 24 + 16), take<float>(256), bad ? 32 : 24);
    wait();
}

static void tile_to(bool bad)
{
    tiles<<<1, 32>>>(take<half>(256), take<half>(256), take<float>(256 - bad), 16);
    wait();
}

// A barrier waits for the bytes: it must receive their number even if the copy was left out.
__global__ void bulk(const char *from, int *out, int bytes, int wait_for)
{
    __shared__ __align__(16) char tile[1024];
    __shared__ __align__(8) unsigned long long barrier;
    __shared__ int next[32];
    next[threadIdx.x] = 7;
    tile[threadIdx.x] = 7;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)));
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%2], [%3], %1, [%0];"
                     ::"r"(shared_address(&barrier)), "r"(bytes), "r"(shared_address(tile)), "l"(from)
                     : "memory");
    asm volatile("{\n.reg .pred p;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}"
                 ::"r"(shared_address(&barrier)) : "memory");
    out[threadIdx.x] = next[threadIdx.x] + tile[wait_for] * 0;
}

static void bulk_from(bool bad)
{
    int *out = take<int>(32);
    bulk<<<1, 32>>>(take<char>(1008), out, 1008 + 16 * bad, 3);
    wait();
    expect(out, 32, seven);
}

static void bulk_to(bool bad)
{
    int *out = take<int>(32);
    bulk<<<1, 32>>>(take<char>(100000), out, bad ? 70000 : 1024, 3);
    wait();
    expect(out, 32, seven);
}

// What is discarded may be lost: 128 bytes of another buffer, or of nobody's memory.
__global__ void discards(char *data, int *out, int at)
{
    if (threadIdx.x == 0)
        asm volatile("discard.global.L2 [%0], 128;" ::"l"(__cvta_generic_to_global(data + at)) : "memory");
    out[threadIdx.x] = 7;
}

static void discarded(bool bad)
{
    int *out = take<int>(32);
    discards<<<1, 32>>>(take<char>(512), out, bad ? 512 : 384);
    wait();
    expect(out, 32, seven);
}

// A vector that is added by one instruction, of which the last two elements are outside.
__global__ void adds(float *data, int *out, int at)
{
    if (threadIdx.x == 0)
        asm volatile("red.global.v4.f32.add [%0], {%1, %1, %1, %1};" ::"l"(
                         __cvta_generic_to_global(data + at)),
                     "f"(1.0f)
                     : "memory");
    out[threadIdx.x] = 7;
}

static void added(bool bad)
{
    int *out = take<int>(32);
    adds<<<1, 32>>>(take<float>(102), out, bad ? 100 : 96);
    wait();
    expect(out, 32, seven);
}

static const struct check_case cases[] = {
    {"shared_neighbour", shared_neighbour, "shared-buffer-overflow"},
    {"shared_read", shared_read, "shared-buffer-overflow"},
    {"shared_before", shared_before, "shared-buffer-overflow"},
    {"shared_dynamic", shared_dynamic, "shared-buffer-overflow"},
    {"shared_missing", shared_missing, "shared-buffer-overflow"},
    {"shared_atomic", shared_atomic, "shared-buffer-overflow"},
    {"shared_rows", shared_rows, "shared-buffer-overflow"},
    {"shared_vector", shared_vector, "shared-buffer-overflow"},
    {"shared_either", shared_either, "shared-buffer-overflow"},
    {"local_array", local_array, "local-buffer-overflow"},
    {"constant_array", constant_array, "global-buffer-overflow"},
    {"parameter_array", parameter_array, "global-buffer-overflow"},
    {"parameter_copy", parameter_copy, "local-buffer-overflow|global-buffer-overflow"},
    {"misaligned_offset", misaligned_offset, "misaligned-address"},
    {"misaligned_pointer", misaligned_pointer, "misaligned-address"},
    {"misaligned_vector", misaligned_vector, "misaligned-address"},
    {"misaligned_shared", misaligned_shared, "misaligned-address"},
    {"copy_from", copy_from, "heap-buffer-overflow"},
    {"copy_to", copy_to, "shared-buffer-overflow"},
    {"matrix_rows", matrix_rows, "shared-buffer-overflow"},
    {"misaligned_rows", misaligned_rows, "misaligned-address"},
    {"tile_from", tile_from, "heap-buffer-overflow"},
    {"tile_to", tile_to, "heap-buffer-overflow"},
    {"bulk_from", bulk_from, "heap-buffer-overflow"},
    {"bulk_to", bulk_to, "shared-buffer-overflow"},
    {"discarded", discarded, "heap-buffer-overflow"},
    {"added", added, "heap-buffer-overflow"},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
