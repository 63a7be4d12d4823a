// SPDX-License-Identifier: MIT
// What a device answers to copies of boxes of tensors, right ones and ones that the hardware may refuse: for
// test/gpu/tensor_answers.sh, which compares a GPU with the CPU device.
//
//   tensor_answers list          the cases
//   tensor_answers CASE          makes the copy, and prints the error, and sums of the tensor and of the
//                                block's shared memory
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>

enum { COLUMNS = 256, ROWS = 48, BYTES = COLUMNS * ROWS, BOX_BYTES = 4096, SHARED = 16384 };

// What is done with the box. COMPLETE: nothing; the barrier receives its bytes by mbarrier.complete_tx, as
// one of the thread's own block or as one of the cluster's.
// PIXELS: it is stored as an im2col box is, from pixel x of image y on. BULK_MULTICAST: no box is copied, but
// as many bytes.
enum way {
    LOAD,
    STORE,
    ADD,
    MIN,
    MAX,
    INC,
    AND,
    PIXELS,
    COMPLETE_OWN,
    COMPLETE_CLUSTER,
    MULTICAST,
    BULK_MULTICAST
};

#define SEND(op)                                                                                          \
    asm volatile(op " [%0, {%1, %2}], [%3];\n"                                                            \
                    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(&map),                \
                 "r"(x), "r"(y), "r"(at)                                                                  \
                 : "memory")
#define REDUCE(op) SEND("cp.reduce.async.bulk.tensor.2d.global.shared::cta." op ".tile.bulk_group")

__global__ void copy(const __grid_constant__ CUtensorMap map, way what, int x, int y, int shift, int skew,
                     unsigned bytes, uint32_t *out)
{
#if __CUDA_ARCH__ >= 900
    __shared__ __align__(1024) uint32_t tile[SHARED / 4];
    __shared__ uint64_t barriers[3];
    unsigned at = (unsigned)__cvta_generic_to_shared(tile) + shift,
             barrier = (unsigned)__cvta_generic_to_shared(barriers) + skew;
    for (int i = threadIdx.x; i < SHARED / 4; i += 32)
        tile[i] = 0x3c003c00 + i % 7;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier & ~7u) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    bool waits = what == LOAD || what >= COMPLETE_OWN;
    if (threadIdx.x == 0) {
        if (waits)
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier & ~7u), "r"(bytes)
                         : "memory");
        switch (what) {
        case LOAD:
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                         "[%0], [%1, {%2, %3}], [%4];" ::"r"(at),
                         "l"(&map), "r"(x), "r"(y), "r"(barrier)
                         : "memory");
            break;
        case MULTICAST:
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(at),
                         "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"((uint16_t)0x31)
                         : "memory");
            break;
        case BULK_MULTICAST:
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(at),
                         "l"(out), "r"(bytes), "r"(barrier), "h"((uint16_t)0x31)
                         : "memory");
            break;
        case PIXELS:
            asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group "
                         "[%0, {%1, %2, %3}], [%4];\n"
                         "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(&map),
                         "r"(0), "r"(x), "r"(y), "r"(at)
                         : "memory");
            break;
        case STORE: SEND("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"); break;
        case ADD: REDUCE("add"); break;
        case MIN: REDUCE("min"); break;
        case MAX: REDUCE("max"); break;
        case INC: REDUCE("inc"); break;
        case AND: REDUCE("and"); break;
        case COMPLETE_OWN:
            asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier),
                         "r"(bytes)
                         : "memory");
            break;
        default:
            asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(barrier),
                         "r"(bytes)
                         : "memory");
        }
    }
    for (unsigned done = !waits; !done;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(barrier & ~7u)
                     : "memory");
    __syncthreads();
    for (int i = threadIdx.x; i < SHARED / 4; i += 32)
        out[i] = tile[i];
#endif
}

#define TYPE(name) CU_TENSOR_MAP_DATA_TYPE_##name
static const struct {
    const char *name;
    way what;
    CUtensorMapDataType type;
    int size;        // of an element
    int x, y;        // of the box
    int shift;       // of its place in shared memory
    int swizzle;     // CUtensorMapSwizzle
    int row;         // bytes of a row of the box; 0: 128
    int skew;        // of the barrier
} cases[] = {
    {"load", LOAD, TYPE(FLOAT32), 4, 0, 0},
    {"load_negative", LOAD, TYPE(FLOAT32), 4, -4, -3},
    {"load_behind", LOAD, TYPE(FLOAT32), 4, 1000, 1000},
    {"load_farthest", LOAD, TYPE(FLOAT32), 4, INT32_MIN, INT32_MAX},
    {"load_at_128", LOAD, TYPE(FLOAT32), 4, 0, 0, 128},
    {"load_at_64", LOAD, TYPE(FLOAT32), 4, 0, 0, 64},
    {"load_at_16", LOAD, TYPE(FLOAT32), 4, 0, 0, 16},
    {"load_at_8", LOAD, TYPE(FLOAT32), 4, 0, 0, 8},
    {"load_swizzle_128_at_128", LOAD, TYPE(FLOAT32), 4, 0, 0, 128, CU_TENSOR_MAP_SWIZZLE_128B},
    {"load_swizzle_128_at_64", LOAD, TYPE(FLOAT32), 4, 0, 0, 64, CU_TENSOR_MAP_SWIZZLE_128B},
    {"load_swizzle_128_rows_of_64", LOAD, TYPE(FLOAT32), 4, 0, 0, 0, CU_TENSOR_MAP_SWIZZLE_128B, 64},
    {"load_swizzle_64_rows_of_32", LOAD, TYPE(FLOAT32), 4, 0, 0, 0, CU_TENSOR_MAP_SWIZZLE_64B, 32},
    {"load_barrier_at_4", LOAD, TYPE(FLOAT32), 4, 0, 0, 0, 0, 0, 4},
    {"multicast_to_missing_blocks", MULTICAST, TYPE(FLOAT32), 4, 0, 0},
    {"complete_own", COMPLETE_OWN, TYPE(FLOAT32), 4, 0, 0},
    {"complete_cluster", COMPLETE_CLUSTER, TYPE(FLOAT32), 4, 0, 0},
    {"store", STORE, TYPE(FLOAT32), 4, 0, 0},
    {"store_negative", STORE, TYPE(FLOAT32), 4, -4, 16},
    {"store_at_64", STORE, TYPE(FLOAT32), 4, 0, 0, 64},
    {"add_float", ADD, TYPE(FLOAT32), 4, 0, 0},
    {"add_float_right", ADD, TYPE(FLOAT32), 4, 36, 16},
    {"add_float_below", ADD, TYPE(FLOAT32), 4, 0, 40},
    {"add_float_negative_x", ADD, TYPE(FLOAT32), 4, -4, 16},
    {"add_float_negative_x_8", ADD, TYPE(FLOAT32), 4, -8, 16},
    {"add_float_negative_y", ADD, TYPE(FLOAT32), 4, 0, -4},
    {"add_float_at_64", ADD, TYPE(FLOAT32), 4, 0, 0, 64},
    {"add_float_at_y_16", ADD, TYPE(FLOAT32), 4, 0, 16},
    {"add_unsigned_negative_x", ADD, TYPE(UINT32), 4, -4, 16},
    {"add_ftz", ADD, TYPE(FLOAT32_FTZ), 4, 0, 0},
    {"add_half", ADD, TYPE(FLOAT16), 2, 0, 0},
    {"add_double", ADD, TYPE(FLOAT64), 8, 0, 0},
    {"add_int64", ADD, TYPE(INT64), 8, 0, 0},
    {"add_uint64", ADD, TYPE(UINT64), 8, 0, 0},
    {"add_int32", ADD, TYPE(INT32), 4, 0, 0},
    {"add_uint16", ADD, TYPE(UINT16), 2, 0, 0},
    {"add_uint8", ADD, TYPE(UINT8), 1, 0, 0},
    {"min_float", MIN, TYPE(FLOAT32), 4, 0, 0},
    {"min_half", MIN, TYPE(FLOAT16), 2, 0, 0},
    {"min_int64", MIN, TYPE(INT64), 8, 0, 0},
    {"max_double", MAX, TYPE(FLOAT64), 8, 0, 0},
    {"inc_uint32", INC, TYPE(UINT32), 4, 0, 0},
    {"inc_int32", INC, TYPE(INT32), 4, 0, 0},
    {"inc_uint64", INC, TYPE(UINT64), 8, 0, 0},
    {"and_uint32", AND, TYPE(UINT32), 4, 0, 0},
    {"and_int64", AND, TYPE(INT64), 8, 0, 0},
    {"and_float", AND, TYPE(FLOAT32), 4, 0, 0},
    // Not answered by a GPU yet.
    {"and_int32", AND, TYPE(INT32), 4, 0, 0},
    {"and_uint64", AND, TYPE(UINT64), 8, 0, 0},
    {"add_bfloat16", ADD, TYPE(BFLOAT16), 2, 0, 0},
    {"add_tf32", ADD, TYPE(TFLOAT32), 4, 0, 0},
    {"store_swizzle_128_rows_of_64", STORE, TYPE(FLOAT32), 4, 0, 0, 0, CU_TENSOR_MAP_SWIZZLE_128B, 64},
    {"store_negative_y", STORE, TYPE(FLOAT32), 4, 0, -4},
    {"store_before", STORE, TYPE(FLOAT32), 4, -64, 0},
    {"pixels", PIXELS, TYPE(FLOAT32), 4, 4, 0},
    {"pixels_negative_x", PIXELS, TYPE(FLOAT32), 4, -2, 0},
    {"pixels_negative_image", PIXELS, TYPE(FLOAT32), 4, 0, -1},
    {"bulk_multicast_to_missing_blocks", BULK_MULTICAST, TYPE(FLOAT32), 4, 0, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

static uint64_t sum(const void *bytes, size_t n)
{
    uint64_t s = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        s = (s ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
    return s;
}

// Returns a function of the driver's.
template <class F> static F driver(const char *name)
{
    void *entry = NULL;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found) || !entry)
        printf("no device with tensor maps\n"), exit(2);
    return (F)entry;
}
#define DRIVER(name) driver<decltype(&name)>(#name)

static int describe(int n, int row, uint8_t *device, CUtensorMap *map)
{
    int size = cases[n].size;
    cuuint64_t dims[2] = {(cuuint64_t)COLUMNS / size, ROWS}, stride[1] = {COLUMNS};
    cuuint32_t box[2] = {(cuuint32_t)(row / size), 32}, step[3] = {1, 1, 1};
    // Two images of 48 pixels of 32 floats.
    cuuint64_t sizes[3] = {32, 48, 2}, strides[2] = {128, 48 * 128};
    int lower[1] = {-4}, upper[1] = {4};
    if (cases[n].what == PIXELS)
        return DRIVER(cuTensorMapEncodeIm2col)(
            map, cases[n].type, 3, device, sizes, strides, lower, upper, 32, 32, step,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return DRIVER(cuTensorMapEncodeTiled)(map, cases[n].type, 2, device, dims, stride, box, step,
                                          CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)cases[n].swizzle,
                                          CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static int run(int n)
{
    static uint8_t data[BYTES], tile[SHARED];
    uint8_t *device;
    uint32_t *out;
    int row = cases[n].row ? cases[n].row : 128;
    CUtensorMap map;
    for (int i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(i % 4 == 3 ? 0x40 : i * 7 % 64);
    if (cudaMalloc(&device, BYTES) || cudaMalloc(&out, SHARED) || cudaMemset(out, 0, SHARED) ||
        cudaMemcpy(device, data, BYTES, cudaMemcpyHostToDevice))
        return printf("%s: no device\n", cases[n].name), 2;
    int made = describe(n, row, device, &map);
    if (made)
        return printf("%s: the map is refused, error %d\n", cases[n].name, made), 0;
    copy<<<1, 32>>>(map, cases[n].what, cases[n].x, cases[n].y, cases[n].shift, cases[n].skew,
                    (unsigned)(row * 32), out);
    int error = cudaGetLastError();
    error = error ? error : cudaDeviceSynchronize();
    if (error)
        return printf("%s: error %d\n", cases[n].name, error), 0;
    cudaMemcpy(data, device, BYTES, cudaMemcpyDeviceToHost);
    cudaMemcpy(tile, out, SHARED, cudaMemcpyDeviceToHost);
    printf("%s: ok, tensor %016llx, shared memory %016llx\n", cases[n].name,
           (unsigned long long)sum(data, BYTES), (unsigned long long)sum(tile, SHARED));
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 0; argc == 2 && i < CASES; i++)
        if (!strcmp(argv[1], "list"))
            printf("%s\n", cases[i].name);
        else if (!strcmp(argv[1], cases[i].name))
            return run(i);
    return argc == 2 && !strcmp(argv[1], "list") ? 0 : 2;
}
