// SPDX-License-Identifier: MIT
// malloc and free in kernels: lists that outlive the kernel that made them, and private scratch.
#include "program.h"

struct node {
    struct node *next;
    long key;
};

// The head starts as a guess of null and is corrected by each failed swap: it is never read bare.
__device__ void push(unsigned long long *bucket, struct node *node)
{
    unsigned long long head = 0, seen;
    for (;; head = seen) {
        node->next = (struct node *)head;
        seen = atomicCAS(bucket, head, (unsigned long long)node);
        if (seen == head)
            return;
    }
}

__global__ void build(unsigned long long *buckets, int bucket_count, int *failures, int threads,
                      int per_thread)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; thread < threads && i < per_thread; i++) {
        struct node *node = (struct node *)malloc(sizeof *node);
        if (node) {
            node->key = (long)i * threads + thread;
            push(&buckets[node->key % bucket_count], node);
        } else {
            atomicAdd(failures, 1);
        }
    }
}

__global__ void add_up(long *sums, unsigned long long *buckets, int bucket_count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= bucket_count)
        return;
    long sum = 0;
    for (struct node *node = (struct node *)buckets[i]; node; node = node->next)
        sum += node->key;
    sums[i] = sum;
}

__global__ void release(unsigned long long *buckets, int bucket_count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= bucket_count)
        return;
    for (struct node *node = (struct node *)buckets[i], *next; node; node = next) {
        next = node->next;
        free(node);
    }
}

// Each thread fills a buffer whose size differs from its neighbours' and adds it up.
__global__ void use_scratch(long *sums, int *failures, int threads)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= threads)
        return;
    int size = thread % 13 + 1;
    int *scratch = (int *)malloc(size * sizeof *scratch);
    long sum = 0;
    if (!scratch)
        atomicAdd(failures, 1);
    for (int i = 0; scratch && i < size; i++)
        scratch[i] = thread + i;
    for (int i = 0; scratch && i < size; i++)
        sum += scratch[size - 1 - i];
    free(scratch);
    sums[thread] = sum;
}

static long check(const std::vector<long> &in_buckets, const std::vector<long> &in_scratch,
                  long keys)
{
    std::vector<long> buckets(in_buckets.size()), scratch(in_scratch.size());
    for (long key = 0; key < keys; key++)
        buckets[key % buckets.size()] += key;
    for (long thread = 0; thread < (long)scratch.size(); thread++) {
        long size = thread % 13 + 1;
        scratch[thread] = size * thread + size * (size - 1) / 2;
    }
    return program_compare(in_buckets, buckets) + program_compare(in_scratch, scratch);
}

int main(int argc, char **argv)
{
    long threads = 200, per_thread = 4, repeats = 1;
    program_arguments(argc, argv, {{"threads", &threads, 1, 1 << 20},
                                   {"nodes_per_thread", &per_thread, 1, 256},
                                   {"repeats", &repeats, 1, 10000}});
    long keys = threads * per_thread, bucket_count = keys / 8 + 1;
    size_t heap = std::max(8L << 20, (keys + threads) * 256);
    CUDA_TRY(cudaDeviceSetLimit(cudaLimitMallocHeapSize, heap));
    unsigned long long *buckets = program_allocate<unsigned long long>(bucket_count);
    long *sums = program_allocate<long>(bucket_count), *scratch = program_allocate<long>(threads);
    int *failures = program_upload(std::vector<int>(1, 0));

    unsigned blocks = program_blocks(threads, 64), bucket_blocks = program_blocks(bucket_count, 64);
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        CUDA_TRY(cudaMemset(buckets, 0, bucket_count * sizeof *buckets));
        build<<<blocks, 64>>>(buckets, bucket_count, failures, threads, per_thread);
        add_up<<<bucket_blocks, 64>>>(sums, buckets, bucket_count);
        release<<<bucket_blocks, 64>>>(buckets, bucket_count);
        use_scratch<<<blocks, 64>>>(scratch, failures, threads);
    }
    program_stop(start);

    long errors = program_wrong(0, program_download(failures, 1)[0], 0) +
                  check(program_download(sums, bucket_count), program_download(scratch, threads),
                        keys);
    program_free(buckets, sums, scratch, failures);
    return program_result("device_heap", errors);
}
