// SPDX-License-Identifier: MIT
// Spin locks from compare-and-swap around plain 64-bit data; 64-bit division and high products.
#include "program.h"

struct account {
    unsigned long long balance, deposits, remainders;
};

// The section is inside the loop: no lane of a warp waits for another one that holds the lock.
__device__ void deposit(struct account *account, int *lock, unsigned long long amount)
{
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            account->balance += amount;
            account->deposits++;
            account->remainders += amount % 1000003u;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

__host__ __device__ unsigned long long amount_of(unsigned long long thread, int round)
{
    unsigned long long product = (thread + 1) * 0x9e3779b97f4a7c15u * (unsigned)(round + 1);
    return product / 97 + (product >> 33);
}

__global__ void deposit_all(struct account *accounts, int *locks, unsigned long long *largest,
                            int count, int threads, int rounds)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= threads)
        return;
    for (int round = 0; round < rounds; round++) {
        unsigned long long amount = amount_of(thread, round);
        int i = (int)(amount % count);
        deposit(&accounts[i], &locks[i], amount);
        atomicMax(largest, __umul64hi(amount, amount));
    }
}

static unsigned long long high_square(unsigned long long x)
{
    return (unsigned long long)((unsigned __int128)x * x >> 64);
}

static long check(const std::vector<struct account> &accounts, unsigned long long largest,
                  long threads, int rounds)
{
    std::vector<struct account> expected(accounts.size());
    unsigned long long expected_largest = 0;
    for (long thread = 0; thread < threads; thread++)
        for (int round = 0; round < rounds; round++) {
            unsigned long long amount = amount_of(thread, round);
            struct account *account = &expected[amount % accounts.size()];
            account->balance += amount;
            account->deposits++;
            account->remainders += amount % 1000003u;
            expected_largest = std::max(expected_largest, high_square(amount));
        }
    long errors = program_wrong(0, largest, expected_largest);
    for (size_t i = 0; i < accounts.size(); i++)
        errors += program_wrong(i, accounts[i].balance, expected[i].balance) +
                  program_wrong(i, accounts[i].deposits, expected[i].deposits) +
                  program_wrong(i, accounts[i].remainders, expected[i].remainders);
    return errors;
}

int main(int argc, char **argv)
{
    long threads = 500, count = 16, rounds = 2;
    program_arguments(argc, argv, {{"threads", &threads, 1, 1 << 24},
                                   {"accounts", &count, 1, 1 << 20},
                                   {"rounds", &rounds, 1, 1000}});
    struct account *accounts = program_upload(std::vector<struct account>(count));
    int *locks = program_upload(std::vector<int>(count));
    unsigned long long *largest = program_upload(std::vector<unsigned long long>(1));

    double start = program_start();
    deposit_all<<<program_blocks(threads, 128), 128>>>(accounts, locks, largest, count, threads,
                                                       rounds);
    program_stop(start);

    long errors = check(program_download(accounts, count), program_download(largest, 1)[0], threads,
                        rounds);
    program_free(accounts, locks, largest);
    return program_result("spinlock", errors);
}
