// SPDX-License-Identifier: MIT
// A program that compiles its kernel with NVRTC, links it with nvJitLink, and passes machine code to the
// driver: jit_compile WAY [bad]. The WAY link-file:PATH links the file at PATH, which has the function of its
// second part, as a fatbin, an object or machine code by the end of its name. With LINKED the program is
// linked with both libraries; otherwise it opens them. `bad` launches the kernel for one element too many.
// Nothing of NVIDIA's is needed to build it.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_CUBIN = 1, INPUT_PTX = 2, INPUT_LTOIR = 3, INPUT_FATBIN = 4, INPUT_OBJECT = 5 };
enum { MOST = 1 << 20, ELEMENTS = 1000 };

#define FUNCTIONS(F)                                                                         \
    F(nvrtc, nvrtcCreateProgram, (void **, const char *, const char *, int, void *, void *)) \
    F(nvrtc, nvrtcCompileProgram, (void *, int, const char **))                              \
    F(nvrtc, nvrtcGetPTXSize, (void *, size_t *))                                            \
    F(nvrtc, nvrtcGetPTX, (void *, char *))                                                  \
    F(nvrtc, nvrtcGetCUBINSize, (void *, size_t *))                                          \
    F(nvrtc, nvrtcGetCUBIN, (void *, char *))                                                \
    F(nvrtc, nvrtcGetLTOIRSize, (void *, size_t *))                                          \
    F(nvrtc, nvrtcGetLTOIR, (void *, char *))                                                \
    F(nvJitLink, nvJitLinkCreate, (void **, unsigned, const char **))                        \
    F(nvJitLink, nvJitLinkAddData, (void *, int, const void *, size_t, const char *))        \
    F(nvJitLink, nvJitLinkAddFile, (void *, int, const char *))                              \
    F(nvJitLink, nvJitLinkComplete, (void *))                                                \
    F(nvJitLink, nvJitLinkGetLinkedCubinSize, (void *, size_t *))                            \
    F(nvJitLink, nvJitLinkGetLinkedCubin, (void *, void *))                                  \
    F(nvJitLink, nvJitLinkDestroy, (void **))

static void *library(const char *name)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
        printf("%s\n", dlerror());
        exit(77);
    }
    return handle;
}

#ifndef NVRTC_NAME
#define NVRTC_NAME "libnvrtc.so.13"
#define NVJITLINK_NAME "libnvJitLink.so.13"
#endif

#ifdef LINKED
// nvJitLink.h calls functions by a name with a version.
#define nvJitLinkCreate __nvJitLinkCreate_13_0
#define nvJitLinkAddData __nvJitLinkAddData_13_0
#define nvJitLinkAddFile __nvJitLinkAddFile_13_0
#define nvJitLinkGetLinkedCubin __nvJitLinkGetLinkedCubin_13_0
#define DECLARE(lib, name, args) int name args;
FUNCTIONS(DECLARE)
static void open_compilers(void)
{
}
#else
#define DECLARE(lib, name, args) static int(*name) args;
FUNCTIONS(DECLARE)
#define FIND(lib, name, args) name = (int(*) args)dlsym(lib, #name);
static void open_compilers(void)
{
    void *nvrtc = library(NVRTC_NAME), *nvJitLink = library(NVJITLINK_NAME);
    FUNCTIONS(FIND)
    if (dlsym(nvrtc, "nvrtcNoSuchFunction") || !dlerror())
        exit(3);
}
#endif

static void need(int result, const char *what)
{
    if (result) {
        printf("%s gives %d\n", what, result);
        exit(2);
    }
}

// --- compiling ---------------------------------------------------------------------------------------------

static const char whole[] = "extern \"C\" __global__ void twice(float *p, int n)\n"
                            "{\n"
                            "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                            "    if (i < n)\n"
                            "        p[i] = 2.0f * i;\n"
                            "}\n";
static const char kernel[] = "__device__ float of(int i);\n"
                             "extern \"C\" __global__ void twice(float *p, int n)\n"
                             "{\n"
                             "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n)\n"
                             "        p[i] = of(i);\n"
                             "}\n";
static const char function[] = "__device__ float of(int i) { return 2.0f * i; }\n";

struct blob {
    char bytes[MOST];
    size_t size;
};

static void compile(struct blob *to, const char *text, int kind, const char *more)
{
    void *program;
    const char *options[] = {"-arch=sm_90", "-lineinfo", more};
    need(nvrtcCreateProgram(&program, text, "twice.cu", 0, NULL, NULL), "nvrtcCreateProgram");
    need(nvrtcCompileProgram(program, more ? 3 : 2, options), "nvrtcCompileProgram");
    if (kind == INPUT_CUBIN) {
        need(nvrtcGetCUBINSize(program, &to->size), "nvrtcGetCUBINSize");
        need(to->size > MOST || nvrtcGetCUBIN(program, to->bytes), "nvrtcGetCUBIN");
    } else if (kind == INPUT_PTX) {
        need(nvrtcGetPTXSize(program, &to->size), "nvrtcGetPTXSize");
        need(to->size > MOST || nvrtcGetPTX(program, to->bytes), "nvrtcGetPTX");
    } else {
        need(nvrtcGetLTOIRSize(program, &to->size), "nvrtcGetLTOIRSize");
        need(to->size > MOST || nvrtcGetLTOIR(program, to->bytes), "nvrtcGetLTOIR");
    }
}

static struct blob parts[2], linked;

static void add_file(void *handle, const char *path)
{
    const char *end = strrchr(path, '.');
    int kind = !end || strcmp(end, ".o") == 0 ? INPUT_OBJECT
               : strcmp(end, ".fatbin") == 0  ? INPUT_FATBIN
                                              : INPUT_CUBIN;
    need(nvJitLinkAddFile(handle, kind, path), "nvJitLinkAddFile");
}

static const void *link_parts(int kind, int count, const char *option, const char *path)
{
    void *handle;
    const char *options[] = {"-arch=sm_90", option};
    need(nvJitLinkCreate(&handle, option ? 2 : 1, options), "nvJitLinkCreate");
    for (int i = 0; i < count; i++) {
        need(nvJitLinkAddData(handle, kind, parts[i].bytes, parts[i].size, "part"), "nvJitLinkAddData");
        memset(parts[i].bytes, 0, sizeof parts[i].bytes);
    }
    if (path)
        add_file(handle, path);
    need(nvJitLinkComplete(handle), "nvJitLinkComplete");
    need(nvJitLinkGetLinkedCubinSize(handle, &linked.size), "nvJitLinkGetLinkedCubinSize");
    need(linked.size > MOST || nvJitLinkGetLinkedCubin(handle, linked.bytes), "nvJitLinkGetLinkedCubin");
    need(nvJitLinkDestroy(&handle), "nvJitLinkDestroy");
    return linked.bytes;
}

static const void *make(const char *way)
{
    if (strcmp(way, "nvrtc") == 0) {
        compile(&parts[0], whole, INPUT_CUBIN, NULL);
        return parts[0].bytes;
    }
    if (strcmp(way, "link-ptx") == 0 || strcmp(way, "link-cubin") == 0) {
        int kind = strcmp(way, "link-ptx") == 0 ? INPUT_PTX : INPUT_CUBIN;
        compile(&parts[0], whole, kind, "-rdc=true");
        return link_parts(kind, 1, NULL, NULL);
    }
    if (strncmp(way, "link-file:", 10) == 0) {
        compile(&parts[0], kernel, INPUT_PTX, "-rdc=true");
        return link_parts(INPUT_PTX, 1, NULL, way + 10);
    }
    bool lto = strcmp(way, "link-lto") == 0;
    int kind = lto ? INPUT_LTOIR : strcmp(way, "link-parts-ptx") == 0 ? INPUT_PTX : INPUT_CUBIN;
    compile(&parts[0], kernel, kind, lto ? "-dlto" : "-rdc=true");
    compile(&parts[1], function, kind, lto ? "-dlto" : "-rdc=true");
    return link_parts(kind, 2, lto ? "-lto" : NULL, NULL);
}

// --- running -----------------------------------------------------------------------------------------------

#define DRIVER(F)                                                                                     \
    F(driver, cuInit, (unsigned))                                                                     \
    F(driver, cuDevicePrimaryCtxRetain, (void **, int))                                               \
    F(driver, cuCtxSetCurrent, (void *))                                                              \
    F(driver, cuModuleLoadData, (void **, const void *))                                              \
    F(driver, cuModuleGetFunction, (void **, void *, const char *))                                   \
    F(driver, cuMemAlloc_v2, (unsigned long long *, size_t))                                          \
    F(driver, cuMemcpyDtoH_v2, (void *, unsigned long long, size_t))                                  \
    F(driver, cuLaunchKernel,                                                                         \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, \
       void **))                                                                                      \
    F(driver, cuCtxSynchronize, (void))
#define DECLARE_DRIVER(lib, name, args) static int(*name) args;
DRIVER(DECLARE_DRIVER)

static void open_driver(void)
{
    void *context, *driver = library("libcuda.so.1");
#define FIND_DRIVER(lib, name, args) name = (int(*) args)dlsym(lib, #name);
    DRIVER(FIND_DRIVER)
    need(cuInit(0), "cuInit");
    need(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static void run(const void *code, int n)
{
    static float out[ELEMENTS];
    unsigned long long p;
    void *module, *f, *args[] = {&p, &n};
    need(cuModuleLoadData(&module, code), "cuModuleLoadData");
    need(cuModuleGetFunction(&f, module, "twice"), "cuModuleGetFunction");
    need(cuMemAlloc_v2(&p, sizeof out), "cuMemAlloc");
    need(cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, NULL, args, NULL), "cuLaunchKernel");
    need(cuCtxSynchronize(), "cuCtxSynchronize");
    need(cuMemcpyDtoH_v2(out, p, sizeof out), "cuMemcpyDtoH");
    for (int i = 0; i < ELEMENTS; i++)
        need(out[i] != 2.0f * (float)i, "a wrong element");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    bool early = argc > 2 && strcmp(argv[2], "early") == 0;
    open_compilers();
    if (!early)
        open_driver();
    const void *code = make(argv[1]);
    if (early)
        open_driver();
    run(code, ELEMENTS + (argc > 2 && strcmp(argv[2], "bad") == 0));
    puts("right");
    return 0;
}
