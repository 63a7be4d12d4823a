// SPDX-License-Identifier: MIT
#include "kwatch/kheap_import.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/readable.h"
#include "image/image.h"
#include "pass/pass_kheap.h"

// The wrapper that nvcc's host code registers.
struct wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *list;  // version 2: one fatbin for each linked object, then NULL
};

enum { WRAPPER_MAGIC = 0x466243b1, MOST_OBJECTS = 4096, MACHINE_CUDA = 190 };

static bool inside(struct str file, uint64_t at, uint64_t len)
{
    return at <= file.len && len <= file.len - at;
}

// --- machine code ------------------------------------------------------------------------------------------

static bool read_section(struct str cubin, const Elf64_Ehdr *e, unsigned number, Elf64_Shdr *s)
{
    if (number >= e->e_shnum)
        return false;
    memcpy(s, cubin.ptr + e->e_shoff + number * sizeof *s, sizeof *s);
    return true;
}

static struct str name_at(struct str cubin, const Elf64_Shdr *names, uint32_t at)
{
    if (at >= names->sh_size)
        return (struct str){"", 0};
    const char *text = cubin.ptr + names->sh_offset + at;
    return (struct str){text, strnlen(text, names->sh_size - at)};
}

static bool table_imports(struct str cubin, const Elf64_Ehdr *e, const Elf64_Shdr *table)
{
    Elf64_Shdr names;
    Elf64_Sym sym;
    if (!read_section(cubin, e, table->sh_link, &names) || !inside(cubin, names.sh_offset, names.sh_size) ||
        !inside(cubin, table->sh_offset, table->sh_size))
        return false;
    for (uint64_t at = 0; at + sizeof sym <= table->sh_size; at += sizeof sym) {
        memcpy(&sym, cubin.ptr + table->sh_offset + at, sizeof sym);
        if (sym.st_shndx == SHN_UNDEF && sym.st_name && pass_kheap_is(name_at(cubin, &names, sym.st_name)))
            return true;
    }
    return false;
}

bool kheap_import_cubin(struct str cubin)
{
    Elf64_Ehdr e;
    Elf64_Shdr s;
    if (cubin.len < sizeof e)
        return false;
    memcpy(&e, cubin.ptr, sizeof e);
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
        e.e_shentsize != sizeof s || !inside(cubin, e.e_shoff, (uint64_t)e.e_shnum * sizeof s))
        return false;
    for (unsigned i = 0; read_section(cubin, &e, i, &s); i++)
        if (s.sh_type == SHT_SYMTAB && table_imports(cubin, &e, &s))
            return true;
    return false;
}

// --- PTX ---------------------------------------------------------------------------------------------------

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct str skip_space(struct str s)
{
    while (s.len && is_space(*s.ptr))
        s = str_skip(s, 1);
    return s;
}

// Returns the name behind ".func", which may be preceded by the parenthesised return value.
static struct str name_of(struct str s)
{
    s = skip_space(s);
    if (s.len && *s.ptr == '(') {
        const char *close = memchr(s.ptr, ')', s.len);
        s = skip_space(str_skip(s, close ? (size_t)(close - s.ptr) + 1 : s.len));
    }
    size_t n = 0;
    while (n < s.len && !is_space(s.ptr[n]) && s.ptr[n] != '(' && s.ptr[n] != ';')
        n++;
    return (struct str){s.ptr, n};
}

bool kheap_import_ptx(struct str text)
{
    static const char word[] = ".func";
    const size_t len = sizeof word - 1;
    const char *at;
    while (text.len && (at = memmem(text.ptr, text.len, word, len))) {
        text = str_skip(text, (size_t)(at - text.ptr) + len);
        if (pass_kheap_is(name_of(text)))
            return true;
    }
    return false;
}

// --- images ------------------------------------------------------------------------------------------------

static void say_nothing(struct diag_sink *sink, const struct diag *d)
{
}

// Machine code runs on GPUs of the same major version that are not older; sm_90a on 9.0 only.
static bool runs(const struct image_entry *e, unsigned arch)
{
    if (e->suffix == 'a' && e->arch != arch)
        return false;
    return e->kind == IMAGE_CUBIN && !e->damaged && e->arch / 10 == arch / 10 && e->arch <= arch;
}

static bool entry_imports(const struct image *im, unsigned i)
{
    struct diag_sink silent = {.emit = say_nothing};
    struct image_buffer buffer = {0};
    struct str data;
    bool imports = false;
    if (!image_read(im, i, &silent, &buffer, &data))
        imports = image_entry(im, i)->kind == IMAGE_CUBIN ? kheap_import_cubin(data) : kheap_import_ptx(data);
    image_buffer_free(&buffer);
    return imports;
}

// Checks entries [first, end) of one fatbin. *has_code is set if it has machine code that the device can run.
static bool fatbin_imports(const struct image *im, unsigned first, unsigned end, unsigned arch,
                           bool *has_code)
{
    for (unsigned i = first; i < end; i++)
        if (runs(image_entry(im, i), arch)) {
            *has_code = true;
            if (entry_imports(im, i))
                return true;
        }
    for (unsigned i = first; i < end && !*has_code; i++)
        if (image_entry(im, i)->kind == IMAGE_PTX && !image_entry(im, i)->damaged && entry_imports(im, i))
            return true;
    return false;
}

// Entries outside of fatbins are checked whatever their architecture.
static bool image_imports(const struct image *im, unsigned arch, bool *has_code)
{
    unsigned n = image_count(im);
    for (unsigned i = 0; i < n;) {
        unsigned end = i + 1, fatbin = image_entry(im, i)->fatbin;
        bool here = false;
        while (end < n && fatbin != IMAGE_NO_FATBIN && image_entry(im, end)->fatbin == fatbin)
            end++;
        if (fatbin == IMAGE_NO_FATBIN ? entry_imports(im, i) : fatbin_imports(im, i, end, arch, &here))
            return true;
        *has_code |= here;
        i = end;
    }
    return false;
}

// image.h does not know cubins if it is built without libelf.
static bool is_cubin(const void *bytes, size_t size)
{
    Elf64_Ehdr e;
    if (size < sizeof e)
        return false;
    memcpy(&e, bytes, sizeof e);
    return memcmp(e.e_ident, ELFMAG, SELFMAG) == 0 && e.e_machine == MACHINE_CUDA;
}

static bool bytes_import(const void *bytes, size_t size, unsigned arch, bool *has_code)
{
    struct diag_sink silent = {.emit = say_nothing};
    struct image *im;
    if (is_cubin(bytes, size)) {
        *has_code = true;
        return kheap_import_cubin((struct str){bytes, size});
    }
    if (image_open_memory("module", bytes, size, &silent, &im))
        return false;
    bool imports = image_imports(im, arch, has_code);
    image_free(im);
    return imports;
}

static bool unmeasured_imports(const void *image, unsigned arch, bool *has_code)
{
    size_t size;
    return !image_measure(image, readable_bytes, &size) && bytes_import(image, size, arch, has_code);
}

// With -rdc, `data` has the linked machine code of the objects; if the device cannot run that, `list` has
// their PTX.
static bool wrapper_imports(const struct wrapper *w, unsigned arch)
{
    bool has_code = false;
    if (unmeasured_imports(w->data, arch, &has_code))
        return true;
    for (unsigned i = 0; !has_code && w->version == 2 && w->list && i < MOST_OBJECTS; i++) {
        bool ignored = false;
        if (!readable_bytes(w->list + i, sizeof *w->list) || !w->list[i])
            break;
        if (unmeasured_imports(w->list[i], arch, &ignored))
            return true;
    }
    return false;
}

bool kheap_import_memory(const void *image, unsigned arch)
{
    struct wrapper w;
    bool ignored = false;
    if (!readable_bytes(image, sizeof w.magic))
        return false;
    memcpy(&w.magic, image, sizeof w.magic);
    if (w.magic != WRAPPER_MAGIC || !readable_bytes(image, sizeof w))
        return unmeasured_imports(image, arch, &ignored);
    memcpy(&w, image, sizeof w);
    return wrapper_imports(&w, arch);
}

bool kheap_import_bytes(const void *bytes, size_t size, unsigned arch)
{
    bool ignored = false;
    return readable_bytes(bytes, size) && bytes_import(bytes, size, arch, &ignored);
}

// A file may change while it is mapped; the driver would read the same nonsense.
bool kheap_import_file(const char *path, unsigned arch)
{
    struct stat about;
    bool imports = false;
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return false;
    if (!fstat(file, &about) && S_ISREG(about.st_mode) && about.st_size > 0) {
        size_t size = (size_t)about.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        imports = bytes != MAP_FAILED && kheap_import_bytes(bytes, size, arch);
        if (bytes != MAP_FAILED)
            munmap(bytes, size);
    }
    close(file);
    return imports;
}
