// SPDX-License-Identifier: MIT
// What the programs of the suite share: arguments, errors, buffers, random numbers, the verdict.
#ifndef PROGRAM_H
#define PROGRAM_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <time.h>
#include <unistd.h>

enum program_status { PROGRAM_OK, PROGRAM_WRONG, PROGRAM_CUDA_ERROR, PROGRAM_USAGE, PROGRAM_SKIPPED = 77 };

#define CUDA_TRY(call) program_try((call), #call, __FILE__, __LINE__)

inline void program_try(cudaError_t error, const char *call, const char *file, int line)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, call, cudaGetErrorString(error),
            cudaGetErrorName(error));
    exit(PROGRAM_CUDA_ERROR);
}

// An input size. value holds the default until the command line says otherwise.
struct program_argument {
    const char *name;
    long *value;
    long least, most;
};

template <size_t count>
[[noreturn]] void program_usage(const char *program, const program_argument (&arguments)[count])
{
    fprintf(stderr, "usage: %s", program);
    for (const program_argument &argument : arguments)
        fprintf(stderr, " [%s=%ld]", argument.name, *argument.value);
    fprintf(stderr, "\n");
    exit(PROGRAM_USAGE);
}

// The values are set last: the usage line always shows the defaults.
template <size_t count>
void program_arguments(int argc, char **argv, const program_argument (&arguments)[count])
{
    long given[count];
    if (argc - 1 > (int)count) {
        fprintf(stderr, "%s: takes at most %zu arguments, not %d\n", argv[0], count, argc - 1);
        program_usage(argv[0], arguments);
    }
    for (int i = 0; i + 1 < argc; i++) {
        const char *text = argv[i + 1];
        char *end;
        given[i] = strtol(text, &end, 10);
        if (end == text || *end || given[i] < arguments[i].least || given[i] > arguments[i].most) {
            fprintf(stderr, "%s: %s is '%s', must be a whole number from %ld to %ld\n", argv[0],
                    arguments[i].name, text, arguments[i].least, arguments[i].most);
            program_usage(argv[0], arguments);
        }
    }
    for (int i = 0; i + 1 < argc; i++)
        *arguments[i].value = given[i];
}

// A linear congruential generator; the low half of its state is too regular to hand out.
struct program_random {
    uint64_t state;
};

__host__ __device__ inline uint32_t program_next(program_random *random)
{
    random->state = random->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random->state >> 32);
}

inline uint32_t program_below(program_random *random, uint32_t bound)
{
    return (uint32_t)((uint64_t)program_next(random) * bound >> 32);
}

// Numbers from low to high. They are whole: as long as sums and products of them stay below the
// type's 2^mantissa, every order of operations gives the same result and nothing needs a tolerance.
template <typename T> std::vector<T> program_numbers(size_t count, int low, int high, uint64_t seed)
{
    std::vector<T> numbers(count);
    program_random random = {seed};
    T *out = numbers.data();
    for (size_t i = 0; i < count; i++)
        out[i] = (T)(low + (int)program_below(&random, (uint32_t)(high - low) + 1));
    return numbers;
}

// Which of count results to check: all, or a fixed pseudo-random choice where there are too many.
inline std::vector<size_t> program_sample(size_t count, size_t most)
{
    std::vector<size_t> indices(std::min(count, most));
    program_random random = {count};
    for (size_t i = 0; i < indices.size(); i++) {
        uint64_t wide = (uint64_t)program_next(&random) << 32 | program_next(&random);
        indices[i] = count <= most ? i : wide % count;
    }
    return indices;
}

template <typename T> T *program_allocate(size_t count)
{
    void *device = nullptr;
    CUDA_TRY(cudaMalloc(&device, count * sizeof(T)));
    return (T *)device;
}

template <typename T> T *program_upload(const std::vector<T> &host)
{
    T *device = program_allocate<T>(host.size());
    CUDA_TRY(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

template <typename T> std::vector<T> program_download(const T *device, size_t count)
{
    std::vector<T> host(count);
    CUDA_TRY(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

template <typename... T> void program_free(T *...device)
{
    const int freed[] = {(CUDA_TRY(cudaFree(device)), 0)...};
    (void)freed;
}

inline unsigned program_blocks(size_t items, size_t per_block)
{
    return (unsigned)((items + per_block - 1) / per_block);
}

inline int program_attribute(cudaDeviceAttr attribute)
{
    int device, value;
    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
}

inline double program_seconds(void)
{
    timespec now;
    CUDA_TRY(cudaDeviceSynchronize());
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// PROGRAM_GATE names a folder: a file there signals that the program is ready, and it continues when there is
// one named `go`, so that several can begin at once.
inline void program_gate(void)
{
    const char *folder = getenv("PROGRAM_GATE");
    if (!folder)
        return;
    std::string ready = folder + ("/" + std::to_string(getpid())), go = folder + std::string("/go");
    FILE *file = fopen(ready.c_str(), "w");
    if (file)
        fclose(file);
    while (file && access(go.c_str(), F_OK) != 0)
        usleep(50);
}

// The work between start and stop is what a benchmark measures; PROGRAM_TIME asks for its time.
inline double program_start(void)
{
    CUDA_TRY(cudaDeviceSynchronize());
    program_gate();
    return program_seconds();
}

inline void program_stop(double start)
{
    CUDA_TRY(cudaGetLastError());
    double seconds = program_seconds() - start;
    if (getenv("PROGRAM_TIME"))
        fprintf(stderr, "seconds: %.6f\n", seconds);
}

// 1 if actual is wrong, else 0. The tolerance is relative, and absolute where expected is below 1.
template <typename T> long program_wrong(size_t index, T actual, T expected, double tolerance = 0)
{
    static int shown;
    double limit = tolerance * fmax(1.0, fabs((double)expected));
    bool exact = actual == expected;
    if (exact || (tolerance > 0 && fabs((double)actual - (double)expected) <= limit))
        return 0;
    if (shown++ < 5)
        fprintf(stderr, "result %zu is %.17g, expected %.17g\n", index, (double)actual, (double)expected);
    return 1;
}

template <typename T>
long program_compare(const std::vector<T> &actual, const std::vector<T> &expected, double tolerance = 0)
{
    long errors = actual.size() != expected.size();
    const T *a = actual.data(), *e = expected.data();
    for (size_t i = 0; i < std::min(actual.size(), expected.size()); i++)
        if (!(a[i] == e[i]))
            errors += program_wrong(i, a[i], e[i], tolerance);
    return errors;
}

[[noreturn]] inline void program_skip(const char *name, const char *reason)
{
    printf("%s: skipped: %s\n", name, reason);
    exit(PROGRAM_SKIPPED);
}

// Asks for what the kernel was compiled for, not for the device: on a newer device a kernel
// compiled for an older one still lacks the code behind __CUDA_ARCH__.
template <typename kernel_type> void program_require(const char *name, kernel_type *kernel, int architecture)
{
    cudaFuncAttributes attributes;
    char reason[64];
    CUDA_TRY(cudaFuncGetAttributes(&attributes, (const void *)kernel));
    if (attributes.ptxVersion >= architecture)
        return;
    snprintf(reason, sizeof reason, "needs code for sm_%d, this is sm_%d", architecture,
             attributes.ptxVersion);
    program_skip(name, reason);
}

inline int program_result(const char *name, long errors)
{
    if (errors)
        printf("%s: %ld wrong results\n", name, errors);
    else
        printf("%s: ok\n", name);
    return errors ? PROGRAM_WRONG : PROGRAM_OK;
}

#endif
