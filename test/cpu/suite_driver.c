// SPDX-License-Identifier: MIT
// suite_driver FOLDER SUFFIX: kernels of the suite, compiled by nvcc to FOLDER/NAME.SUFFIX (PTX or a fatbin), launched
// through the driver API by a program in C.
#include "driver_check.h"

static const char *folder, *suffix;

static CUmodule load(const char *name)
{
    char path[400];
    CUmodule module;
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
    TRY(cuModuleLoad(&module, path));
    return module;
}

static CUdeviceptr upload(const void *data, size_t bytes)
{
    CUdeviceptr p;
    TRY(cuMemAlloc_v2(&p, bytes));
    TRY(cuMemcpyHtoD_v2(p, data, bytes));
    return p;
}

static uint32_t next(uint32_t *state)
{
    return *state = *state * 1664525u + 1013904223u;
}

static void triad(void)
{
    enum { N = 5000 };
    static float a[N], b[N], c[N];
    for (int i = 0; i < N; i++) {
        b[i] = (float)(i % 97);
        c[i] = (float)(i % 31);
    }
    CUmodule module = load("triad");
    CUdeviceptr pa = check_zeroed(sizeof a), pb = upload(b, sizeof b), pc = upload(c, sizeof c);
    float scale = 3;
    int n = N, wrong = 0;
    TRY(LAUNCH(check_function(module, "_Z5triadPfPKfS1_fi"), 6, 128, 0, NULL, &pa, &pb, &pc, &scale, &n));
    TRY(cuMemcpyDtoH_v2(a, pa, sizeof a));
    for (int i = 0; i < N; i++)
        wrong += a[i] != b[i] + scale * c[i];
    EQUAL(wrong, 0);
    TRY(cuModuleUnload(module));
}

static void transpose(void)
{
    enum { ROWS = 70, COLUMNS = 90 };
    static uint32_t in[ROWS * COLUMNS], out[ROWS * COLUMNS], state = 1;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        in[i] = next(&state);
    CUmodule module = load("transpose");
    CUdeviceptr pin = upload(in, sizeof in), pout = check_zeroed(sizeof out);
    int rows = ROWS, columns = COLUMNS, wrong = 0;
    TRY(cuLaunchKernel(check_function(module, "_Z9transposePjPKjii"), 3, 3, 1, 32, 8, 1, 0, NULL,
                       (void *[]){&pout, &pin, &rows, &columns}, NULL));
    TRY(cuMemcpyDtoH_v2(out, pout, sizeof out));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        wrong += out[i] != in[i % ROWS * COLUMNS + i / ROWS];
    EQUAL(wrong, 0);
    TRY(cuModuleUnload(module));
}

static void histogram(void)
{
    enum { N = 8000, BINS = 256 };
    static unsigned char data[N];
    static uint32_t bins[BINS], expected[BINS], state = 2;
    for (int i = 0; i < N; i++)
        expected[data[i] = (unsigned char)(next(&state) >> 24)]++;
    CUmodule module = load("histogram");
    CUdeviceptr pdata = upload(data, sizeof data);
    static const char *const kernels[] = {"_Z12count_globalPjPKhi", "_Z12count_sharedPjPKhi"};
    for (int k = 0; k < 2; k++) {
        CUdeviceptr pbins = check_zeroed(sizeof bins);
        int n = N, wrong = 0;
        TRY(LAUNCH(check_function(module, kernels[k]), 7, 256, 0, NULL, &pbins, &pdata, &n));
        TRY(cuMemcpyDtoH_v2(bins, pbins, sizeof bins));
        for (int i = 0; i < BINS; i++)
            wrong += bins[i] != expected[i];
        EQUAL(wrong, 0);
    }
    TRY(cuModuleUnload(module));
}

static void reduce(void)
{
    enum { N = 10000, BLOCKS = 20 };
    static uint32_t in[N], state = 3;
    struct {
        uint64_t sum, maximum;
    } expected = {0, 0}, result = {0, 0};
    for (int i = 0; i < N; i++) {
        in[i] = next(&state) >> 4;
        expected.sum += in[i];
        expected.maximum = in[i] > expected.maximum ? in[i] : expected.maximum;
    }
    CUmodule module = load("reduce");
    CUdeviceptr pin = upload(in, sizeof in), partials = check_zeroed(BLOCKS * sizeof result);
    CUdeviceptr out = check_zeroed(sizeof result);
    int n = N, blocks = BLOCKS;
    TRY(LAUNCH(check_function(module, "_Z14reduce_numbersP7partialPKji"), BLOCKS, 256, 0, NULL, &partials,
               &pin, &n));
    TRY(LAUNCH(check_function(module, "_Z15reduce_partialsP7partialPKS_i"), 1, 256, 0, NULL, &out, &partials,
               &blocks));
    TRY(cuMemcpyDtoH_v2(&result, out, sizeof result));
    EQUAL(result.sum, expected.sum);
    EQUAL(result.maximum, expected.maximum);
    TRY(cuModuleUnload(module));
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: suite_driver FOLDER SUFFIX\n");
        return 2;
    }
    folder = argv[1];
    suffix = argv[2];
    CUcontext context = check_context();
    triad();
    transpose();
    histogram();
    reduce();
    TRY(cuCtxDestroy_v2(context));
    return check_end("suite_driver");
}
