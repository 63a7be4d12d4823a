// SPDX-License-Identifier: MIT
// Ways in which programs reach the driver: `attach WAY [LIBCUDA]` takes that way and copies one byte too
// many, which the guard must report. Status 1: the copy was not even refused; 2: the way does not exist here.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/driver.h"

static int closed(const char *what)
{
    const char *error = dlerror();
    printf("%s: %s\n", what, error ? error : "not there");
    return 2;
}

typedef void *lookup(void *context, const char *symbol);

// What a small program needs, by whatever lookup.
struct calls {
    __typeof__(cuInit) *init;
    __typeof__(cuDevicePrimaryCtxRetain) *retain;
    __typeof__(cuCtxSetCurrent) *set_current;
    __typeof__(cuMemAlloc_v2) *alloc;
    __typeof__(cuMemcpyHtoD_v2) *copy;
    __typeof__(cuMemFree_v2) *free;
};

static int overflow(const struct calls *c)
{
    static char host[2000];
    CUcontext context;
    CUdeviceptr p;
    if (c->init(0) || c->retain(&context, 0) || c->set_current(context) || c->alloc(&p, 1000) ||
        c->copy(p, host, 1000))
        return closed("a correct call");
    CUresult r = c->copy(p, host, 1001);
    if (c->free(p))
        return closed("free");
    return r != CUDA_ERROR_INVALID_VALUE;
}

static int by_lookup(lookup *find, void *context, const char *const *names)
{
    struct calls c;
    void *found[6];
    for (int i = 0; i < 6; i++)
        if (!(found[i] = find(context, names[i])))
            return closed(names[i]);
    memcpy(&c, found, sizeof c);
    return overflow(&c);
}

static const char *const symbols[] = {"cuInit",        "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                                      "cuMemAlloc_v2", "cuMemcpyHtoD_v2",          "cuMemFree_v2"};
static const char *const bases[] = {
    "cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc", "cuMemcpyHtoD", "cuMemFree"};

static int by_handle(void *handle)
{
    return handle ? by_lookup(dlsym, handle, symbols) : closed("dlopen");
}

static int soname(const char *libcuda)
{
    return by_handle(dlopen("libcuda.so.1", RTLD_NOW));
}

static int unversioned(const char *libcuda)
{
    return by_handle(dlopen("libcuda.so", RTLD_LAZY));
}

static int path(const char *libcuda)
{
    return by_handle(dlopen(libcuda, RTLD_NOW | RTLD_LOCAL));
}

static int deepbind(const char *libcuda)
{
    return by_handle(dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND));
}

// Neither of its names leads to a driver in that namespace.
static int in_namespace(const char *libcuda)
{
    int r = by_handle(dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW));
    return r ? r : by_handle(dlmopen(LM_ID_NEWLM, libcuda, RTLD_NOW | RTLD_LOCAL));
}

// A library in a namespace of its own loads a driver under a different file name.
static int driver_beside(const char *libcuda)
{
    char *file = realpath(libcuda, NULL);
    if (!file || !dlmopen(LM_ID_NEWLM, file, RTLD_NOW))
        return closed(libcuda);
    free(file);
    return soname(libcuda);
}

static int in_first_namespace(const char *libcuda)
{
    return by_handle(dlmopen(LM_ID_BASE, libcuda, RTLD_LAZY));
}

static int closed_and_opened(const char *libcuda)
{
    for (int i = 0; i < 3; i++) {
        void *handle = dlopen("libcuda.so.1", RTLD_NOW);
        int r = by_handle(handle);
        if (r || dlclose(handle))
            return r ? r : 2;
    }
    return soname(libcuda);
}

static void *anywhere(void *context, const char *symbol)
{
    return dlsym(RTLD_DEFAULT, symbol);
}

static int global_scope(const char *libcuda)
{
    return by_lookup(anywhere, NULL, symbols);
}

struct versioned {
    int version;
    cuuint64_t flags;
    bool old;  // by the call of CUDA 11.3
};

static void *ask(void *context, const char *base)
{
    const struct versioned *v = context;
    void *handle = dlopen("libcuda.so.1", RTLD_NOW), *first, *f = NULL;
    __typeof__(cuGetProcAddress) *old;
    __typeof__(cuGetProcAddress_v2) *current;
    CUdriverProcAddressQueryResult status;
    first = handle ? dlsym(handle, v->old ? "cuGetProcAddress" : "cuGetProcAddress_v2") : NULL;
    memcpy(&old, &first, sizeof old);
    memcpy(&current, &first, sizeof current);
    if (!first ||
        (v->old ? old(base, &f, v->version, v->flags) : current(base, &f, v->version, v->flags, &status)))
        return NULL;
    return f;
}

static int proc_address(const char *libcuda)
{
    return by_lookup(ask, &(struct versioned){13000, 0, false}, bases);
}

static int proc_address_12(const char *libcuda)
{
    return by_lookup(ask, &(struct versioned){12000, 0, false}, bases);
}

static int proc_address_old(const char *libcuda)
{
    return by_lookup(ask, &(struct versioned){11030, 0, true}, bases);
}

static int proc_address_thread_stream(const char *libcuda)
{
    return by_lookup(ask, &(struct versioned){13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, false},
                     bases);
}

// A cuGetProcAddress that cuGetProcAddress returned leads to the guard again.
static void *ask_twice(void *context, const char *base)
{
    struct versioned v = {13000, 0, false};
    void *self = ask(&v, "cuGetProcAddress"), *f = NULL;
    CUdriverProcAddressQueryResult status;
    __typeof__(cuGetProcAddress_v2) *again;
    memcpy(&again, &self, sizeof again);
    return self && !again(base, &f, 13000, 0, &status) ? f : NULL;
}

static int proc_address_itself(const char *libcuda)
{
    return by_lookup(ask_twice, NULL, bases);
}

static void *in_thread(void *result)
{
    *(int *)result = soname(NULL);
    return NULL;
}

static int thread(const char *libcuda)
{
    pthread_t t;
    int r = 2;
    return pthread_create(&t, NULL, in_thread, &r) || pthread_join(t, NULL) ? 2 : r;
}

static int in_child(int (*run)(const char *), const char *libcuda)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        return closed("fork");
    if (child == 0)
        exit(run(libcuda));
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

// Only the child uses CUDA, not the parent.
static int forked(const char *libcuda)
{
    return in_child(soname, libcuda);
}

static int again(const char *libcuda)
{
    execl("/proc/self/exe", "attach", "soname", NULL);
    return closed("exec");
}

static int executed(const char *libcuda)
{
    return in_child(again, libcuda);
}

// All descriptors are closed, as daemons and Python's subprocess do.
static int no_descriptors(const char *libcuda)
{
    int r = soname(libcuda);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    return r ? r : soname(libcuda);
}

static const struct {
    const char *name;
    int (*run)(const char *libcuda);
} ways[] = {
#define WAY(function)       \
    {                       \
#function, function \
    }
    WAY(soname),
    WAY(unversioned),
    WAY(path),
    WAY(deepbind),
    WAY(in_namespace),
    WAY(driver_beside),
    WAY(in_first_namespace),
    WAY(global_scope),
    WAY(closed_and_opened),
    WAY(proc_address),
    WAY(proc_address_12),
    WAY(proc_address_old),
    WAY(proc_address_thread_stream),
    WAY(proc_address_itself),
    WAY(thread),
    WAY(forked),
    WAY(executed),
    WAY(no_descriptors),
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (argc == 2 && strcmp(argv[1], "list") == 0)
            puts(ways[i].name);
        else if (argc >= 2 && strcmp(argv[1], ways[i].name) == 0)
            return ways[i].run(argc > 2 ? argv[2] : "libcuda.so.1");
    }
    return argc == 2 && strcmp(argv[1], "list") == 0 ? 0 : 2;
}
