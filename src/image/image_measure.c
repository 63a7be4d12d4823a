// SPDX-License-Identifier: MIT
// Finds the length of an image in memory of which only the address is known.
#include <elf.h>

#include "image/image_internal.h"

enum { PAGE = 4096 };

static const void *after(const void *p, uint64_t n)
{
    return (const void *)((uintptr_t)p + n);
}

// Extends *end to the end of a part of the file. Returns false on overflow.
static bool reach(uint64_t *end, uint64_t offset, uint64_t size)
{
    uint64_t to;
    if (__builtin_add_overflow(offset, size, &to) || to > SIZE_MAX / 2)
        return false;
    if (to > *end)
        *end = to;
    return true;
}

static int measure_elf(const void *data, image_readable *readable, size_t *len)
{
    Elf64_Ehdr h;
    uint64_t end = sizeof h;

    if (!readable(data, sizeof h))
        return -EFAULT;
    memcpy(&h, data, sizeof h);
    if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB ||
        (h.e_shnum && h.e_shentsize != sizeof(Elf64_Shdr)) ||
        (h.e_phnum && h.e_phentsize != sizeof(Elf64_Phdr)))
        return -ENOEXEC;
    uint64_t sections = (uint64_t)h.e_shnum * sizeof(Elf64_Shdr),
             segments = (uint64_t)h.e_phnum * sizeof(Elf64_Phdr);
    if (!reach(&end, h.e_shoff, sections) || !reach(&end, h.e_phoff, segments))
        return -ENOEXEC;
    if (!readable(after(data, h.e_shoff), sections) || !readable(after(data, h.e_phoff), segments))
        return -EFAULT;
    for (unsigned i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s;
        memcpy(&s, after(data, h.e_shoff + i * sizeof s), sizeof s);
        if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL && !reach(&end, s.sh_offset, s.sh_size))
            return -ENOEXEC;
    }
    for (unsigned i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, after(data, h.e_phoff + i * sizeof p), sizeof p);
        if (!reach(&end, p.p_offset, p.p_filesz))
            return -ENOEXEC;
    }
    *len = (size_t)end;
    return 0;
}

// Measures text up to its NUL. Returns -EFAULT if memory ends before.
static int measure_text(const void *data, image_readable *readable, size_t *len)
{
    for (size_t at = 0;;) {
        size_t step = PAGE - ((uintptr_t)data + at) % PAGE;
        const char *p = after(data, at);
        if (!readable(p, step))
            return -EFAULT;
        size_t n = strnlen(p, step);
        at += n;
        if (n < step) {
            *len = at;
            return 0;
        }
    }
}

int image_measure(const void *data, image_readable *readable, size_t *len)
{
    char start[4];
    struct str bytes = {start, 0};

    if (!readable(data, 1))
        return -EFAULT;
    // Bytes are read one by one up to a NUL: a text may be shorter than the word it is compared with.
    for (const char *p = data; bytes.len < sizeof start && readable(p, 1); p++) {
        start[bytes.len++] = *p;
        if (!*p)
            break;
    }
    if (str_starts(bytes, STR(ELFMAG))) {
        int err = measure_elf(data, readable, len);
        return err ? err : readable(data, *len) ? 0 : -EFAULT;
    }
    if (fatbin_is_header(bytes))
        return fatbin_measure(data, readable, len);
    int err = measure_text(data, readable, len);
    return err ? err : ptx_text_is((struct str){data, *len}) ? 0 : -ENOEXEC;
}
