// SPDX-License-Identifier: MIT
// Objects with handles of the kind HANDLE_IMAGE: arrays, mipmapped arrays, and references of modules to
// textures and surfaces. Arrays lie in internal memory, row by row and slice by slice; the application does
// not know their addresses.
#ifndef MOAT_CPU_ARRAY_H
#define MOAT_CPU_ARRAY_H

#include "cpu/cpu.h"
#include "exec/texture.h"

enum array_kind { ARRAY_PLAIN, ARRAY_LEVEL, ARRAY_MIPMAP, ARRAY_TEXTURE_REF, ARRAY_SURFACE_REF };

struct array_head {
    _Alignas(16) enum array_kind kind;
    struct CUctx_st *ctx;
    uint64_t reference;       // of a module's reference: address of its variable
    uint64_t handle;          // of a reference: the object bound to it
    struct array_head *next;  // in the list of all, under array_book.c's lock
};

struct CUarray_st {
    struct array_head head;  // ARRAY_PLAIN, or ARRAY_LEVEL: part of a mipmapped array, which frees it
    CUDA_ARRAY3D_DESCRIPTOR desc;
    uint8_t shape, type;  // enum texture_shape, enum texture_type
    unsigned element;     // bytes
    struct texture_level level;
    uint64_t size;
};

struct CUmipmappedArray_st {
    struct array_head head;
    unsigned nlevels;
    struct CUarray_st levels[TEXTURE_LEVELS];
};

// Stores the type of an array's channel and the size of an element. Returns false if the format is not
// supported.
bool array_type(CUarray_format format, unsigned channels, uint8_t *type, unsigned *element);

// Checks a description and fills in everything but the memory.
CUresult array_describe(struct CUarray_st *a, const CUDA_ARRAY3D_DESCRIPTOR *d);
CUresult array_memory_alloc(struct CUarray_st *a);  // allocates the memory
void array_memory_free(struct CUarray_st *a);

bool array_is(const void *handle, enum array_kind kind);
struct CUarray_st *array_get(CUarray handle);  // plain or a level; NULL: no array
CUresult array_register(struct array_head *h, enum array_kind kind, struct CUctx_st *ctx);
// Waits for all work that may use an array, before it is destroyed. After an error (such as a capture that
// forbids waiting) it must not be destroyed.
CUresult array_wait(const struct array_head *h);
// Unregisters an object. Returns true for exactly one of several calls; that caller frees what the object
// holds.
bool array_unregister(struct array_head *h);
// Returns the reference of a module's variable; NULL if there is none yet.
struct array_head *array_reference(enum array_kind kind, uint64_t address);
void array_reference_free(uint64_t address);              // called when its module is unloaded
struct array_head *array_of(const struct CUctx_st *ctx);  // the newest of a context; NULL: none
void array_context_free(struct CUctx_st *ctx);            // frees what an ending context still holds

// Textures and surfaces (texture_object.c, surface_object.c). Make the texture of a description; view may be
// NULL.
CUresult texture_object_describe(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *desc,
                                 const CUDA_RESOURCE_VIEW_DESC *view, struct texture *out);
CUresult surface_object_describe(const CUDA_RESOURCE_DESC *resource, struct texture *out);

// A texture or surface object and the descriptions it was made from.
struct texture_object {
    uint64_t handle;
    bool surface;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC desc;
    CUDA_RESOURCE_VIEW_DESC view;
    bool has_view;
    struct CUctx_st *ctx;
    struct texture_object *next;
};
CUresult texture_object_add(const struct texture_object *o, const struct texture *t, uint64_t *out);
CUresult texture_object_find(uint64_t handle, bool surface, struct texture_object *out);
CUresult texture_object_resource(uint64_t handle, bool surface, CUDA_RESOURCE_DESC *out);
CUresult texture_object_remove(uint64_t handle, bool surface);
void texture_object_context_free(struct CUctx_st *ctx);

#endif
