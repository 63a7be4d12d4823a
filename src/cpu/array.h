// SPDX-License-Identifier: MIT
// Arrays, mipmapped arrays, and references of modules to textures and surfaces: what has handles of the kind
// HANDLE_IMAGE. Arrays lie in memory of our own, row by row, slice by slice: no address of theirs is the application's.
#ifndef MOAT_CPU_ARRAY_H
#define MOAT_CPU_ARRAY_H

#include "cpu/cpu.h"
#include "exec/texture.h"

enum array_kind { ARRAY_PLAIN, ARRAY_LEVEL, ARRAY_MIPMAP, ARRAY_TEXTURE_REF, ARRAY_SURFACE_REF };

struct array_head {
    _Alignas(16) enum array_kind kind;
    struct CUctx_st *ctx;
    uint64_t reference;       // of a module's reference: the address of its variable
    uint64_t handle;          // and what is bound to it
    struct array_head *next;  // of all, under array_book.c's lock
};

struct CUarray_st {
    struct array_head head;  // ARRAY_PLAIN, or ARRAY_LEVEL: of a mipmapped one, which frees it
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

// Of an array's format and of a channel: false if we do not have it.
bool array_type(CUarray_format format, unsigned channels, uint8_t *type, unsigned *element);

// Looks at a description and fills in all but the memory.
CUresult array_describe(struct CUarray_st *a, const CUDA_ARRAY3D_DESCRIPTOR *d);
CUresult array_place(struct CUarray_st *a);  // takes the memory
void array_unplace(struct CUarray_st *a);

bool array_is(const void *handle, enum array_kind kind);
struct CUarray_st *array_get(CUarray handle);  // plain or a level; NULL if it is none
CUresult array_register(struct array_head *h, enum array_kind kind, struct CUctx_st *ctx);
// Before it goes: all work that may use it ends. An error: it must stay, or something captures.
CUresult array_wait(const struct array_head *h);
// Takes it out of the books: true once. What it holds is the caller's.
bool array_unregister(struct array_head *h);
// The reference whose handle kernels find at that address; NULL if there is none yet.
struct array_head *array_reference(enum array_kind kind, uint64_t address);
void array_reference_free(uint64_t address);              // its module goes
struct array_head *array_of(const struct CUctx_st *ctx);  // the youngest of a context; NULL if it has none
void array_context_free(struct CUctx_st *ctx);            // what a context that ends still holds

// Textures and surfaces (texture_object.c, surface_object.c). The texture that descriptions make; view may be NULL.
CUresult texture_object_describe(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *desc,
                                 const CUDA_RESOURCE_VIEW_DESC *view, struct texture *out);
CUresult surface_object_describe(const CUDA_RESOURCE_DESC *resource, struct texture *out);

// What an object was made of.
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
