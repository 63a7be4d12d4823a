// SPDX-License-Identifier: MIT
// Finds every GPU module inside a file: host executables, libraries, objects and archives of them, fatbins,
// cubins, PTX text. The kind of a file is determined by its content, never by its name.
//
// Inputs are not trusted. Damage is reported with its offset; modules around it are still listed.
//
//   struct image *im;
//   struct image_buffer buf = {0};
//   struct str data;
//   if (image_open(path, sink, &im)) ...
//   for (unsigned i = 0; i < image_count(im); i++)
//       if (!image_read(im, i, sink, &buf, &data))
//           image_kernels(im, i, data, sink, visit, ctx);
//   image_buffer_free(&buf);
//   image_free(im);
//
// An open image does not change: threads may read it at once, each with a buffer and a sink of its own.
#ifndef MOAT_IMAGE_H
#define MOAT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/str.h"

enum image_kind { IMAGE_PTX, IMAGE_CUBIN, IMAGE_OTHER };
enum image_compression { IMAGE_PLAIN, IMAGE_LZ4, IMAGE_ZSTD };

// One module. The strings live as long as the image; those that do not apply are empty.
struct image_entry {
    enum image_kind kind;
    enum image_compression compression;
    bool damaged;     // its sizes contradict each other: it is listed, image_read refuses it
    char suffix;      // 'a' or 'f' as in sm_90a and sm_100f, or 0
    uint16_t number;  // the fatbin's number for the kind: 1 PTX, 2 cubin, 8 intermediate code for link time
    uint32_t arch;    // 90 for sm_90; 0 when unknown
    uint32_t version_major, version_minor;  // PTX: the ISA version; cubin: the fatbin's number for its format
    uint32_t fatbin;     // counts the fatbins of the file; IMAGE_NO_FATBIN for a bare module
    uint64_t flags;      // as in the fatbin
    bool part;           // PTX behind machine code that was linked from several texts
    size_t offset;       // in the file: the entry's header, or the bare module itself
    size_t full_size;    // after decompression; plain PTX may end in NULs that are not text
    struct str payload;  // as stored, in the image's memory
    struct str name;     // source file, from the fatbin
    struct str options;  // the compiler's options, where the fatbin has them as text
    struct str section;  // of the host ELF file, at most 255 bytes of its name
    struct str member;   // of the archive, at most 255 bytes of its name
};

#define IMAGE_NO_FATBIN UINT32_MAX

struct image;

// Open an image. They return 0, or a negative code after a report: the file cannot be read, or is of no known
// kind. A host file without GPU code is valid and has no entries. Damage inside a known container is reported
// and counted, and 0 is returned: see image_damage. image_open maps the file: it must not be truncated while
// the image is open (a reader would get SIGBUS). image_open_memory does not copy: data must outlive the
// image. Behind machine code whose PTX is known (ptx_registry.h) stands an entry for each text of it.
int image_open(const char *path, struct diag_sink *sink, struct image **out);
int image_open_memory(const char *name, const void *data, size_t len, struct diag_sink *sink,
                      struct image **out);
void image_free(struct image *im);

// Finds the length of an image of which only the address is known, from its headers: of a fatbin, of an ELF
// file, of PTX up to its NUL. readable returns whether bytes can be read; it must return false for NULL.
// Returns 0; -ENOEXEC: the image is of no known kind, or contradicts itself; -EFAULT: it cannot be read to
// its end. Nothing is reported.
typedef bool image_readable(const void *p, size_t n);
int image_measure(const void *data, image_readable *readable, size_t *len);

const char *image_name(const struct image *im);
unsigned image_count(const struct image *im);
const struct image_entry *image_entry(const struct image *im, unsigned i);  // i < image_count(im)

// Returns how many damaged places were reported when the image was opened. 0: the list is complete.
unsigned image_damage(const struct image *im);

// Memory that image_read decompresses into, reused from call to call. It starts as {0}.
struct image_buffer {
    char *bytes;
    size_t cap;
    void *zstd;
};
void image_buffer_free(struct image_buffer *buf);

// Reads a module. *data points into the image if the module is stored plain, else into buf, where it stays
// until buf is used again. PTX ends before its first NUL, as it does for the driver. Returns 0, or after a
// report: -ENOMEM, -EINVAL for damaged data, -ENOTSUP for other kinds (their format is not documented).
int image_read(const struct image *im, unsigned i, struct diag_sink *sink, struct image_buffer *buf,
               struct str *data);

// Calls visit for each kernel of a module, given the data that image_read returned for it. PTX is searched
// for `.entry` with a body, not parsed. Device functions are not kernels; kinds other than PTX and cubin have
// none. Names lie inside data and are unique in a valid module. visit returns 0 to continue; any other value
// ends the walk and is returned. Returns 0, that value, or -EINVAL after a report: the cubin is damaged.
typedef int image_visit(void *ctx, struct str kernel);
int image_kernels(const struct image *im, unsigned i, struct str data, struct diag_sink *sink,
                  image_visit *visit, void *ctx);

#endif
