// SPDX-License-Identifier: MIT
// The file is read piece by piece, not mapped: it may be shortened meanwhile, and a mapping would then fault.
#include "base/host_symbol.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

enum {
    BATCH = 64,      // symbols that are read at once
    MOST = 1 << 22,  // symbols of a table that are looked at
};

static bool read_at(int file, void *to, size_t size, uint64_t at)
{
    return at <= INT64_MAX && pread(file, to, size, (off_t)at) == (ssize_t)size;
}

static bool is_in(const Elf64_Sym *s, uint64_t address)
{
    unsigned type = ELF64_ST_TYPE(s->st_info);
    return (type == STT_OBJECT || type == STT_FUNC) && s->st_shndx != SHN_UNDEF && s->st_name &&
           address - s->st_value < s->st_size;
}

static bool read_name(int file, const Elf64_Shdr *strings, uint32_t at, char *name, size_t size)
{
    uint64_t left = at < strings->sh_size ? strings->sh_size - at : 0;
    size_t want = left < size - 1 ? (size_t)left : size - 1;
    if (!want || strings->sh_offset > INT64_MAX)
        return false;
    ssize_t n = pread(file, name, want, (off_t)(strings->sh_offset + at));
    name[n > 0 ? n : 0] = 0;
    return *name;
}

static bool search(int file, const Elf64_Shdr *table, const Elf64_Shdr *strings, uint64_t address,
                   struct host_symbol *out)
{
    Elf64_Sym batch[BATCH];
    uint64_t count = table->sh_size / sizeof *batch;
    for (uint64_t first = 0; first < count && first < MOST; first += BATCH) {
        size_t n = count - first < BATCH ? (size_t)(count - first) : BATCH;
        if (!read_at(file, batch, n * sizeof *batch, table->sh_offset + first * sizeof *batch))
            return false;
        for (size_t i = 0; i < n; i++) {
            if (!is_in(&batch[i], address))
                continue;
            out->function = ELF64_ST_TYPE(batch[i].st_info) == STT_FUNC;
            return read_name(file, strings, batch[i].st_name, out->name, sizeof out->name);
        }
    }
    return false;
}

// A file has one table of a type.
static bool search_table(int file, const Elf64_Ehdr *e, unsigned type, uint64_t address,
                         struct host_symbol *out)
{
    Elf64_Shdr table, strings;
    for (unsigned i = 0; i < e->e_shnum; i++)
        if (read_at(file, &table, sizeof table, e->e_shoff + (uint64_t)i * sizeof table) &&
            table.sh_type == type)
            return read_at(file, &strings, sizeof strings,
                           e->e_shoff + (uint64_t)table.sh_link * sizeof strings) &&
                   search(file, &table, &strings, address, out);
    return false;
}

bool host_symbol_in_file(int file, uint64_t address, struct host_symbol *out)
{
    Elf64_Ehdr e;
    return read_at(file, &e, sizeof e, 0) && memcmp(e.e_ident, ELFMAG, SELFMAG) == 0 &&
           e.e_ident[EI_CLASS] == ELFCLASS64 && e.e_shentsize == sizeof(Elf64_Shdr) &&
           (search_table(file, &e, SHT_SYMTAB, address, out) ||
            search_table(file, &e, SHT_DYNSYM, address, out));
}

struct place {
    uint64_t address;  // of the process; once found, of the file
    char path[1024];   // empty: not found
};

static int look_into(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct place *p = argument;
    uint64_t address = p->address - info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || address - segment->p_vaddr >= segment->p_memsz)
            continue;
        const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
        size_t n = strnlen(path, sizeof p->path);
        if (n == sizeof p->path)
            return 1;
        memcpy(p->path, path, n + 1);
        p->address = address;
        return 1;
    }
    return 0;
}

bool host_symbol_find(uint64_t address, struct host_symbol *out)
{
    int saved = errno;
    struct place p = {.address = address};
    dl_iterate_phdr(look_into, &p);
    int file = *p.path ? open(p.path, O_RDONLY | O_CLOEXEC) : -1;
    bool found = file >= 0 && host_symbol_in_file(file, p.address, out);
    if (file >= 0)
        close(file);
    errno = saved;
    return found;
}
