// SPDX-License-Identifier: MIT
// Declarations of what moat needs of NVTX 3's interface for tools. Fields are NVTX's, in its order and with
// its widths; test/guard/compare_nvtx_h.sh compares them with NVTX's own headers where those are installed.
//
// NVTX is header-only: a program contains inline functions with slots for a tool's. At the first use they
// open the library that NVTX_INJECTION64_PATH names and call its InitializeInjectionNvtx2, and
// InitializeInjectionNvtxExtension for each extension that is used. These fill the slots that they handle;
// the others become no-ops.
#ifndef MOAT_GUARD_NVTX_API_H
#define MOAT_GUARD_NVTX_API_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum {
    NVTX_API_TABLE_CALLBACKS = 1,   // argument of the getter that InitializeInjectionNvtx2 gets
    NVTX_API_MODULE_CORE2 = 5,      // the module whose functions are replaced
    NVTX_API_REGISTER_STRING = 10,  // index of nvtxDomainRegisterStringA

    NVTX_API_EXTENSION_MEM = 1,
    NVTX_API_COMPATIBLE_MEM = 0x0102,

    NVTX_API_MEM_VIRTUAL_ADDRESS = 1,
    NVTX_API_MEM_SUB_ALLOCATOR = 1,
    NVTX_API_MEM_REF_POINTER = 1,
    NVTX_API_MEM_REF_HANDLE = 2,

    NVTX_API_TEXT_ASCII = 1,
    NVTX_API_TEXT_UNICODE = 2,
    NVTX_API_TEXT_REGISTERED = 3,
};

// Slots of the memory extension.
enum nvtx_api_mem_slot {
    NVTX_API_HEAP_REGISTER,
    NVTX_API_HEAP_UNREGISTER,
    NVTX_API_HEAP_RESET,
    NVTX_API_REGIONS_REGISTER,
    NVTX_API_REGIONS_RESIZE,
    NVTX_API_REGIONS_UNREGISTER,
    NVTX_API_REGIONS_NAME,
};

typedef void nvtx_api_function(void);

struct nvtx_api_callbacks {
    size_t size;
    int (*functions)(int module, nvtx_api_function ****table, unsigned *count);
};

struct nvtx_api_segment {
    size_t id;
    size_t count;
    intptr_t *slots;
};

struct nvtx_api_module {
    uint16_t version, size, id, compatible;
    size_t nsegments;
    struct nvtx_api_segment *segments;
    intptr_t (*get_function)(uint32_t id);
    const void *info;
};

union nvtx_api_text {
    const char *ascii;
    const wchar_t *unicode;
    const void *registered;
};

struct nvtx_api_range {
    size_t size;
    const void *pointer;
};

struct nvtx_api_heap {
    uint16_t compatible, size;
    uint32_t reserved;
    uint32_t usage, type;
    size_t range_size;
    const void *range;
    uint32_t category, text_type;
    union nvtx_api_text text;
};

struct nvtx_api_register {
    uint16_t compatible, size;
    uint32_t type;
    void *heap;
    size_t count, stride;
    const void *ranges;
    void **handles;  // may be NULL
};

struct nvtx_api_resize {
    uint16_t compatible, size;
    uint32_t type;
    size_t count, stride;
    const void *ranges;
};

struct nvtx_api_unregister {
    uint16_t compatible, size;
    uint32_t ref_type;
    size_t count, stride;
    const void *refs;  // a pointer or a handle each
};

struct nvtx_api_name {
    uint32_t ref_type, text_type;
    const void *region;
    union nvtx_api_text text;
    uint32_t category, reserved;
};

struct nvtx_api_names {
    uint16_t compatible, size;
    uint32_t reserved;
    size_t count, stride;
    const void *names;
    size_t reserved1;
};

// The heap that is the whole address space, and the handle for a heap that no tool has registered.
#define NVTX_API_WHOLE_PROCESS ((void *)0)
#define NVTX_API_NO_HEAP ((void *)(intptr_t)-1)

#endif
