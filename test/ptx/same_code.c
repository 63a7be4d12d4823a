// SPDX-License-Identifier: MIT
// same_code A.cubin B.cubin: do both hold the same machine code? Compares the sections that a GPU executes
// and reads; names of files, options and debug information may differ. Exit status 0: same; 1: not; 2: bad
// input.
#include <err.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const compared[] = {".text", ".nv.constant", ".nv.global", ".nv.info", ".nv.shared"};

struct cubin {
    const char *path;
    int fd;
    Elf *elf;
    size_t names;
};

static void open_cubin(struct cubin *c, const char *path)
{
    c->path = path;
    c->fd = open(path, O_RDONLY);
    if (c->fd < 0)
        err(2, "%s", path);
    c->elf = elf_begin(c->fd, ELF_C_READ, NULL);
    if (!c->elf || elf_kind(c->elf) != ELF_K_ELF || elf_getshdrstrndx(c->elf, &c->names))
        errx(2, "%s: no ELF file", path);
}

static bool is_compared(const char *name)
{
    for (size_t i = 0; i < sizeof compared / sizeof *compared; i++)
        if (strncmp(name, compared[i], strlen(compared[i])) == 0)
            return true;
    return false;
}

// Returns the section's name if it must be compared, and its data.
static const char *section(const struct cubin *c, Elf_Scn *scn, GElf_Shdr *header, Elf_Data **data)
{
    if (!gelf_getshdr(scn, header))
        errx(2, "%s: %s", c->path, elf_errmsg(-1));
    const char *name = elf_strptr(c->elf, c->names, header->sh_name);
    if (!name || !is_compared(name))
        return NULL;
    *data = elf_getdata(scn, NULL);
    return name;
}

static bool equal(const GElf_Shdr *a, const Elf_Data *x, const GElf_Shdr *b, const Elf_Data *y)
{
    if (a->sh_size != b->sh_size || a->sh_type != b->sh_type)
        return false;
    if (a->sh_type == SHT_NOBITS || a->sh_size == 0)
        return true;
    return x && y && x->d_size == y->d_size && memcmp(x->d_buf, y->d_buf, x->d_size) == 0;
}

// Every relevant section of a must be in b; *count is how many were.
static bool contains(const struct cubin *a, const struct cubin *b, unsigned *count)
{
    Elf_Scn *scn = NULL;
    while ((scn = elf_nextscn(a->elf, scn))) {
        GElf_Shdr ah, bh;
        Elf_Data *ad, *bd;
        const char *name = section(a, scn, &ah, &ad);
        if (!name)
            continue;
        bool found = false;
        for (Elf_Scn *other = NULL; !found && (other = elf_nextscn(b->elf, other));) {
            const char *other_name = section(b, other, &bh, &bd);
            found = other_name && strcmp(name, other_name) == 0 && equal(&ah, ad, &bh, bd);
        }
        if (!found) {
            printf("section %s of %s is not in %s\n", name, a->path, b->path);
            return false;
        }
        ++*count;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        errx(2, "usage: same_code A.cubin B.cubin");
    struct cubin a, b;
    elf_version(EV_CURRENT);
    open_cubin(&a, argv[1]);
    open_cubin(&b, argv[2]);
    unsigned count = 0, back = 0;
    if (!contains(&a, &b, &count) || !contains(&b, &a, &back))
        return 1;
    if (!count)
        errx(2, "%s: nothing to compare", argv[1]);
    printf("%u sections are the same\n", count);
    return 0;
}
