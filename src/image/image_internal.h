// SPDX-License-Identifier: MIT
// Declarations that the files of this module share.
//
//   base[0 .. len) is the whole input; every offset below counts from base
//   0 <= place.at <= place.end <= len
#ifndef MOAT_IMAGE_INTERNAL_H
#define MOAT_IMAGE_INTERNAL_H

#include "base/arena.h"
#include "base/vec.h"
#include "image/image.h"

struct image {
    const char *name;
    const char *base;
    size_t len;
    bool mapped;  // base must be unmapped
    struct arena arena;
    VEC(struct image_entry) entries;
    unsigned damage, fatbins;
    struct diag_sink *sink;  // while opening; NULL afterwards
};

// A part of the input, and the archive member that it belongs to.
struct image_place {
    size_t at, end;
    struct str member;
};

// image.c
int image_add(struct image *im, const struct image_entry *e);
void image_damaged(struct image *im, size_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void image_report(const struct image *im, struct diag_sink *sink, size_t offset, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int image_detect(struct image *im, const struct image_place *p);  // -ENOEXEC: unknown, not reported

// fatbin.c
enum { FATBIN_STEP = 8 };  // fatbins begin at multiples of it from place.at
bool fatbin_is_header(struct str bytes);
int fatbin_measure(const void *data, image_readable *readable, size_t *len);  // as image_measure
int fatbin_walk(struct image *im, const struct image_place *p);    // for places that hold only fatbins
int fatbin_search(struct image *im, const struct image_place *p);  // for places that hold any data

// elf_image.c
int elf_image_walk(struct image *im, const struct image_place *p);
int elf_image_archive(struct image *im);
// Calls visit for every kernel. Returns 0, what visit returned, or -EINVAL with *why set.
int elf_image_kernels(struct str cubin, image_visit *visit, void *ctx, const char **why);

// ptx_text.c
bool ptx_text_is(struct str text);
void ptx_text_header(struct str text, struct image_entry *e);  // version and architecture
int ptx_text_kernels(struct str text, image_visit *visit, void *ctx);

// unpack.c
bool unpack_plausible(enum image_compression how, size_t stored, uint64_t full);

#endif
