// SPDX-License-Identifier: MIT
// The PTX of an image that a program passes to the driver: from each of its fatbins the best entry for a
// device.
#ifndef MOAT_REWRITE_REWRITE_SOURCE_H
#define MOAT_REWRITE_REWRITE_SOURCE_H

#include <stdbool.h>

#include "image/image.h"

enum { REWRITE_SOURCE_MOST = 256 };  // texts; more are too many to link at every start
enum { REWRITE_SOURCE_CODES = 16 };  // libraries of machine code; others are not linked
#define REWRITE_SOURCE_NONE ((unsigned)-1)

struct rewrite_source {
    struct image *images[REWRITE_SOURCE_MOST];
    struct {
        const struct image *image;
        unsigned entry;
        bool newer;  // than the device: its target must be lowered
        unsigned
            // entry with the machine code that the device would run otherwise; REWRITE_SOURCE_NONE: none
            cubin;
    } texts[REWRITE_SOURCE_MOST];
    // Libraries behind the program's own objects whose PTX is for newer devices only: their machine code.
    struct {
        const struct image *image;
        unsigned entry;
    } code[REWRITE_SOURCE_CODES];
    unsigned nimages, count, ncodes;
    bool listed;  // the fatbins are objects, of which the program's image holds the linked machine code
};

// Return 0; -ENODATA if one of the fatbins has only machine code; -E2BIG; -ENOENT if there is no such file;
// or an error of image.h. rewrite_source_free closes all that was opened, also after a failure. `many`: the
// image may have several fatbins, as an object or library has; otherwise only where the wrapper of nvcc's
// host code lists them, and where machine code is known to have been linked from several texts.
int rewrite_source_memory(struct rewrite_source *s, const void *image, unsigned arch, struct diag_sink *sink);
int rewrite_source_bytes(struct rewrite_source *s, const void *bytes, size_t size, unsigned arch, bool many,
                         struct diag_sink *sink);
int rewrite_source_file(struct rewrite_source *s, const char *path, unsigned arch, bool many,
                        struct diag_sink *sink);
void rewrite_source_free(struct rewrite_source *s);

// Identifies texts, and behind them machine code, as stored: a hash and a length for each of count + ncodes.
// rewrite_source_read returns a text itself; see image_read.
struct rewrite_source_sum {
    uint64_t sum[2], len;
};
void rewrite_source_sums(const struct rewrite_source *s, struct rewrite_source_sum *sums);
int rewrite_source_read(const struct rewrite_source *s, unsigned i, struct diag_sink *sink,
                        struct image_buffer *buffer, struct str *text);

// Reads machine code that the texts are linked with, as rewrite_source_read reads a text.
int rewrite_source_code(const struct rewrite_source *s, unsigned i, struct diag_sink *sink,
                        struct image_buffer *buffer, struct str *code);

// Returns whether a text was made for a GPU on which its kernels are launched as on the device: libraries
// choose the block size by the GPU, and may have kernels for some GPUs only. If it returns false, `why` says
// what differs, of which kernel, truncated to `size`. What cannot be read counts as alike.
bool rewrite_source_alike(const struct rewrite_source *s, unsigned i, struct diag_sink *sink, char *why,
                          size_t size);

// Returns whether the driver runs what the text says if the program's image is loaded as it is: the image is
// the text, or the text is for this very architecture, and with it machine code made from it.
bool rewrite_source_is_native(const struct rewrite_source *s, unsigned i, unsigned arch);
// Returns whether the text is for another GPU: the driver cannot compile it for this one as it is.
bool rewrite_source_is_newer(const struct rewrite_source *s, unsigned i);
// Returns whether the texts are those of several objects, which the program has linked.
bool rewrite_source_is_listed(const struct rewrite_source *s);
void rewrite_source_version(const struct rewrite_source *s, unsigned i, unsigned *major, unsigned *minor);
// Returns a copy of the text, with a NUL; NULL if it cannot be read, or out of memory.
char *rewrite_source_copy(const struct rewrite_source *s, unsigned i, struct diag_sink *sink);

bool rewrite_source_in_fatbin(const struct rewrite_source *s, unsigned i);  // otherwise it is plain PTX
const char *rewrite_source_name(const struct rewrite_source *s, unsigned i, char *name, size_t size);

#endif
