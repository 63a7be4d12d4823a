// SPDX-License-Identifier: MIT
#include "image/image_make.h"

static const Elf64_Ehdr host = {.e_type = ET_DYN, .e_machine = EM_X86_64};

static struct str all(const struct make *m)
{
    return (struct str){m->bytes, m->len};
}

// Makes a file with fatbins in both of their sections and among other data, which begins at an odd offset.
// Returns the offset of the section table.
static size_t make_host(struct make *m)
{
    struct make linked = {0}, pieces = {0}, data = {0};
    make_one(&linked, IMAGE_ZSTD);
    make_one(&linked, IMAGE_PLAIN);
    make_one(&pieces, IMAGE_LZ4);
    make_raw(&data, "\120\355\125\272", 4);  // a magic that begins nothing
    make_raw(&data, "\120\355\125\272\0\0\0\0\120\355\125\272\0\0\0\0", 16);
    make_one(&data, IMAGE_PLAIN);
    size_t later = data.len;
    make_one(&data, IMAGE_PLAIN);
    make_set(&data, later + 4, 2, 2);  // of a version that is not known
    make_raw(&data, "abc", 3);
    const struct make_section sections[] = {
        {".nv_fatbin", SHT_PROGBITS, 0, 0, all(&linked)},
        {".data", SHT_PROGBITS, 0, 4, all(&data)},
        {"__nv_relfatbin", SHT_PROGBITS, 0, 0, all(&pieces)},
        {".bss", SHT_NOBITS, 0, 0, {0}},
    };
    size_t table = make_elf(m, host, sections, 4);
    make_free(&linked);
    make_free(&pieces);
    make_free(&data);
    return table;
}

static void good_host(void **state)
{
    static const char *const names[] = {".nv_fatbin", ".nv_fatbin", ".data", "__nv_relfatbin"};
    struct make m = {0};
    make_host(&m);
    struct image *im = make_open(&m, 4, 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(str_eq(image_entry(im, i)->section, str_from(names[i])));
        assert_int_equal(image_entry(im, i)->fatbin, i);
        make_expect_text(im, i, MAKE_PTX);
    }
    image_free(im);
    make_free(&m);
}

static void good_host_without_code(void **state)
{
    struct make m = {0};
    make_elf(&m, host, (const struct make_section[]){{".text", SHT_PROGBITS, 0, 0, STR("code")}}, 1);
    image_free(make_open(&m, 0, 0));
    make_free(&m);
}

static void good_host_without_sections(void **state)
{
    struct make m = {0};
    make_host(&m);
    make_set(&m, offsetof(Elf64_Ehdr, e_shoff), 0, 8);
    make_set(&m, offsetof(Elf64_Ehdr, e_shnum), 0, 2);
    make_set(&m, offsetof(Elf64_Ehdr, e_shstrndx), 0, 2);
    struct image *im = make_open(&m, 4, 0);
    assert_int_equal(image_entry(im, 0)->section.len, 0);
    make_expect_text(im, 3, MAKE_PTX);
    image_free(im);
    make_free(&m);
}

static void bad_section_table(void **state)
{
    struct make m = {0};
    make_host(&m);
    make_set(&m, offsetof(Elf64_Ehdr, e_shoff), m.len + 8, 8);
    image_free(make_open(&m, 4, 1));
    make_free(&m);
}

static void bad_section_size(void **state)
{
    struct make m = {0};
    size_t table = make_host(&m);
    size_t size = table + 3 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size);
    make_set(&m, size, UINT64_MAX, 8);
    struct make_sink s = make_sink();
    struct image *im;
    assert_int_equal(image_open_memory("made", m.bytes, m.len, &s.sink, &im), 0);
    assert_int_equal(image_count(im), 4);
    assert_true(image_damage(im) >= 1);
    image_free(im);
    make_free(&m);
}

// Overlapping sections are read once.
static void bad_sections_overlap(void **state)
{
    struct make m = {0};
    size_t table = make_host(&m);
    for (size_t i = 2; i <= 4; i++)
        memcpy(m.bytes + table + i * sizeof(Elf64_Shdr), m.bytes + table + sizeof(Elf64_Shdr),
               sizeof(Elf64_Shdr));
    image_free(make_open(&m, 2, 0));
    make_free(&m);
}

static void bad_elf_header(void **state)
{
    struct make m = {0};
    make_host(&m);
    m.bytes[EI_CLASS] = 9;
    image_free(make_open(&m, 4, 1));
    make_free(&m);
}

// Makes a cubin with kernels, a device function, a kernel that is undefined, and an object. Returns the
// offset of the section table.
static size_t make_cubin(struct make *m, unsigned osabi, unsigned flags, const char *note)
{
    static const char names[] = "\0kernel\0function\0elsewhere\0object\0local";
    static const Elf64_Sym symbols[] = {
        {0},
        {.st_name = 34, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC), .st_other = 0x10, .st_shndx = 1},
        {.st_name = 8, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1},
        {.st_name = 17,
         .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
         .st_other = 0x10,
         .st_shndx = SHN_UNDEF},
        {.st_name = 27, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_other = 0x10, .st_shndx = 1},
        {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = 0x10, .st_shndx = 1},
    };
    const struct make_section sections[] = {
        {".text.kernel", SHT_PROGBITS, 0, 0, STR("code")},
        {".strtab", SHT_STRTAB, 0, 0, {names, sizeof names}},
        {".symtab", SHT_SYMTAB, 2, 0, {(const char *)symbols, sizeof symbols}},
        {".note.nv.tkinfo", SHT_NOTE, 0, 0, str_from(note)},
    };
    Elf64_Ehdr ehdr = {.e_type = ET_EXEC, .e_machine = 190, .e_flags = flags};
    ehdr.e_ident[EI_OSABI] = (unsigned char)osabi;
    ehdr.e_ident[EI_ABIVERSION] = osabi == 0x41 ? 8 : 7;
    return make_elf(m, ehdr, sections, 4);
}

static void check_cubin(unsigned osabi, unsigned flags, const char *note, unsigned arch, char suffix)
{
    struct make m = {0};
    make_cubin(&m, osabi, flags, note);
    struct image *im = make_open(&m, 1, 0);
    const struct image_entry *e = image_entry(im, 0);
    assert_int_equal(e->kind, IMAGE_CUBIN);
    assert_int_equal(e->arch, arch);
    assert_int_equal(e->suffix, suffix);
    assert_int_equal(e->full_size, m.len);
    assert_int_equal(e->version_minor, osabi == 0x41 ? 8 : 7);
    image_free(im);
    make_free(&m);
}

static void good_cubin(void **state)
{
    check_cubin(0x41, 0x6005a04, "-arch sm_90 -m 64 ", 90, 0);
    check_cubin(0x41, 0x6005a04, "-arch sm_90a -m 64 ", 90, 'a');
    check_cubin(0x41, 0x6006402, "-arch sm_100f -m 64 ", 100, 'f');
    check_cubin(0x41, 0x6006402, "-arch sm_100", 100, 0);  // the note ends with the number
    check_cubin(0x41, 0x6006402, "none", 100, 0);
    check_cubin(0x33, 0x5a055a, "", 90, 0);
    check_cubin(0x33, 0x5a0d5a, "", 90, 'a');
}

// Bytes after the note do not belong to it.
static void bad_note(void **state)
{
    struct make m = {0};
    const char note[] = "-arch sm_100a";
    size_t table = make_cubin(&m, 0x41, 0x6006402, note);
    make_set(&m, table + 4 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), strlen(note) - 1, 8);
    struct image *im = make_open(&m, 1, 0);
    assert_int_equal(image_entry(im, 0)->suffix, 0);
    image_free(im);
    make_free(&m);
}

static int kernels_of(const struct make *m, struct make_names *names, struct make_sink *s)
{
    struct image *im = make_open(m, 1, 0);
    *names = (struct make_names){0};
    *s = make_sink();
    int err = image_kernels(im, 0, image_entry(im, 0)->payload, &s->sink, make_name, names);
    image_free(im);
    return err;
}

static void good_cubin_kernels(void **state)
{
    struct make m = {0};
    struct make_names names;
    struct make_sink s;
    make_cubin(&m, 0x41, 0x6005a04, "");
    assert_int_equal(kernels_of(&m, &names, &s), 0);
    assert_string_equal(names.text, "local kernel");
    assert_int_equal(s.sink.errors, 0);
    make_free(&m);
}

// 300 kernels share one name; together the names are longer than the file.
static void bad_shared_name(void **state)
{
    char names[1001] = {0};
    memset(names + 1, 'a', sizeof names - 2);
    Elf64_Sym symbols[300];
    for (size_t i = 0; i < 300; i++)
        symbols[i] = (Elf64_Sym){.st_name = 1, .st_info = STT_FUNC, .st_other = 0x10, .st_shndx = 1};
    const struct make_section sections[] = {
        {".strtab", SHT_STRTAB, 0, 0, {names, sizeof names}},
        {".symtab", SHT_SYMTAB, 1, 0, {(const char *)symbols, sizeof symbols}},
    };
    struct make m = {0};
    struct make_names found;
    struct make_sink s;
    make_elf(&m, (Elf64_Ehdr){.e_machine = 190}, sections, 2);
    assert_int_equal(kernels_of(&m, &found, &s), -EINVAL);
    make_free(&m);
}

static void expect_bad_kernels(size_t section, size_t field, uint64_t value, size_t size)
{
    struct make m = {0};
    struct make_names names;
    struct make_sink s;
    size_t table = make_cubin(&m, 0x41, 0x6005a04, "");
    make_set(&m, table + section * sizeof(Elf64_Shdr) + field, value, size);
    assert_int_equal(kernels_of(&m, &names, &s), -EINVAL);
    assert_int_equal(s.sink.errors, 1);
    make_free(&m);
}

static void bad_cubin_kernels(void **state)
{
    expect_bad_kernels(3, offsetof(Elf64_Shdr, sh_type), SHT_PROGBITS, 4);  // no symbols
    expect_bad_kernels(3, offsetof(Elf64_Shdr, sh_offset), UINT64_MAX, 8);
    expect_bad_kernels(3, offsetof(Elf64_Shdr, sh_size), UINT64_MAX, 8);
    expect_bad_kernels(3, offsetof(Elf64_Shdr, sh_link), 1, 4);   // names in a section of code
    expect_bad_kernels(3, offsetof(Elf64_Shdr, sh_link), 99, 4);  // in none
    expect_bad_kernels(2, offsetof(Elf64_Shdr, sh_size), 3, 8);   // cut off
    expect_bad_kernels(2, offsetof(Elf64_Shdr, sh_offset), UINT64_MAX, 8);
}

static void good_archive(void **state)
{
    struct make m = {0}, object = {0}, cubin = {0}, fatbin = {0};
    make_host(&object);
    make_cubin(&cubin, 0x41, 0x6005a04, "");
    make_one(&fatbin, IMAGE_ZSTD);
    make_member(&m, "readme/", STR("no GPU code"));
    make_member(&m, "a.o/", all(&object));
    make_member(&m, "b.cubin/", all(&cubin));
    make_member(&m, "c.ptx/", STR(MAKE_PTX));
    make_member(&m, "d.fatbin/", all(&fatbin));
    struct image *im = make_open(&m, 7, 0);
    assert_true(str_eq(image_entry(im, 0)->member, STR("a.o")));
    assert_true(str_eq(image_entry(im, 3)->section, STR("__nv_relfatbin")));
    assert_true(str_eq(image_entry(im, 4)->member, STR("b.cubin")));
    assert_int_equal(image_entry(im, 4)->arch, 90);
    assert_true(str_eq(image_entry(im, 5)->member, STR("c.ptx")));
    make_expect_text(im, 5, MAKE_PTX);
    assert_true(str_eq(image_entry(im, 6)->member, STR("d.fatbin")));
    make_expect_text(im, 6, MAKE_PTX);
    image_free(im);
    // The file is cut inside the last member, then inside its header.
    size_t whole = m.len;
    m.len -= 16;
    image_free(make_open(&m, 7, 3));  // the member, its fatbin, its module
    m.len = whole - fatbin.len - 8;
    image_free(make_open(&m, 6, 1));
    make_free(&m);
    make_free(&object);
    make_free(&cubin);
    make_free(&fatbin);
}

static void bad_archive_inside(void **state)
{
    struct make m = {0}, inner = {0};
    make_member(&inner, "c.ptx/", STR(MAKE_PTX));
    make_member(&m, "inner.a/", all(&inner));
    make_member(&m, "c.ptx/", STR(MAKE_PTX));
    image_free(make_open(&m, 1, 1));
    make_free(&m);
    make_free(&inner);
}

// A damaged header hides the members after it, not those before.
static void bad_archive_header(void **state)
{
    struct make m = {0};
    make_member(&m, "a.ptx/", STR(MAKE_PTX));
    size_t second = m.len;
    make_member(&m, "b.ptx/", STR(MAKE_PTX));
    image_free(make_open(&m, 2, 0));
    m.bytes[second + 48] = 'x';  // its size
    image_free(make_open(&m, 1, 1));
    make_free(&m);
}

static void bad_cut_at_every_byte(void **state)
{
    struct make m = {0}, object = {0}, cubin = {0};
    make_host(&object);
    make_cubin(&cubin, 0x41, 0x6005a04, "");
    make_member(&m, "a.o/", all(&object));
    make_member(&m, "b.cubin/", all(&cubin));
    const struct make *const whole[] = {&m, &object, &cubin};
    for (int i = 0; i < 3; i++)
        for (size_t len = 0; len < whole[i]->len; len++) {
            struct make cut = {0};
            make_raw(&cut, whole[i]->bytes, len);
            make_exercise(cut.bytes, cut.len);
            make_free(&cut);
        }
    make_free(&m);
    make_free(&object);
    make_free(&cubin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_host),
        cmocka_unit_test(good_host_without_code),
        cmocka_unit_test(good_host_without_sections),
        cmocka_unit_test(bad_section_table),
        cmocka_unit_test(bad_section_size),
        cmocka_unit_test(bad_sections_overlap),
        cmocka_unit_test(bad_elf_header),
        cmocka_unit_test(good_cubin),
        cmocka_unit_test(bad_note),
        cmocka_unit_test(good_cubin_kernels),
        cmocka_unit_test(bad_cubin_kernels),
        cmocka_unit_test(bad_shared_name),
        cmocka_unit_test(good_archive),
        cmocka_unit_test(bad_archive_inside),
        cmocka_unit_test(bad_archive_header),
        cmocka_unit_test(bad_cut_at_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
