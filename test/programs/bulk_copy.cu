// SPDX-License-Identifier: MIT
// Bulk copies between global and shared memory with a transaction barrier, from sm_90.
#include "program.h"

enum { THREADS = 128, WORDS = 1024, BYTES = WORDS * 4 };

#if __CUDA_ARCH__ >= 900
__device__ unsigned shared_address(const void *pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}

// What a thread wrote to shared memory reaches the copy engine, which is no thread, only by this.
__device__ void fence_copies(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ void barrier_init(uint64_t *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier))
                 : "memory");
    fence_copies();
}

__device__ void copy_in(unsigned *shared, const unsigned *global, uint64_t *barrier)
{
    unsigned address = shared_address(barrier);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(BYTES)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(shared)),
                 "l"(__cvta_generic_to_global(global)), "r"(BYTES), "r"(address)
                 : "memory");
}

__device__ void wait_for(uint64_t *barrier, unsigned phase)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred complete;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, complete; }"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(phase)
                     : "memory");
}

__device__ void copy_out(unsigned *global, const unsigned *shared)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     __cvta_generic_to_global(global)),
                 "r"(shared_address(shared)), "r"(BYTES)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
#endif

// Reverses the words of each chunk.
__global__ void reverse_chunks(unsigned *out, const unsigned *in, int chunks)
{
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(128) unsigned words[WORDS];
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0)
        barrier_init(&barrier);
    __syncthreads();
    unsigned phase = 0;
    for (int chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x, phase ^= 1) {
        if (threadIdx.x == 0)
            copy_in(words, &in[(size_t)chunk * WORDS], &barrier);
        wait_for(&barrier, phase);
        for (int i = threadIdx.x; i < WORDS / 2; i += THREADS) {
            unsigned word = words[i];
            words[i] = words[WORDS - 1 - i];
            words[WORDS - 1 - i] = word;
        }
        fence_copies();
        __syncthreads();
        if (threadIdx.x == 0)
            copy_out(&out[(size_t)chunk * WORDS], words);
    }
#endif
}

int main(int argc, char **argv)
{
    long chunks = 6, blocks = 2, repeats = 1;
    program_arguments(argc, argv, {{"chunks", &chunks, 1, 1 << 18}, {"blocks", &blocks, 1, 65535},
                                   {"repeats", &repeats, 1, 100000}});
    program_require("bulk_copy", reverse_chunks, 90);
    std::vector<unsigned> in = program_numbers<unsigned>(chunks * WORDS, 0, 1 << 30, 1);
    std::vector<unsigned> expected(in);
    for (long chunk = 0; chunk < chunks; chunk++)
        std::reverse(&expected[chunk * WORDS], &expected[chunk * WORDS] + WORDS);
    unsigned *device_in = program_upload(in), *device_out = program_allocate<unsigned>(in.size());

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        reverse_chunks<<<blocks, THREADS>>>(device_out, device_in, chunks);
    program_stop(start);

    std::vector<unsigned> out = program_download(device_out, in.size());
    program_free(device_in, device_out);
    return program_result("bulk_copy", program_compare(out, expected));
}
