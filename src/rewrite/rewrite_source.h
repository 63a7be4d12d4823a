// SPDX-License-Identifier: MIT
// The PTX of an image that a program gives to the driver: of each of its fatbins the entry that is best for a device.
#ifndef MOAT_REWRITE_REWRITE_SOURCE_H
#define MOAT_REWRITE_REWRITE_SOURCE_H

#include <stdbool.h>

#include "image/image.h"

enum { REWRITE_SOURCE_MOST = 256 };  // texts; more are too many to link anew at every start
#define REWRITE_SOURCE_NONE ((unsigned)-1)

struct rewrite_source {
    struct image *images[REWRITE_SOURCE_MOST];
    struct {
        const struct image *image;
        unsigned entry;
        bool newer;  // than the device: its target must be lowered
        unsigned
            cubin;  // entry with the machine code that the device would run instead; REWRITE_SOURCE_NONE: none
    } texts[REWRITE_SOURCE_MOST];
    unsigned nimages, count;
};

// 0; -ENODATA: there is machine code only in one of its fatbins; -E2BIG; -ENOENT: no such file; or what image.h says. All
// that was opened is closed by rewrite_source_free, also after a failure. `many`: it may have several fatbins, as an
// object or library has; else only where the wrapper of nvcc's host code lists them.
int rewrite_source_memory(struct rewrite_source *s, const void *image, unsigned arch, struct diag_sink *sink);
int rewrite_source_bytes(struct rewrite_source *s, const void *bytes, size_t size, unsigned arch, bool many,
                         struct diag_sink *sink);
int rewrite_source_file(struct rewrite_source *s, const char *path, unsigned arch, bool many,
                        struct diag_sink *sink);
void rewrite_source_free(struct rewrite_source *s);

// What tells texts apart, as stored: a sum and a length for each. A text itself; see image_read.
struct rewrite_source_sum {
    uint64_t sum[2], len;
};
void rewrite_source_sums(const struct rewrite_source *s, struct rewrite_source_sum *sums);
int rewrite_source_read(const struct rewrite_source *s, unsigned i, struct diag_sink *sink,
                        struct image_buffer *buffer, struct str *text);

// Whether a text was made for a GPU on which its kernels are launched as on the device: libraries choose the size of
// blocks by the GPU. False: the kernel in `kernel`, a name cut to its size, is one that is not. What cannot be read counts
// as alike.
bool rewrite_source_alike(const struct rewrite_source *s, unsigned i, struct diag_sink *sink, char *kernel,
                          size_t size);

bool rewrite_source_in_fatbin(const struct rewrite_source *s, unsigned i);  // else it is PTX as such
const char *rewrite_source_name(const struct rewrite_source *s, unsigned i, char *name, size_t size);

#endif
