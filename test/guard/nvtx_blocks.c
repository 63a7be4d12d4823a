// SPDX-License-Identifier: MIT
// A pool allocator that announces its pieces through NVTX's memory API: `nvtx_blocks bad NAME`, `nvtx_blocks
// good NAME`, `nvtx_blocks list`. With REAL_NVTX it is built on NVTX's own headers; without, on a replacement
// that follows the protocol between NVTX and a tool (guard/nvtx_api.h).
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL = 1 << 20, PIECE = 1000, STEP = 1024 };

typedef void *handle;

#ifdef REAL_NVTX
#include <nvtx3/nvToolsExtMem.h>

static handle open_heap(void *base, size_t size, uint32_t usage, const char *name)
{
    nvtxMemVirtualRangeDesc_t range = {size, base};
    nvtxMemHeapDesc_t desc;
    memset(&desc, 0, sizeof desc);
    desc.extCompatID = NVTX_EXT_COMPATID_MEM;
    desc.structSize = sizeof desc;
    desc.usage = usage;
    desc.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    desc.typeSpecificDescSize = sizeof range;
    desc.typeSpecificDesc = &range;
    desc.messageType = NVTX_MESSAGE_TYPE_ASCII;
    desc.message.ascii = name;
    return nvtxMemHeapRegister(NULL, &desc);
}

static void close_heap(handle heap)
{
    nvtxMemHeapUnregister(NULL, (nvtxMemHeapHandle_t)heap);
}

static void reset_heap(handle heap)
{
    nvtxMemHeapReset(NULL, (nvtxMemHeapHandle_t)heap);
}

__attribute__((noinline)) static void take(handle heap, void *const *bases, size_t size, size_t n,
                                           handle *regions)
{
    nvtxMemVirtualRangeDesc_t ranges[8];
    for (size_t i = 0; i < n; i++)
        ranges[i] = (nvtxMemVirtualRangeDesc_t){size, bases[i]};
    nvtxMemRegionsRegisterBatch_t batch;
    memset(&batch, 0, sizeof batch);
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    batch.heap = (nvtxMemHeapHandle_t)heap;
    batch.regionCount = n;
    batch.regionDescElementSize = sizeof *ranges;
    batch.regionDescElements = ranges;
    batch.regionHandleElementsOut = (nvtxMemRegionHandle_t *)regions;
    nvtxMemRegionsRegister(NULL, &batch);
}

static void resize(void *base, size_t size)
{
    nvtxMemVirtualRangeDesc_t range = {size, base};
    nvtxMemRegionsResizeBatch_t batch;
    memset(&batch, 0, sizeof batch);
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    batch.regionDescCount = 1;
    batch.regionDescElementSize = sizeof range;
    batch.regionDescElements = &range;
    nvtxMemRegionsResize(NULL, &batch);
}

static void give_back(handle region, int by_handle)
{
    nvtxMemRegionRef_t ref;
    nvtxMemRegionsUnregisterBatch_t batch;
    memset(&batch, 0, sizeof batch);
    if (by_handle)
        ref.handle = (nvtxMemRegionHandle_t)region;
    else
        ref.pointer = region;
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.refType = by_handle ? NVTX_MEM_REGION_REF_TYPE_HANDLE : NVTX_MEM_REGION_REF_TYPE_POINTER;
    batch.refCount = 1;
    batch.refElementSize = sizeof ref;
    batch.refElements = &ref;
    nvtxMemRegionsUnregister(NULL, &batch);
}

static void name_it(handle region, const char *name, int registered)
{
    nvtxMemRegionNameDesc_t one;
    nvtxMemRegionsNameBatch_t batch;
    memset(&one, 0, sizeof one);
    memset(&batch, 0, sizeof batch);
    one.regionRefType = NVTX_MEM_REGION_REF_TYPE_POINTER;
    one.nameType = registered ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_ASCII;
    one.region.pointer = region;
    one.name.ascii = name;
    if (registered)
        one.name.registered = nvtxDomainRegisterStringA(NULL, name);
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.regionCount = 1;
    batch.regionElementSize = sizeof one;
    batch.regionElements = &one;
    nvtxMemRegionsName(NULL, &batch);
}

// Any call of another kind, which no tool handles.
static void mark(void)
{
    nvtxMarkA("nobody listens");
}

static int decline(void)
{
    return 1;
}
#else
#include "guard/nvtx_api.h"

static intptr_t slots[63];

// Without a tool a slot stays empty.
#define SLOT(i, result, parameters) ((result(*) parameters)slots[i])

static const void *(*register_string)(void *, const char *);
static nvtx_api_function *core_slot;

static int core_functions(int module, nvtx_api_function ****table, unsigned *count)
{
    static nvtx_api_function **core[16];
    static nvtx_api_function *others[16];
    for (int i = 0; i < 16; i++)
        core[i] = i == NVTX_API_REGISTER_STRING ? &core_slot : &others[i];
    *table = core;
    *count = 15;
    return module == NVTX_API_MODULE_CORE2;
}

static const void *get_table(uint32_t id)
{
    static const struct nvtx_api_callbacks callbacks = {sizeof callbacks, core_functions};
    return id == NVTX_API_TABLE_CALLBACKS ? &callbacks : NULL;
}

static int extension(void *tool, uint16_t id, uint16_t compatible, size_t count)
{
    struct nvtx_api_segment segment = {1, count, slots};
    struct nvtx_api_module module = {3, sizeof module, id, compatible, 1, &segment, NULL, NULL};
    int (*init)(struct nvtx_api_module *);
    void *symbol = dlsym(tool, "InitializeInjectionNvtxExtension");
    memcpy(&init, &symbol, sizeof symbol);
    return init && init(&module);
}

// As NVTX does it: opens the library that the environment names, and calls its two functions.
static void *open_tool(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*init)(const void *(*)(uint32_t));
    void *symbol = tool ? dlsym(tool, "InitializeInjectionNvtx2") : NULL;
    memcpy(&init, &symbol, sizeof symbol);
    return init && init(get_table) ? tool : NULL;
}

static void need_tool(void)
{
    void *tool = slots[0] ? NULL : open_tool();
    if (tool && !extension(tool, NVTX_API_EXTENSION_MEM, NVTX_API_COMPATIBLE_MEM, 63))
        printf("nvtx_blocks.c: the tool declines\n");
    memcpy(&register_string, &core_slot, sizeof core_slot);
}

// Extensions that the tool cannot know.
static int decline(void)
{
    void *tool = open_tool();
    return tool && !extension(tool, 2, NVTX_API_COMPATIBLE_MEM, 63) &&
           !extension(tool, NVTX_API_EXTENSION_MEM, 0x0103, 63) &&
           !extension(tool, NVTX_API_EXTENSION_MEM, NVTX_API_COMPATIBLE_MEM, 3) && !slots[0];
}

static void mark(void)
{
}

static handle open_heap(void *base, size_t size, uint32_t usage, const char *name)
{
    struct nvtx_api_range range = {size, base};
    struct nvtx_api_heap desc = {
        .compatible = NVTX_API_COMPATIBLE_MEM,
        .size = sizeof desc,
        .usage = usage,
        .type = NVTX_API_MEM_VIRTUAL_ADDRESS,
        .range_size = sizeof range,
        .range = &range,
        .text_type = NVTX_API_TEXT_ASCII,
        .text.ascii = name,
    };
    need_tool();
    return slots[0] ? SLOT(NVTX_API_HEAP_REGISTER, handle, (void *, const void *))(NULL, &desc) : NULL;
}

static void close_heap(handle heap)
{
    if (slots[0])
        SLOT(NVTX_API_HEAP_UNREGISTER, void, (void *, void *))(NULL, heap);
}

static void reset_heap(handle heap)
{
    if (slots[0])
        SLOT(NVTX_API_HEAP_RESET, void, (void *, void *))(NULL, heap);
}

__attribute__((noinline)) static void take(handle heap, void *const *bases, size_t size, size_t n,
                                           handle *regions)
{
    struct nvtx_api_range ranges[8];
    for (size_t i = 0; i < n; i++)
        ranges[i] = (struct nvtx_api_range){size, bases[i]};
    struct nvtx_api_register batch = {
        .compatible = NVTX_API_COMPATIBLE_MEM,
        .size = sizeof batch,
        .type = NVTX_API_MEM_VIRTUAL_ADDRESS,
        .heap = heap,
        .count = n,
        .stride = sizeof *ranges,
        .ranges = ranges,
        .handles = regions,
    };
    need_tool();
    if (slots[0])
        SLOT(NVTX_API_REGIONS_REGISTER, void, (void *, const void *))(NULL, &batch);
}

static void resize(void *base, size_t size)
{
    struct nvtx_api_range range = {size, base};
    struct nvtx_api_resize batch = {
        .compatible = NVTX_API_COMPATIBLE_MEM,
        .size = sizeof batch,
        .type = NVTX_API_MEM_VIRTUAL_ADDRESS,
        .count = 1,
        .stride = sizeof range,
        .ranges = &range,
    };
    if (slots[0])
        SLOT(NVTX_API_REGIONS_RESIZE, void, (void *, const void *))(NULL, &batch);
}

static void give_back(handle region, int by_handle)
{
    struct nvtx_api_unregister batch = {
        .compatible = NVTX_API_COMPATIBLE_MEM,
        .size = sizeof batch,
        .ref_type = by_handle ? NVTX_API_MEM_REF_HANDLE : NVTX_API_MEM_REF_POINTER,
        .count = 1,
        .stride = sizeof region,
        .refs = &region,
    };
    if (slots[0])
        SLOT(NVTX_API_REGIONS_UNREGISTER, void, (void *, const void *))(NULL, &batch);
}

static void name_it(handle region, const char *name, int registered)
{
    struct nvtx_api_name one = {
        .ref_type = NVTX_API_MEM_REF_POINTER,
        .text_type = registered ? NVTX_API_TEXT_REGISTERED : NVTX_API_TEXT_ASCII,
        .region = region,
        .text.ascii = name,
    };
    if (registered && register_string)
        one.text.registered = register_string(NULL, name);
    struct nvtx_api_names batch = {
        .compatible = NVTX_API_COMPATIBLE_MEM,
        .size = sizeof batch,
        .count = 1,
        .stride = sizeof one,
        .names = &one,
    };
    if (slots[0])
        SLOT(NVTX_API_REGIONS_NAME, void, (void *, const void *))(NULL, &batch);
}
#endif

enum { SUB_ALLOCATOR = 1, LAYOUT = 2 };

typedef unsigned long long address;
static int (*alloc_memory)(address *, size_t);
static int (*to_device)(address, const void *, size_t);
static int (*fill)(address, unsigned char, size_t);
static void *pool;
static char host[POOL];

static void *piece(int i)
{
    return (char *)pool + (size_t)i * STEP;
}

static handle take_one(handle heap, int i)
{
    void *base = piece(i);
    handle region = NULL;
    take(heap, &base, PIECE, 1, &region);
    return region;
}

static int upload(void *p, size_t size)
{
    return to_device((address)(size_t)p, host, size);
}

static int region(int bad)
{
    take_one(open_heap(pool, POOL, SUB_ALLOCATOR, "the pool"), 3);
    return upload(piece(3), PIECE + (size_t)bad);
}

static int several(int bad)
{
    void *bases[3] = {piece(0), piece(2), piece(4)};
    take(open_heap(pool, POOL, SUB_ALLOCATOR, "the pool"), bases, PIECE, 3, NULL);
    return upload(piece(4), PIECE + (size_t)bad);
}

static int named(int bad)
{
    take_one(open_heap(pool, POOL, SUB_ALLOCATOR, "the pool"), 1);
    name_it(piece(1), "activations", 0);
    return upload(piece(1), PIECE + (size_t)bad);
}

static int named_by_handle(int bad)
{
    take_one(open_heap(pool, POOL, SUB_ALLOCATOR, "the pool"), 1);
    name_it(piece(1), "gradients", 1);
    return upload(piece(1), PIECE + (size_t)bad);
}

static int resized(int bad)
{
    take_one(open_heap(pool, POOL, SUB_ALLOCATOR, "the pool"), 5);
    resize(piece(5), PIECE + 20);
    return upload(piece(5), PIECE + 20 + (size_t)bad);
}

static int given_back(int bad)
{
    handle heap = open_heap(pool, POOL, SUB_ALLOCATOR, "the pool");
    take_one(heap, 0);
    handle r = take_one(heap, 1);
    give_back(piece(0), 0);
    if (!bad)
        give_back(r, 1);
    return upload(piece(0), PIECE + 1) || upload(piece(1), PIECE + 1);
}

static int reset(int bad)
{
    handle heap = open_heap(pool, POOL / 2, SUB_ALLOCATOR, "the pool");
    take_one(heap, 0);
    take_one(heap, 9);
    if (!bad)
        reset_heap(heap);
    return fill((address)(size_t)piece(9), 0, POOL / 4);
}

static int closed(int bad)
{
    handle heap = open_heap(pool, POOL, SUB_ALLOCATOR, "the pool");
    take_one(heap, 0);
    if (!bad)
        close_heap(heap);
    return fill((address)(size_t)pool, 0, POOL);
}

// Regions of a layout describe what lies where; the memory around them is accessible too.
static int layout(int bad)
{
    take_one(open_heap(pool, POOL, bad ? SUB_ALLOCATOR : LAYOUT, "the pool"), 2);
    return upload(piece(2), PIECE + STEP);
}

// The same for regions of no heap.
static int whole_process(int bad)
{
    take_one(bad ? open_heap(pool, POOL, SUB_ALLOCATOR, "the pool") : NULL, 2);
    mark();
    return upload(piece(2), PIECE + STEP);
}

static int strangers(int bad)
{
    if (!decline())
        return 100;
    return region(bad);
}

static const struct {
    const char *name, *buffer;
    int (*run)(int bad);
} cases[] = {
    {"region", "the pool", region},       {"several", "the pool", several},
    {"named", "activations", named},      {"named_by_handle", "gradients", named_by_handle},
    {"resized", "the pool", resized},     {"given_back", "the pool", given_back},
    {"reset", "the pool", reset},         {"closed", "the pool", closed},
    {"layout", "the pool", layout},       {"whole_process", "the pool", whole_process},
    {"strangers", "the pool", strangers},
};

static int find(void *library, void *function, const char *name)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol == NULL;
}

static int open_driver(void)
{
    int (*init)(unsigned), (*retain)(void **, int), (*use)(void *);
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    address p = 0;
    int missing = !library || find(library, &init, "cuInit") ||
                  find(library, &retain, "cuDevicePrimaryCtxRetain") ||
                  find(library, &use, "cuCtxSetCurrent") || find(library, &alloc_memory, "cuMemAlloc_v2") ||
                  find(library, &to_device, "cuMemcpyHtoD_v2") || find(library, &fill, "cuMemsetD8_v2") ||
                  init(0) || retain(&context, 0) || use(context) || alloc_memory(&p, POOL);
    pool = (void *)(size_t)p;
    return missing;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            printf("%s %s\n", cases[i].name, cases[i].buffer);
        return 0;
    }
    if (argc != 3)
        return 2;
    if (open_driver()) {
        printf("nvtx_blocks.c: no libcuda\n");
        return 77;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, argv[2]) == 0) {
            int bad = strcmp(argv[1], "bad") == 0, r = cases[i].run(bad);
            printf("%s: result %d\n", argv[2], r);
            return bad ? r != 1 : r != 0;
        }
    return 2;
}
