// SPDX-License-Identifier: MIT
#include "cli/target.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { MOST_SCRIPTS = 5 };  // one the interpreter of another; the kernel's own limit

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#endif

static int usable(const char *path)
{
    struct stat s;
    if (stat(path, &s))
        return -errno;
    if (S_ISDIR(s.st_mode))
        return -EISDIR;
    if (!S_ISREG(s.st_mode))
        return -EACCES;
    return access(path, X_OK) ? -errno : 0;
}

// Searches PATH as execvp does: files that cannot be executed are skipped; the error is returned if nothing
// better is found.
static int search_path(struct target *t, const char *name)
{
    const char *path = getenv("PATH");
    int err = -ENOENT;
    for (const char *p = path ? path : "/bin:/usr/bin"; p;) {
        const char *colon = strchr(p, ':');
        int len = colon ? (int)(colon - p) : (int)strlen(p);
        int n = snprintf(t->path, sizeof t->path, "%.*s%s%s", len, p, len ? "/" : "./", name);
        int one = n < (int)sizeof t->path ? usable(t->path) : -ENAMETOOLONG;
        if (!one)
            return 0;
        if (one == -EACCES)
            err = one;
        p = colon ? colon + 1 : NULL;
    }
    return err;
}

int target_find(struct target *t, const char *name, char *why, size_t size)
{
    *t = (struct target){0};
    int err;
    if (!strchr(name, '/')) {
        err = *name ? search_path(t, name) : -ENOENT;
    } else {
        int n = snprintf(t->path, sizeof t->path, "%s", name);
        err = n < (int)sizeof t->path ? usable(t->path) : -ENAMETOOLONG;
    }
    if (err)
        snprintf(why, size, "cannot run \"%.200s\": %s", name, strerror(-err));
    return err;
}

static int refuse(char *why, size_t size, const char *path, const char *what)
{
    snprintf(why, size, "cannot watch \"%.200s\": %s", path, what);
    return -EACCES;
}

// Returns why a program gains rights, or NULL. The loader ignores LD_PRELOAD for such programs.
static const char *gained_rights(int fd)
{
    struct stat s;
    if (!fstat(fd, &s) && (((s.st_mode & S_ISUID) && s.st_uid != getuid()) ||
                           ((s.st_mode & S_ISGID) && (s.st_mode & S_IXGRP) && s.st_gid != getgid())))
        return "it runs with another user's or group's rights, so the system lets no library be put before "
               "it";
    if (geteuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0)
        return "it has file capabilities, so the system allows no preloaded library";
    return NULL;
}

static bool has_interpreter(Elf *elf)
{
    size_t count = 0;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_INTERP)
            return true;
    }
    return false;
}

static bool imports(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx != SHN_UNDEF)
            continue;
        const char *its = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (its && strcmp(its, name) == 0)
            return true;
    }
    return false;
}

// nvcc marks what it compiles by a section, and registers its kernels with a runtime. If that runtime is
// neither imported nor ours, which leaves a section of its own in what it is linked into, it is NVIDIA's.
static bool has_foreign_runtime(Elf *elf)
{
    bool kernels = false, other = false;
    size_t names = 0;
    if (elf_getshdrstrndx(elf, &names))
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (!name)
            continue;
        kernels |= strcmp(name, "__nv_module_id") == 0;
        other |= strcmp(name, ".moat_runtime") == 0;
        other |= header.sh_type == SHT_DYNSYM && imports(elf, section, &header, "__cudaRegisterFatBinary");
    }
    return kernels && !other;
}

static bool is_sanitizer(const char *library)
{
    static const char *const names[] = {"libasan.so",        "libtsan.so",       "liblsan.so",
                                        "libhwasan.so",      "libclang_rt.asan", "libclang_rt.tsan",
                                        "libclang_rt.hwasan"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(library, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool needs_sanitizer(Elf *elf)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNAMIC)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        size_t count = data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
        for (size_t i = 0; i < count; i++) {
            GElf_Dyn entry;
            const char *library = gelf_getdyn(data, (int)i, &entry) && entry.d_tag == DT_NEEDED
                                      ? elf_strptr(elf, header.sh_link, entry.d_un.d_val)
                                      : NULL;
            if (library && is_sanitizer(library))
                return true;
        }
    }
    return false;
}

static const char *check_elf(struct target *t, int fd)
{
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    GElf_Ehdr header;
    const char *bad = NULL;
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
        bad = "it is neither an executable nor a script";
    else if (header.e_machine != MACHINE || header.e_ident[EI_CLASS] != ELFCLASS64)
        bad = "it is for another kind of processor";
    else if (!has_interpreter(elf))
        bad = "it is statically linked, so no library can be preloaded";
    else {
        t->foreign_runtime = has_foreign_runtime(elf);
        t->sanitizer = needs_sanitizer(elf);
    }
    elf_end(elf);
    return bad;
}

// Finds the interpreter of a script. Returns false if the file is no script.
static bool interpreter(int fd, char *path, size_t size)
{
    char line[256];
    ssize_t n = pread(fd, line, sizeof line - 1, 0);
    if (n < 3 || line[0] != '#' || line[1] != '!')
        return false;
    line[n] = 0;
    char *start = line + 2 + strspn(line + 2, " \t");
    start[strcspn(start, " \t\r\n")] = 0;
    snprintf(path, size, "%s", start);
    return *start;
}

int target_check(struct target *t, char *why, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", t->path);
    for (int depth = 0; depth <= MOST_SCRIPTS; depth++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return refuse(why, size, path, strerror(errno));
        char next[PATH_MAX];
        bool script = interpreter(fd, next, sizeof next);
        // A script's own rights have no effect.
        const char *bad = script ? NULL : gained_rights(fd);
        if (!script && !bad)
            bad = check_elf(t, fd);
        close(fd);
        if (bad)
            return refuse(why, size, path, bad);
        if (!script)
            return 0;
        memcpy(path, next, sizeof path);
    }
    return refuse(why, size, t->path, "its interpreter is a script, too many times over");
}
