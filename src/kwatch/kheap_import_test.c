// SPDX-License-Identifier: MIT
#include "kwatch/kheap_import.h"

#include <unistd.h>

#include "image/image_make.h"

#define PTX_HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define PTX_CALLS \
    PTX_HEAD ".extern .func  (.param .b64 func_retval0) malloc\n(\n.param .b64 malloc_param_0\n)\n;\n"
#define PTX_SILENT PTX_HEAD ".visible .func mallocator(.param .b64 p);\n.visible .entry free_all(){ret;}\n"

static void texts(void **state)
{
    static const char *const yes[] = {
        PTX_CALLS,
        PTX_HEAD ".extern .func free(.param .b64 p);",
        PTX_HEAD ".func f();\n.extern .func\n(.param .b64 r)\n__cuda_syscall_aligned_malloc(",
    };
    static const char *const no[] = {PTX_SILENT,
                                     "",
                                     ".func",
                                     ".func (",
                                     ".func malloc_",
                                     ".func (.param .b64 malloc) f",
                                     ".extern .func  (malloc"};
    for (unsigned i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(kheap_import_ptx(str_from(yes[i])));
    for (unsigned i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(kheap_import_ptx(str_from(no[i])));
}

// A cubin with one symbol besides the empty one.
static void make_cubin(struct make *m, const char *name, uint16_t section, unsigned arch)
{
    Elf64_Sym syms[2] = {{0},
                         {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = section}};
    char names[64] = "";
    size_t n = strlen(name) + 2;
    memcpy(names + 1, name, strlen(name));
    Elf64_Ehdr e = {.e_type = ET_EXEC, .e_machine = 190, .e_flags = arch};
    memcpy(e.e_ident, ELFMAG, SELFMAG);
    e.e_ident[EI_CLASS] = ELFCLASS64;
    e.e_ident[EI_DATA] = ELFDATA2LSB;
    e.e_ident[EI_VERSION] = EV_CURRENT;
    const struct make_section sections[] = {
        {".strtab", SHT_STRTAB, 0, 0, {names, n}},
        {".symtab", SHT_SYMTAB, 1, 0, {(const char *)syms, sizeof syms}},
        {".text.k", SHT_PROGBITS, 0, 0, {"code", 4}},
    };
    make_elf(m, e, sections, 3);
}

static struct str str_of(const struct make *m)
{
    return (struct str){m->bytes, m->len};
}

static void cubins(void **state)
{
    static const struct {
        const char *name;
        uint16_t section;
        bool calls;
    } rows[] = {{"malloc", SHN_UNDEF, true},
                {"free", SHN_UNDEF, true},
                {"malloc", 3, false},
                {"vprintf", SHN_UNDEF, false}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct make m = {0};
        make_cubin(&m, rows[i].name, rows[i].section, 90);
        assert_int_equal(kheap_import_cubin(str_of(&m)), rows[i].calls);
        make_free(&m);
    }
}

// Whatever is wrong with it, nothing is read out of bounds. A sanitizer watches.
static void broken_cubins(void **state)
{
    struct make m = {0};
    make_cubin(&m, "malloc", SHN_UNDEF, 90);
    for (size_t n = 0; n < m.len; n++) {
        struct make cut = {0};
        make_raw(&cut, m.bytes, n);
        assert_false(kheap_import_cubin(str_of(&cut)));
        make_free(&cut);
    }
    for (size_t at = 0; at < m.len; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            m.bytes[at] ^= (char)(1 << bit);
            kheap_import_cubin(str_of(&m));
            m.bytes[at] ^= (char)(1 << bit);
        }
    assert_true(kheap_import_cubin(str_of(&m)));
    make_free(&m);
}

// What the device runs decides, not what else is there.
static void fatbins(void **state)
{
    struct make m = {0}, silent = {0};
    make_cubin(&silent, "vprintf", SHN_UNDEF, 90);
    size_t at = make_fatbin(&m);
    make_entry(&m, (struct make_entry){.kind = 2, .arch = 90, .data = str_of(&silent)});
    make_entry(&m,
               (struct make_entry){.kind = 1, .arch = 90, .data = STR(PTX_CALLS), .compression = IMAGE_ZSTD});
    make_fatbin_end(&m, at);
    assert_false(kheap_import_memory(m.bytes, 90));
    assert_true(kheap_import_memory(m.bytes, 100));
    assert_true(kheap_import_bytes(m.bytes, m.len, 80));
    const struct {
        uint32_t magic, version;
        const void *data, *list;
    } wrapper = {0x466243b1, 1, m.bytes, NULL};
    assert_false(kheap_import_memory(&wrapper, 90));
    assert_true(kheap_import_memory(&wrapper, 75));
    make_free(&m);
    make_free(&silent);
}

// -rdc: linked machine code, or the objects' PTX.
static void lists(void **state)
{
    struct make linked = {0}, first = {0}, second = {0}, cubin = {0};
    make_cubin(&cubin, "vprintf", SHN_UNDEF, 75);
    size_t at = make_fatbin(&linked);
    make_entry(&linked, (struct make_entry){.kind = 2, .arch = 75, .data = str_of(&cubin)});
    make_fatbin_end(&linked, at);
    make_one(&first, IMAGE_LZ4);
    at = make_fatbin(&second);
    make_entry(&second, (struct make_entry){.kind = 1, .arch = 75, .data = STR(PTX_CALLS)});
    make_fatbin_end(&second, at);
    const void *list[] = {first.bytes, second.bytes, NULL};
    const struct {
        uint32_t magic, version;
        const void *data;
        const void *const *list;
    } wrapper = {0x466243b1, 2, linked.bytes, list};
    assert_false(kheap_import_memory(&wrapper, 75));
    assert_true(kheap_import_memory(&wrapper, 90));
    make_free(&linked);
    make_free(&first);
    make_free(&second);
    make_free(&cubin);
}

static void others(void **state)
{
    struct make m = {0};
    make_cubin(&m, "free", SHN_UNDEF, 90);
    assert_true(kheap_import_bytes(m.bytes, m.len, 90) && kheap_import_memory(m.bytes, 90));
    char path[] = "/tmp/kheap-import-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0 && write(file, m.bytes, m.len) == (ssize_t)m.len);
    close(file);
    assert_true(kheap_import_file(path, 90));
    unlink(path);
    assert_true(kheap_import_memory(PTX_CALLS, 90));
    assert_false(kheap_import_memory(PTX_SILENT, 90));
    assert_false(kheap_import_memory("something else", 90) || kheap_import_memory(NULL, 90));
    assert_false(kheap_import_file("/does/not/exist", 90) || kheap_import_file(NULL, 90));
    make_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),   cmocka_unit_test(cubins), cmocka_unit_test(broken_cubins),
        cmocka_unit_test(fatbins), cmocka_unit_test(lists),  cmocka_unit_test(others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
