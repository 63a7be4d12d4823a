// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/host_symbol.h"

static int shared[40] = {1};

static void symbols_of_the_process(void **state)
{
    struct host_symbol s;
    assert_true(host_symbol_find((uintptr_t)shared, &s));
    assert_string_equal(s.name, "shared");
    assert_false(s.function);
    assert_true(host_symbol_find((uintptr_t)&shared[39] + 3, &s));
    assert_string_equal(s.name, "shared");
    assert_true(host_symbol_find((uintptr_t)symbols_of_the_process + 1, &s));
    assert_string_equal(s.name, "symbols_of_the_process");
    assert_true(s.function);
    assert_true(host_symbol_find((uintptr_t)strtod, &s));  // of a library, which has dynamic symbols only
    assert_true(s.function);
}

static void no_symbols(void **state)
{
    struct host_symbol s;
    int here = 0;
    assert_false(host_symbol_find((uintptr_t)&here, &s));
    assert_false(host_symbol_find(0, &s));
    assert_false(host_symbol_find(UINT64_MAX, &s));
    assert_false(host_symbol_in_file(-1, 0, &s));
}

// A file with a table of three symbols, in the order of the members.
struct small {
    Elf64_Ehdr head;
    Elf64_Shdr sections[3];
    Elf64_Sym symbols[3];
    char names[16];
};

static struct small small_file(void)
{
    struct small f = {
        .head = {.e_shoff = offsetof(struct small, sections),
                 .e_shentsize = sizeof(Elf64_Shdr),
                 .e_shnum = 3},
        .sections = {[1] = {.sh_type = SHT_SYMTAB,
                            .sh_offset = offsetof(struct small, symbols),
                            .sh_size = sizeof f.symbols,
                            .sh_link = 2},
                     [2] = {.sh_type = SHT_STRTAB,
                            .sh_offset = offsetof(struct small, names),
                            .sh_size = sizeof f.names}},
        .symbols = {[1] = {.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 64, .st_size = 8},
                    [2] = {.st_name = 5, .st_info = STT_OBJECT, .st_shndx = 1, .st_value = 72, .st_size = 4}},
        .names = "\0one\0two",
    };
    memcpy(f.head.e_ident, ELFMAG, SELFMAG);
    f.head.e_ident[EI_CLASS] = ELFCLASS64;
    return f;
}

static bool find_in(int file, const struct small *f, uint64_t address, struct host_symbol *s)
{
    assert_int_equal(pwrite(file, f, sizeof *f, 0), sizeof *f);
    return host_symbol_in_file(file, address, s);
}

static void symbols_of_a_file(void **state)
{
    struct small f = small_file();
    struct host_symbol s;
    int file = memfd_create("small", 0);
    assert_true(find_in(file, &f, 71, &s));
    assert_string_equal(s.name, "one");
    assert_true(find_in(file, &f, 72, &s));
    assert_string_equal(s.name, "two");
    assert_false(find_in(file, &f, 76, &s));
    f.sections[1].sh_offset = UINT64_MAX - 3;
    assert_false(find_in(file, &f, 72, &s));
    f = small_file();
    f.sections[2].sh_size = 5;
    assert_false(find_in(file, &f, 72, &s));
    f.sections[2].sh_size = 7;
    assert_true(find_in(file, &f, 72, &s));
    assert_string_equal(s.name, "tw");
    close(file);
}

// Whatever is in the file, it is read within its bounds.
static void damaged_files(void **state)
{
    int file = memfd_create("damaged", 0);
    srand(1);
    for (int i = 0; i < 20000; i++) {
        struct small f = small_file();
        struct host_symbol s;
        for (int k = rand() % 6; k >= 0; k--)
            ((unsigned char *)&f)[SELFMAG + (size_t)rand() % (sizeof f - SELFMAG)] = (unsigned char)rand();
        if (find_in(file, &f, 72, &s))
            assert_true(strnlen(s.name, sizeof s.name) < sizeof s.name);
        if (i % 100 == 0)
            assert_int_equal(ftruncate(file, rand() % 400), 0);
    }
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_of_the_process),
        cmocka_unit_test(no_symbols),
        cmocka_unit_test(symbols_of_a_file),
        cmocka_unit_test(damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
