// SPDX-License-Identifier: MIT
// ELF files and archives: finds fatbins in a host file, and kernels and architecture of a cubin.
//
// libelf reads headers, tables and names; it was fuzzed for this with inputs that end at an unmapped page.
// The sizes and offsets that it returns come from the file unchecked: they are checked here against the
// input.
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>

#include "image/image_internal.h"

enum {
    CUDA_MACHINE = 190,      // EM_CUDA, missing from older elf.h
    CUDA_OSABI_2 = 0x41,     // the architecture is in bits 8 to 15 of e_flags; in bits 0 to 7 before
    CUDA_OSABI_1_A = 0x800,  // in e_flags of the older kind: an 'a' architecture (as in LLVM's ELF.h)
    CUDA_ENTRY = 0x10,       // in st_other of a kernel's symbol; device functions do not have it
    NAME_MOST = 255,         // of names of sections and members: names may share bytes, so copies are bounded
};

struct section {
    size_t at, end;
    const char *name;
    bool fatbins;  // by its name, it holds nothing else
    size_t index;
};

struct sections {
    VEC(struct section) list;
};

// Opens an ELF image for reading. elf_memory does not write to an image that is only read.
static Elf *open_elf(struct str bytes)
{
    elf_version(EV_CURRENT);
    return elf_memory((char *)bytes.ptr, bytes.len);
}

static bool holds_fatbins(const char *name)
{
    return strcmp(name, ".nv_fatbin") == 0 || strcmp(name, "__nv_relfatbin") == 0;
}

// Lists the sections' parts of the file, cut at the place's end. Returns 0, -ENOMEM, or -EINVAL for a damaged
// section table.
static int collect_sections(struct image *im, const struct image_place *p, Elf *elf, struct sections *out)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names))
        return -EINVAL;
    size_t len = p->end - p->at;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr h;
        if (!gelf_getshdr(scn, &h))
            return -EINVAL;
        if (h.sh_type == SHT_NOBITS || h.sh_type == SHT_NULL || h.sh_size == 0)
            continue;
        const char *name = elf_strptr(elf, names, h.sh_name);
        struct section s = {.name = name ? name : "", .index = elf_ndxscn(scn)};
        s.fatbins = holds_fatbins(s.name);
        size_t at = h.sh_offset < len ? h.sh_offset : len;
        size_t size = h.sh_size < len - at ? h.sh_size : len - at;
        if (s.fatbins && size != h.sh_size)
            image_damaged(im, p->at + at, "section %s of %zu bytes is cut off: %zu are left", s.name,
                          (size_t)h.sh_size, size);
        s.at = p->at + at;
        s.end = s.at + size;
        if (vec_push(&out->list, s))
            return -ENOMEM;
    }
    return out->list.len ? 0 : -EINVAL;
}

static int by_offset(const void *a, const void *b)
{
    const struct section *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static struct str copied(struct image *im, const char *name)
{
    return arena_str(&im->arena, (struct str){name, strnlen(name, NAME_MOST)});
}

// Walks sections in file order and each byte once: in a hostile file thousands of sections may be the same
// megabytes. Sections not meant for fatbins are searched too: libraries store some as plain data.
static int walk_sections(struct image *im, const struct image_place *p, struct sections *sections)
{
    qsort(sections->list.items, sections->list.len, sizeof *sections->list.items, by_offset);
    size_t done = p->at;
    for (size_t i = 0; i < sections->list.len; i++) {
        const struct section *s = &sections->list.items[i];
        struct image_place part = {s->at > done ? s->at : done, s->end, p->member};
        if (!s->fatbins)  // a section may begin anywhere; the data in it is aligned in the file
            part.at += (p->at - part.at) % FATBIN_STEP;
        if (part.at >= part.end)
            continue;
        done = part.end;
        size_t first = im->entries.len;
        int err = s->fatbins ? fatbin_walk(im, &part) : fatbin_search(im, &part);
        if (err)
            return err;
        if (im->entries.len == first)
            continue;
        struct str name = copied(im, s->name);
        if (!name.ptr)
            return -ENOMEM;
        for (size_t e = first; e < im->entries.len; e++)
            im->entries.items[e].section = name;
    }
    return 0;
}

static int walk_host(struct image *im, const struct image_place *p, Elf *elf, const GElf_Ehdr *ehdr)
{
    struct sections sections = {0};
    int err = ehdr->e_shoff ? collect_sections(im, p, elf, &sections) : -EINVAL;
    if (!err) {
        err = walk_sections(im, p, &sections);
    } else if (err == -EINVAL) {
        if (ehdr->e_shoff)
            image_damaged(im, p->at, "the section table is damaged: modules may be missing");
        err = fatbin_search(im, p);
    }
    vec_free(&sections.list);
    return err;
}

// Returns the bytes of a section in the file; empty if they are not inside it.
static struct str section_bytes(struct str file, const GElf_Shdr *h)
{
    if (h->sh_type == SHT_NOBITS || h->sh_offset > file.len || h->sh_size > file.len - h->sh_offset)
        return (struct str){0};
    return (struct str){file.ptr + h->sh_offset, h->sh_size};
}

// Finds the architecture's suffix. e_flags of the newer kind do not have it; the assembler's command line in
// a note does.
static char noted_suffix(struct str cubin, Elf *elf, uint32_t arch)
{
    char word[16];
    size_t names, len = (size_t)snprintf(word, sizeof word, "sm_%u", arch);
    if (elf_getshdrstrndx(elf, &names))
        return 0;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr h;
        const char *name = gelf_getshdr(scn, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;
        if (!name || strcmp(name, ".note.nv.tkinfo") != 0)
            continue;
        struct str note = section_bytes(cubin, &h);
        const char *found = note.len > len ? memmem(note.ptr, note.len - 1, word, len) : NULL;
        return found && (found[len] == 'a' || found[len] == 'f') ? found[len] : 0;
    }
    return 0;
}

static int add_cubin(struct image *im, const struct image_place *p, Elf *elf, const GElf_Ehdr *ehdr)
{
    struct str bytes = {im->base + p->at, p->end - p->at};
    bool second = ehdr->e_ident[EI_OSABI] == CUDA_OSABI_2;
    struct image_entry e = {
        .kind = IMAGE_CUBIN,
        .number = 2,
        .fatbin = IMAGE_NO_FATBIN,
        .arch = (second ? ehdr->e_flags >> 8 : ehdr->e_flags) & 0xff,
        .version_major = 1,
        .version_minor = ehdr->e_ident[EI_ABIVERSION],
        .offset = p->at,
        .full_size = bytes.len,
        .payload = bytes,
        .member = p->member,
    };
    if (second)
        e.suffix = noted_suffix(bytes, elf, e.arch);
    else if (ehdr->e_flags & CUDA_OSABI_1_A)
        e.suffix = 'a';
    return image_add(im, &e);
}

int elf_image_walk(struct image *im, const struct image_place *p)
{
    Elf *elf = open_elf((struct str){im->base + p->at, p->end - p->at});
    GElf_Ehdr ehdr;
    int err;
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr)) {
        image_damaged(im, p->at, "the ELF header is damaged: modules may be missing");
        err = fatbin_search(im, p);
    } else if (ehdr.e_machine == CUDA_MACHINE) {
        err = add_cubin(im, p, elf, &ehdr);
    } else {
        err = walk_host(im, p, elf, &ehdr);
    }
    elf_end(elf);
    return err;
}

// Returns a member's size from its header, 60 bytes before it: libelf cuts the size at the end of the file.
static size_t declared_size(const struct image *im, size_t member)
{
    enum { HEADER = 60, SIZE_AT = 48, SIZE_LEN = 10 };
    char digits[SIZE_LEN + 1] = {0};
    if (member >= HEADER)
        memcpy(digits, im->base + member - HEADER + SIZE_AT, SIZE_LEN);
    return strtoul(digits, NULL, 10);
}

// Walks one member; *next becomes the offset of the one after it.
static int walk_member(struct image *im, Elf *member, size_t *next)
{
    const Elf_Arhdr *h = elf_getarhdr(member);
    int64_t base = elf_getbase(member);
    if (!h || !h->ar_name || base < 0 || (size_t)base > im->len) {
        image_damaged(im, *next, "damaged header of an archive's member");
        return 0;
    }
    size_t at = (size_t)base, size = declared_size(im, at);
    if (size > im->len - at) {
        image_damaged(im, at, "member %.*s of %zu bytes is cut off: %zu are left", NAME_MOST, h->ar_name,
                      size, im->len - at);
        size = im->len - at;
    }
    *next = at + size;
    struct image_place p = {.at = at, .end = at + size, .member = copied(im, h->ar_name)};
    if (!p.member.ptr)
        return -ENOMEM;
    if (str_starts((struct str){im->base + at, size}, STR("!<arch>\n")))
        image_damaged(im, at, "member " STR_FMT " is an archive itself: not looked into", STR_ARG(p.member));
    int err = image_detect(im, &p);
    return err == -ENOEXEC ? 0 : err;  // members of other kinds are fine
}

int elf_image_archive(struct image *im)
{
    enum { MAGIC_SIZE = 8, PADDING = 1 };
    Elf *ar = open_elf((struct str){im->base, im->len});
    int err = 0;
    size_t next = MAGIC_SIZE;
    Elf_Cmd cmd = ELF_C_READ_MMAP;
    for (Elf *member; ar && !err && cmd != ELF_C_NULL && (member = elf_begin(-1, cmd, ar));) {
        err = walk_member(im, member, &next);
        cmd = elf_next(member);
        elf_end(member);
    }
    // libelf stops at a damaged header as it does at the end.
    if (!err && next + PADDING < im->len)
        image_damaged(im, next, "damaged archive: %zu bytes are not looked into", im->len - next);
    elf_end(ar);
    return err;
}

struct symbols {
    struct str cubin;
    Elf *elf;
    Elf_Data *data;
    size_t names;  // the section with their names
    size_t room;   // length that all names may have together
};

// Returns the name of a symbol if it is a kernel's, else an empty string, in *name. Returns false if the name
// is damaged.
static bool kernel_name(struct symbols *symbols, int i, struct str *name)
{
    GElf_Sym sym;
    *name = (struct str){0};
    if (!gelf_getsym(symbols->data, i, &sym))
        return false;
    if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || !(sym.st_other & CUDA_ENTRY) || sym.st_shndx == SHN_UNDEF)
        return true;
    const char *s = elf_strptr(symbols->elf, symbols->names, sym.st_name);
    // libelf would decompress a compressed section: such names would not outlive the Elf.
    if (!s || s < symbols->cubin.ptr || s >= symbols->cubin.ptr + symbols->cubin.len)
        return false;
    // Hostile symbols may all share one long name; valid names fit into the file side by side.
    *name = (struct str){s, strnlen(s, symbols->room)};
    if (name->len == 0 || name->len == symbols->room)
        return false;
    symbols->room -= name->len;
    return true;
}

static int visit_symbols(struct symbols *symbols, Elf_Scn *scn, image_visit *visit, void *ctx,
                         const char **why)
{
    GElf_Shdr h;
    size_t each = gelf_fsize(symbols->elf, ELF_T_SYM, 1, EV_CURRENT);
    symbols->data = gelf_getshdr(scn, &h) ? elf_getdata(scn, NULL) : NULL;
    if (!symbols->data || !each || symbols->data->d_size / each > INT32_MAX) {
        *why = "damaged symbol table";
        return -EINVAL;
    }
    symbols->names = h.sh_link;
    symbols->room = symbols->cubin.len;
    int count = (int)(symbols->data->d_size / each);
    for (int i = 0; i < count; i++) {
        struct str name;
        if (!kernel_name(symbols, i, &name)) {
            *why = "damaged symbol";
            return -EINVAL;
        }
        int stop = name.len ? visit(ctx, name) : 0;
        if (stop)
            return stop;
    }
    return 0;
}

int elf_image_kernels(struct str cubin, image_visit *visit, void *ctx, const char **why)
{
    Elf *elf = cubin.len ? open_elf(cubin) : NULL;
    GElf_Ehdr ehdr;
    int err = -EINVAL;
    *why = "no symbol table";
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr) || ehdr.e_machine != CUDA_MACHINE)
        *why = "not a cubin";
    else
        for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
            GElf_Shdr h;
            if (!gelf_getshdr(scn, &h) || h.sh_type != SHT_SYMTAB)
                continue;
            *why = NULL;
            err = visit_symbols(&(struct symbols){.cubin = cubin, .elf = elf}, scn, visit, ctx, why);
            break;  // the gABI allows only one
        }
    elf_end(elf);
    return err;
}
