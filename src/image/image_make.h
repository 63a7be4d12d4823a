// SPDX-License-Identifier: MIT
// For tests: makes fatbins, ELF files and archives in memory, and opens them.
#ifndef MOAT_IMAGE_MAKE_H
#define MOAT_IMAGE_MAKE_H

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <lz4.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>
#include <cmocka.h>

#include "base/mem.h"
#include "image/image.h"

#define MAKE_PTX ".version 8.0\n.target sm_90\n.visible .entry one(.param .u64 a)\n{ ret; }\n"

struct make {
    char *bytes;
    size_t len;
};

// Appends n bytes. The memory has exactly the new size each time, so that a sanitizer sees an access to the
// byte after it.
static inline void make_raw(struct make *m, const void *from, size_t n)
{
    m->bytes = realloc(m->bytes, m->len + n + !(m->len + n));
    assert_non_null(m->bytes);
    if (from)
        memcpy(m->bytes + m->len, from, n);
    else
        memset(m->bytes + m->len, 0, n);
    m->len += n;
}

static inline void make_pad(struct make *m, size_t multiple)
{
    make_raw(m, NULL, (multiple - m->len % multiple) % multiple);
}

static inline void make_set(struct make *m, size_t at, uint64_t value, size_t size)
{
    assert_true(at + size <= m->len);
    value = htole64(value);
    memcpy(m->bytes + at, &value, size);
}

static inline void make_free(struct make *m)
{
    free(m->bytes);
    *m = (struct make){0};
}

// Fields of a fatbin's entry, by offset.
enum {
    MAKE_HEADER_SIZE = 4,
    MAKE_PAYLOAD_SIZE = 8,
    MAKE_COMPRESSED_SIZE = 16,
    MAKE_OPTIONS = 20,
    MAKE_NAME = 32,
    MAKE_NAME_LEN = 36,
    MAKE_FLAGS = 40,
    MAKE_FULL_SIZE = 56,
};

struct make_entry {
    uint16_t kind;
    enum image_compression compression;
    uint32_t arch;
    uint64_t flags;
    const char *name, *options;
    size_t header_size;  // 0: as large as needed
    struct str data;
};

static inline void make_header_strings(struct make *header, const struct make_entry *e)
{
    if (e->name) {
        make_set(header, MAKE_NAME, header->len, 4);
        make_set(header, MAKE_NAME_LEN, strlen(e->name), 4);
        make_raw(header, e->name, strlen(e->name));
        make_pad(header, 8);
    }
    if (e->options) {
        make_set(header, MAKE_OPTIONS, header->len, 4);
        make_raw(header, NULL, 8);
        make_set(header, header->len - 8, header->len, 4);
        make_set(header, header->len - 4, strlen(e->options), 4);
        make_raw(header, e->options, strlen(e->options));
        make_pad(header, 8);
    }
}

static inline struct str make_compressed(const struct make_entry *e)
{
    if (e->compression == IMAGE_PLAIN)
        return e->data;
    size_t bound = ZSTD_compressBound(e->data.len) + (size_t)LZ4_compressBound((int)e->data.len);
    char *to = malloc(bound);
    assert_non_null(to);
    size_t n = e->compression == IMAGE_ZSTD
                   ? ZSTD_compress(to, bound, e->data.ptr, e->data.len, 3)
                   : (size_t)LZ4_compress_default(e->data.ptr, to, (int)e->data.len, (int)bound);
    assert_true(n > 0 && n <= bound);
    return (struct str){to, n};
}

// Appends an entry and returns its offset.
static inline size_t make_entry(struct make *m, struct make_entry e)
{
    struct str stored = make_compressed(&e);
    bool plain = e.compression == IMAGE_PLAIN;
    struct make header = {0};
    make_raw(&header, NULL, 64);
    make_header_strings(&header, &e);
    if (e.header_size > header.len)
        make_raw(&header, NULL, e.header_size - header.len);
    e.flags |= e.compression == IMAGE_ZSTD ? 0x8000 : e.compression == IMAGE_LZ4 ? 0x2000 : 0;
    make_set(&header, 0, e.kind, 2);
    make_set(&header, MAKE_HEADER_SIZE, header.len, 4);
    make_set(&header, MAKE_PAYLOAD_SIZE, (stored.len + 7) / 8 * 8, 8);
    make_set(&header, MAKE_COMPRESSED_SIZE, plain ? 0 : stored.len, 4);
    make_set(&header, 24, 3, 2);
    make_set(&header, 26, 8, 2);
    make_set(&header, 28, e.arch, 4);
    make_set(&header, MAKE_FLAGS, e.flags, 8);
    make_set(&header, MAKE_FULL_SIZE, plain ? 0 : e.data.len, 8);
    size_t at = m->len;
    make_raw(m, header.bytes, header.len);
    make_raw(m, stored.ptr, stored.len);
    make_raw(m, NULL, (8 - stored.len % 8) % 8);
    make_free(&header);
    if (!plain)
        free((void *)stored.ptr);
    return at;
}

// Begins a fatbin and returns its offset; entries follow, then make_fatbin_end.
static inline size_t make_fatbin(struct make *m)
{
    size_t at = m->len;
    make_raw(m, NULL, 16);
    make_set(m, at, 0xBA55ED50, 4);
    make_set(m, at + 4, 1, 2);
    make_set(m, at + 6, 16, 2);
    return at;
}

static inline void make_fatbin_end(struct make *m, size_t at)
{
    make_set(m, at + 8, m->len - at - 16, 8);
}

// Makes a fatbin with one PTX module.
static inline void make_one(struct make *m, enum image_compression compression)
{
    size_t at = make_fatbin(m);
    make_entry(m,
               (struct make_entry){.kind = 1, .compression = compression, .arch = 90, .data = STR(MAKE_PTX)});
    make_fatbin_end(m, at);
}

struct make_section {
    const char *name;
    uint32_t type, link;
    size_t skew;  // it begins so many bytes after a multiple of 8
    struct str data;
};

enum { MAKE_SECTIONS = 8 };

// Makes an ELF file of sections 1 to n, and the names as section n + 1. Returns the offset of the section
// table.
static inline size_t make_elf(struct make *m, Elf64_Ehdr ehdr, const struct make_section *sections, size_t n)
{
    Elf64_Shdr table[MAKE_SECTIONS + 2] = {0};
    struct make names = {0};
    size_t start = m->len;
    assert_true(n <= MAKE_SECTIONS);
    make_raw(m, NULL, sizeof ehdr);
    make_raw(&names, "", 1);
    for (size_t i = 1; i <= n + 1; i++) {
        const struct make_section strings = {".shstrtab", SHT_STRTAB, 0, 0, {0}};
        const struct make_section *s = i <= n ? &sections[i - 1] : &strings;
        table[i].sh_name = (uint32_t)names.len;
        make_raw(&names, s->name, strlen(s->name) + 1);
        struct str data = i <= n ? s->data : (struct str){names.bytes, names.len};
        make_raw(m, NULL, (8 - (m->len - start) % 8) % 8 + s->skew);
        table[i].sh_type = s->type;
        table[i].sh_link = s->link;
        table[i].sh_offset = m->len - start;
        table[i].sh_size = data.len;
        table[i].sh_entsize = s->type == SHT_SYMTAB ? sizeof(Elf64_Sym) : 0;
        make_raw(m, data.ptr, data.len);
    }
    make_raw(m, NULL, (8 - (m->len - start) % 8) % 8);
    size_t at = m->len;
    memcpy(ehdr.e_ident, ELFMAG, SELFMAG);
    ehdr.e_ident[EI_CLASS] = ELFCLASS64;
    ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
    ehdr.e_ident[EI_VERSION] = EV_CURRENT;
    ehdr.e_version = EV_CURRENT;
    ehdr.e_ehsize = sizeof ehdr;
    ehdr.e_shentsize = sizeof table[0];
    ehdr.e_shoff = at - start;
    ehdr.e_shnum = (uint16_t)(n + 2);
    ehdr.e_shstrndx = (uint16_t)(n + 1);
    memcpy(m->bytes + start, &ehdr, sizeof ehdr);
    make_raw(m, table, (n + 2) * sizeof table[0]);
    make_free(&names);
    return at;
}

static inline void make_member(struct make *m, const char *name, struct str data)
{
    char header[61];
    if (!m->len)
        make_raw(m, "!<arch>\n", 8);
    snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0, 0, 0644u, data.len);
    make_raw(m, header, 60);
    make_raw(m, data.ptr, data.len);
    if (data.len % 2)
        make_raw(m, "\n", 1);
}

// A sink that keeps the last message.
struct make_sink {
    struct diag_sink sink;
    size_t offset;
    char message[240];
};

static inline void make_keep(struct diag_sink *sink, const struct diag *d)
{
    struct make_sink *s = (struct make_sink *)sink;
    s->offset = d->offset;
    memcpy(s->message, d->message, sizeof s->message);
}

static inline struct make_sink make_sink(void)
{
    return (struct make_sink){.sink = {.emit = make_keep}};
}

// Opens an image, which must succeed with this many entries and damaged places.
static inline struct image *make_open(const struct make *m, unsigned entries, unsigned damage)
{
    struct make_sink s = make_sink();
    struct image *im;
    assert_int_equal(image_open_memory("made", m->bytes, m->len, &s.sink, &im), 0);
    assert_int_equal(image_count(im), entries);
    assert_int_equal(image_damage(im), damage);
    assert_int_equal(s.sink.errors, damage);
    return im;
}

static inline void make_expect_text(const struct image *im, unsigned i, const char *text)
{
    struct make_sink s = make_sink();
    struct image_buffer buf = {0};
    struct str data;
    assert_int_equal(image_read(im, i, &s.sink, &buf, &data), 0);
    assert_int_equal(s.sink.errors, 0);
    assert_true(str_eq(data, str_from(text)));
    image_buffer_free(&buf);
}

// Names joined by spaces, to compare.
struct make_names {
    char text[256];
};

static inline int make_name(void *ctx, struct str name)
{
    struct make_names *n = ctx;
    size_t len = strlen(n->text);
    snprintf(n->text + len, sizeof n->text - len, "%s" STR_FMT, len ? " " : "", STR_ARG(name));
    return 0;
}

// Does everything with an image that can be done, whatever it is.
static inline void make_exercise(const char *bytes, size_t len)
{
    struct make_sink s = make_sink();
    struct image_buffer buf = {0};
    struct make_names names = {0};
    struct image *im;
    struct str data;
    int err = image_open_memory("made", bytes, len, &s.sink, &im);
    assert_true(err ? !im && s.sink.errors > 0 : im && image_damage(im) == s.sink.errors);
    for (unsigned i = 0; im && i < image_count(im); i++)
        if (!image_read(im, i, &s.sink, &buf, &data))
            image_kernels(im, i, data, &s.sink, make_name, &names);
    image_buffer_free(&buf);
    image_free(im);
}

#endif
