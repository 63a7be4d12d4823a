// SPDX-License-Identifier: MIT
// A module that cannot be redirected beside one that can, for test/guard/kheap_pairs.sh. The redirected one
// frees what either allocates; from the moment the other is loaded, both take memory from the driver.
//   kheap_foreign CUBIN|old first|last   machine code made of what `text` prints, or PTX for an old GPU;
//                                        and when it is loaded
//   kheap_foreign text                   prints that text
#include "cases.h"
#include "kheap_kernels.h"

enum { THREADS = 64 };

struct side {
    CUmodule module;
    CUfunction take, give;
};

static void find(struct side *s)
{
    NEED(d.cuModuleGetFunction(&s->take, s->module, "take"));
    NEED(d.cuModuleGetFunction(&s->give, s->module, "give"));
}

static void launch(CUfunction f, CUdeviceptr *list)
{
    uint64_t size = 100;
    void *arguments[] = {&list, &size};
    NEED(d.cuLaunchKernel(f, 1, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL));
    NEED(d.cuCtxSynchronize());
    for (unsigned i = 0; i < THREADS; i++)
        if (!list[i]) {
            printf("malloc returned no memory for thread %u\n", i);
            exit(2);
        }
}

static CUdeviceptr *new_list(void)
{
    void *list;
    NEED(d.cuMemHostAlloc(&list, THREADS * sizeof(CUdeviceptr), CU_MEMHOSTALLOC_DEVICEMAP));
    return list;
}

static void load_other(struct side *s, const char *what)
{
    if (strcmp(what, "old") == 0)
        NEED(d.cuModuleLoadData(&s->module, kheap_old));
    else
        NEED(d.cuModuleLoad(&s->module, what));
    find(s);
}

int main(int argc, char **argv)
{
    char why[300];
    struct side ours, theirs;
    int first = argc == 3 && strcmp(argv[2], "first") == 0;
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "text") == 0)
        return fputs(kheap_text, stdout) < 0;
    if (driver_open(&d, NULL, why, sizeof why))
        return 77;
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    CUdeviceptr *a = new_list(), *b = new_list();
    if (first)
        load_other(&theirs, argv[1]);
    NEED(d.cuModuleLoadData(&ours.module, kheap_text));
    find(&ours);
    launch(ours.take, a);
    if (!first)
        load_other(&theirs, argv[1]);
    launch(theirs.take, b);
    launch(ours.give, a);
    launch(ours.give, b);
    for (unsigned i = 0; i < 10; i++) {
        launch(ours.take, a);
        launch(theirs.take, b);
        launch(theirs.give, a);
        launch(ours.give, b);
    }
    printf("ok\n");
    return 0;
}
