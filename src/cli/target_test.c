// SPDX-License-Identifier: MIT
// Programs are files of the test's own and the test itself: a dynamic executable.
#include "cli/target.h"

#include <elf.h>
#include <errno.h>

#include "cli/cli_testing.h"

static struct target t;
static char why[400];

static int make(void **state)
{
    return cli_testing_make_folder(state) || mkdir(cli_testing_path("a"), 0700) ||
           mkdir(cli_testing_path("b"), 0700) || mkdir(cli_testing_path("b/folder"), 0700);
}

static void find(const char *name, int expected)
{
    why[0] = 0;
    assert_int_equal(target_find(&t, name, why, sizeof why), expected);
    assert_true(!expected == !why[0]);
    assert_false(t.foreign_runtime);
}

static void set_path(const char *format, ...)
{
    char path[4 * PATH_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    setenv("PATH", path, 1);
}

static void test_by_path(void **state)
{
    find("/bin/sh", 0);
    assert_string_equal(t.path, "/bin/sh");
    find("/bin/none-of-this-name", -ENOENT);
    assert_string_equal(why, "cannot run \"/bin/none-of-this-name\": No such file or directory");
    find("/bin/", -EISDIR);
    find("/dev/null", -EACCES);
    find(cli_testing_write("plain", "", 0600), -EACCES);
    find("/bin/sh/x", -ENOTDIR);
    char name[PATH_MAX + 10];
    memset(name, '/', sizeof name);
    name[sizeof name - 1] = 0;
    find(name, -ENAMETOOLONG);
}

static void test_in_path(void **state)
{
    const char *f = cli_testing_folder;
    cli_testing_write("a/unique", "", 0600);
    cli_testing_write("a/both", "", 0700);
    cli_testing_write("b/both", "", 0700);
    cli_testing_write("b/second", "", 0700);
    set_path("%s/none:%s/a:%s/b", f, f, f);
    find("both", 0);
    assert_string_equal(t.path, cli_testing_path("a/both"));
    find("second", 0);
    assert_string_equal(t.path, cli_testing_path("b/second"));
    // What cannot be executed is passed over, and remembered.
    find("unique", -EACCES);
    cli_testing_write("b/unique", "", 0700);
    find("unique", 0);
    assert_string_equal(t.path, cli_testing_path("b/unique"));
    find("folder", -ENOENT);
    find("none", -ENOENT);
    find("", -ENOENT);
    set_path("");
    find("both", -ENOENT);
    unsetenv("PATH");
    find("sh", 0);
}

// An empty element is the current folder.
static void test_current_folder(void **state)
{
    char old[PATH_MAX];
    assert_non_null(getcwd(old, sizeof old));
    assert_int_equal(chdir(cli_testing_path("b")), 0);
    set_path("/none:");
    find("second", 0);
    assert_string_equal(t.path, "./second");
    set_path(":/none");
    find("second", 0);
    set_path("/none::/none");
    find("second", 0);
    set_path("/none");
    find("second", -ENOENT);
    assert_int_equal(chdir(old), 0);
}

// A folder whose name leaves no room for the program's is passed over.
static void test_long_element(void **state)
{
    char longest[PATH_MAX];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    set_path("%s:%s/b", longest, cli_testing_folder);
    find("second", 0);
    assert_string_equal(t.path, cli_testing_path("b/second"));
}

// --- what can be watched ---

static int check(const char *path)
{
    t = (struct target){0};
    snprintf(t.path, sizeof t.path, "%s", path);
    why[0] = 0;
    return target_check(&t, why, sizeof why);
}

static void good(const char *path)
{
    assert_int_equal(check(path), 0);
    assert_string_equal(why, "");
    assert_string_equal(t.path, path);
}

static void bad(const char *path, const char *sentence)
{
    assert_int_equal(check(path), -EACCES);
    if (!strstr(why, sentence))
        assert_string_equal(why, sentence);
}

static const char *script(const char *name, const char *line)
{
    return cli_testing_write(name, line, 0700);
}

static void test_executables(void **state)
{
    good("/proc/self/exe");
    assert_false(t.foreign_runtime);
    bad(cli_testing_path("none"), "No such file");
    bad(script("empty", ""), "neither an executable nor a script");
    bad(script("text", "echo hello\n"), "neither an executable nor a script");
    bad(script("elf", "\177ELF"), "neither an executable nor a script");
}

static void test_scripts(void **state)
{
    char line[2 * PATH_MAX + 10];
    good(script("s1", "#!/bin/sh\n"));
    good(script("s2", "#! \t/bin/sh -e\necho\n"));
    good(script("s3", "#!/bin/sh"));
    good(script("s4", "#!/bin/sh\r\n"));
    bad(script("s5", "#!\n"), "neither an executable");
    bad(script("s6", "#!  \n/bin/sh"), "neither an executable");
    bad(script("s7", "#!/none/such\n"), "cannot watch \"/none/such\": No such file");
    // As the kernel does it, an interpreter may be a script: five of them at most.
    for (int i = 0; i < 7; i++) {
        char name[8], before[8];
        snprintf(name, sizeof name, "i%d", i);
        snprintf(before, sizeof before, "i%d", i - 1);
        snprintf(line, sizeof line, "#!%s\n", i ? cli_testing_path(before) : "/bin/sh");
        if (i < 5)
            good(script(name, line));
        else
            bad(script(name, line), "too many times over");
    }
    snprintf(line, sizeof line, "#!%s\n", cli_testing_path("self"));
    bad(script("self", line), "too many times over");
}

// Writes an executable's header and program headers: with or without an interpreter.
static const char *executable(const char *name, unsigned machine, bool dynamic)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr program[2];
    } e = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                   .e_type = ET_DYN,
                   .e_machine = (Elf64_Half)machine,
                   .e_version = EV_CURRENT,
                   .e_phoff = sizeof(Elf64_Ehdr),
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 2},
        .program = {{.p_type = PT_LOAD}, {.p_type = dynamic ? PT_INTERP : PT_NOTE}},
    };
    const char *path = cli_testing_path(name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fwrite(&e, sizeof e, 1, f);
    fclose(f);
    chmod(path, 0700);
    return path;
}

#ifdef __x86_64__
enum { OURS = EM_X86_64, OTHER = EM_AARCH64 };
#else
enum { OURS = EM_AARCH64, OTHER = EM_X86_64 };
#endif

static void test_headers(void **state)
{
    char line[2 * PATH_MAX];
    good(executable("dynamic", OURS, true));
    bad(executable("static", OURS, false), "statically linked");
    bad(executable("other", OTHER, true), "another kind of processor");
    snprintf(line, sizeof line, "#!%s\n", cli_testing_path("static"));
    bad(script("for_static", line), "statically linked");
}

// Rights count where they are another's: ours give nothing.
static void test_rights(void **state)
{
    const char *path = executable("rights", OURS, true);
    chmod(path, 04700);
    good(path);
    chmod(path, 02710);
    good(path);
    if (!geteuid() && !chown(path, 1, 1)) {
        chmod(path, 04755);
        bad(path, "another user's or group's rights");
        chmod(path, 02755);
        bad(path, "another user's or group's rights");
        // Without the right to execute, the bit means locking.
        chmod(path, 02745);
        good(path);
        // A script's have no effect.
        const char *s = script("rights.sh", "#!/bin/sh\n");
        assert_int_equal(chown(s, 1, 1), 0);
        chmod(s, 06755);
        good(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_path),        cmocka_unit_test(test_in_path),
        cmocka_unit_test(test_current_folder), cmocka_unit_test(test_long_element),
        cmocka_unit_test(test_executables),    cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_headers),        cmocka_unit_test(test_rights),
    };
    return cmocka_run_group_tests(tests, make, cli_testing_remove_folder);
}
