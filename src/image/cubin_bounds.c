// SPDX-License-Identifier: MIT
// A cubin has a section .nv.info.NAME for each kernel: a list of attributes, of which two bound its blocks.
// Some functions have one, too; only kernels have a section .nv.constant0.NAME, for their parameters.
// It is read without libelf, which the guard must not need.
#include "image/cubin_bounds.h"

#include <elf.h>
#include <stdint.h>

enum {
    SIZED = 4,  // format of an attribute: a length in its last two bytes, then so many bytes
    MAX_THREADS = 0x05,
    REQUIRED_THREADS = 0x10,
    NO_BOUND = 0,
};

static const char attributes[] = ".nv.info.", parameters_of[] = ".nv.constant0.";

static bool inside(struct str file, uint64_t at, uint64_t len)
{
    return at <= file.len && len <= file.len - at;
}

// Returns the most threads of a block, NO_BOUND if no attribute bounds it.
static uint64_t bound_of_attributes(struct str info)
{
    while (info.len >= 4) {
        const unsigned char *a = (const unsigned char *)info.ptr;
        size_t size = 4 + (a[0] == SIZED ? (size_t)(a[2] | a[3] << 8) : 0);
        if (size > info.len)
            break;
        if (a[0] == SIZED && (a[1] == MAX_THREADS || a[1] == REQUIRED_THREADS) && size == 16) {
            uint32_t n[3];
            memcpy(n, a + 4, sizeof n);
            return (uint64_t)n[0] * n[1] * n[2];
        }
        info = str_skip(info, size);
    }
    return NO_BOUND;
}

static size_t find(struct str text, size_t at, const char *what, size_t len)
{
    const char *p = at < text.len ? memmem(text.ptr + at, text.len - at, what, len) : NULL;
    return p ? (size_t)(p - text.ptr) : text.len;
}

// Returns the text between the parameters of a kernel and its body, empty if the PTX does not have the
// kernel.
static struct str directives_of(struct str ptx, struct str kernel)
{
    static const char entry[] = ".entry ";
    size_t word = sizeof entry - 1;
    for (size_t at = 0; (at = find(ptx, at, kernel.ptr, kernel.len)) < ptx.len; at += kernel.len) {
        size_t end = at + kernel.len;
        if (at < word || memcmp(ptx.ptr + at - word, entry, word) != 0 || end == ptx.len ||
            (ptx.ptr[end] != '(' && ptx.ptr[end] != '\n'))
            continue;
        size_t parameters = find(ptx, end, ")", 1), body = find(ptx, parameters, "{", 1);
        return (struct str){ptx.ptr + parameters, body - parameters};
    }
    return (struct str){"", 0};
}

// Returns the bound in ".maxntid 128, 1, 1", in which the second and third number may be missing.
static uint64_t bound_of_directive(struct str text, const char *name)
{
    size_t at = find(text, 0, name, strlen(name));
    if (at == text.len)
        return NO_BOUND;
    uint64_t product = 1, n = 0;
    bool digits = false;
    for (at += strlen(name); at < text.len && strchr("0123456789, \t", text.ptr[at]); at++) {
        char c = text.ptr[at];
        if (c >= '0' && c <= '9') {
            n = (digits ? n * 10 : 0) + (uint64_t)(c - '0');
            n = n < UINT32_MAX ? n : UINT32_MAX;
            digits = true;
        } else if (digits) {
            product = product * n < UINT32_MAX ? product * n : UINT32_MAX;
            digits = false;
        }
    }
    return digits ? product * n : product;
}

static uint64_t bound_of_directives(struct str text)
{
    uint64_t bound = bound_of_directive(text, ".reqntid");
    return bound ? bound : bound_of_directive(text, ".maxntid");
}

// Reads the header and finds the sections' names. Returns false if this is no such file.
static bool read_header(struct str cubin, Elf64_Ehdr *e, Elf64_Shdr *names)
{
    if (cubin.len < sizeof *e)
        return false;
    memcpy(e, cubin.ptr, sizeof *e);
    uint64_t table = (uint64_t)e->e_shnum * sizeof *names;
    if (memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_ident[EI_CLASS] != ELFCLASS64 ||
        e->e_shentsize != sizeof *names || e->e_shstrndx >= e->e_shnum || !inside(cubin, e->e_shoff, table))
        return false;
    memcpy(names, cubin.ptr + e->e_shoff + e->e_shstrndx * sizeof *names, sizeof *names);
    return inside(cubin, names->sh_offset, names->sh_size);
}

// Returns what follows a prefix in the name of a section, empty if it begins otherwise.
static struct str behind(struct str cubin, const Elf64_Shdr *names, uint32_t name, const char *prefix)
{
    if (name >= names->sh_size)
        return (struct str){"", 0};
    const char *text = cubin.ptr + names->sh_offset + name;
    struct str s = {text, strnlen(text, names->sh_size - name)}, first = str_from(prefix);
    return str_starts(s, first) ? str_skip(s, first.len) : (struct str){"", 0};
}

// Returns the first kernel, by its sections of that prefix, for which `is` returns true. info: the section.
static struct str find_kernel(struct str cubin, struct str ptx, const char *prefix,
                              bool (*is)(struct str directives, struct str info))
{
    Elf64_Ehdr e;
    Elf64_Shdr names, s;
    if (!read_header(cubin, &e, &names))
        return (struct str){"", 0};
    for (unsigned i = 0; i < e.e_shnum; i++) {
        memcpy(&s, cubin.ptr + e.e_shoff + i * sizeof s, sizeof s);
        struct str kernel = behind(cubin, &names, s.sh_name, prefix);
        if (kernel.len && inside(cubin, s.sh_offset, s.sh_size) &&
            is(directives_of(ptx, kernel), (struct str){cubin.ptr + s.sh_offset, s.sh_size}))
            return kernel;
    }
    return (struct str){"", 0};
}

static bool has_other_bound(struct str directives, struct str info)
{
    return directives.len && bound_of_directives(directives) != bound_of_attributes(info);
}

static bool is_missing(struct str directives, struct str info)
{
    return !directives.len;
}

struct str cubin_bounds_differ(struct str cubin, struct str ptx)
{
    return find_kernel(cubin, ptx, attributes, has_other_bound);
}

struct str cubin_bounds_missing(struct str cubin, struct str ptx)
{
    return find_kernel(cubin, ptx, parameters_of, is_missing);
}
