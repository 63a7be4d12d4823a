// SPDX-License-Identifier: MIT
#include "cli/program_env.h"

#include "cli/cli_testing.h"
#include "cli/libdir.h"
#include "cli/pools.h"
#include "cli/python_env.h"
#include "report/channel.h"
#include "report/log_name.h"

static int clean(void **state)
{
    static const char *const variables[] = {"LD_PRELOAD",
                                            "LD_LIBRARY_PATH",
                                            "MOAT_OPTIONS",
                                            "NVTX_INJECTION64_PATH",
                                            "PYTHONPATH",
                                            "MOAT_PYTHON",
                                            "PYTORCH_NO_CUDA_MEMORY_CACHING",
                                            "XLA_PYTHON_CLIENT_ALLOCATOR",
                                            "XLA_PYTHON_CLIENT_PREALLOCATE",
                                            CHANNEL_VARIABLE};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    return 0;
}

static void set_with(struct program_env p, char *first, char *second)
{
    assert_int_equal(program_env_set(&p, cli_testing_parse(first, second)), 0);
    cli_testing_forget();
}

static void set(struct program_env p)
{
    set_with(p, NULL, NULL);
}

#define IS(variable, value) assert_string_equal(getenv(variable), value)
#define UNSET(variable) assert_null(getenv(variable))

// The heap's library is first, because it takes malloc's place; then what has the driver's names, the
// runtime's.
static void test_order(void **state)
{
    set((struct program_env){.folder = "/l", .guard = true, .heap = true, .cpu = true});
    IS("LD_PRELOAD", "/l/libmoat-heap.so:/l/libmoat.so:/l/libcudart.so.13");
    IS("LD_LIBRARY_PATH", "/l");
}

static void test_one_each(void **state)
{
    set((struct program_env){.folder = "/l", .guard = true});
    IS("LD_PRELOAD", "/l/libmoat.so");
    UNSET("LD_LIBRARY_PATH");
    clean(NULL);
    set((struct program_env){.folder = "/l", .heap = true});
    IS("LD_PRELOAD", "/l/libmoat-heap.so");
    UNSET("LD_LIBRARY_PATH");
    UNSET("NVTX_INJECTION64_PATH");
    clean(NULL);
    // Without the guard, which would open it, the device is loaded by itself.
    set((struct program_env){.folder = "/l", .cpu = true});
    IS("LD_PRELOAD", "/l/libmoat-cpu.so:/l/libcudart.so.13");
    IS("LD_LIBRARY_PATH", "/l");
}

static void test_none(void **state)
{
    setenv(CHANNEL_VARIABLE, "/outer", 1);
    set((struct program_env){.folder = "/l"});
    IS("LD_PRELOAD", "");
    UNSET("LD_LIBRARY_PATH");
    // Another moat around this one goes on watching.
    IS(CHANNEL_VARIABLE, "/outer");
}

// What the user has set is kept, behind ours.
static void test_old(void **state)
{
    setenv("LD_PRELOAD", "/usr/lib/libx.so /y.so", 1);
    setenv("LD_LIBRARY_PATH", "/a:/b", 1);
    set((struct program_env){.folder = "/l", .guard = true, .cpu = true});
    IS("LD_PRELOAD", "/l/libmoat.so:/l/libcudart.so.13:/usr/lib/libx.so /y.so");
    IS("LD_LIBRARY_PATH", "/l:/a:/b");
}

// An empty element of LD_LIBRARY_PATH would be the current folder.
static void test_empty(void **state)
{
    setenv("LD_PRELOAD", "", 1);
    setenv("LD_LIBRARY_PATH", "", 1);
    set((struct program_env){.folder = "/l", .guard = true, .cpu = true});
    IS("LD_PRELOAD", "/l/libmoat.so:/l/libcudart.so.13");
    IS("LD_LIBRARY_PATH", "/l");
    set((struct program_env){.folder = "/l"});
    IS("LD_PRELOAD", "/l/libmoat.so:/l/libcudart.so.13");
}

static void test_blanks(void **state)
{
    setenv("LD_LIBRARY_PATH", "/a", 1);
    set((struct program_env){.folder = "/my libs", .guard = true, .heap = true});
    IS("LD_PRELOAD", "libmoat-heap.so:libmoat.so");
    IS("LD_LIBRARY_PATH", "/my libs:/a");
    clean(NULL);
    set((struct program_env){.folder = "/tab\there", .heap = true});
    IS("LD_PRELOAD", "libmoat-heap.so");
    IS("LD_LIBRARY_PATH", "/tab\there");
}

static void test_channel(void **state)
{
    set((struct program_env){.folder = "/l", .guard = true, .channel = "/tmp/s"});
    IS(CHANNEL_VARIABLE, "/tmp/s");
    set((struct program_env){.folder = "/l", .heap = true});
    UNSET(CHANNEL_VARIABLE);
}

// --- MOAT_OPTIONS ---

// Parses MOAT_OPTIONS as our libraries do.
static const struct options *parse_back(void)
{
    const struct options *o = cli_testing_parse(NULL, NULL);
    assert_int_equal(option_parse_environment(&cli_testing_set, "MOAT_OPTIONS", getenv("MOAT_OPTIONS")), 0);
    return o;
}

static void test_options(void **state)
{
    set_with((struct program_env){.folder = "/l", .guard = true, .cpu = true, .driver = "/d:e\\f"},
             "--print-limit=7", NULL);
    const struct options *o = parse_back();
    assert_int_equal(o->print_limit, 7);
    assert_int_equal(o->device, OPTION_DEVICE_CPU);
    assert_string_equal(o->driver, "/d:e\\f");
    cli_testing_forget();
}

// A log's name is taken from where the command was started; the program may go elsewhere.
static void test_log_file(void **state)
{
    char old[PATH_MAX], here[PATH_MAX], expected[2 * PATH_MAX], name[2 * PATH_MAX];
    const char *const folders[] = {"plain", "a:b", "100%", "%p"};
    assert_non_null(getcwd(old, sizeof old));
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *folder = cli_testing_path(folders[i]);
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_int_equal(chdir(folder), 0);
        assert_non_null(getcwd(here, sizeof here));
        set_with((struct program_env){.folder = "/l", .guard = true}, "--log-file=x.%p", NULL);
        assert_int_equal(chdir(old), 0);
        const struct options *o = parse_back();
        assert_int_equal(log_name_expand(o->log_file, 12, name, sizeof name), 0);
        snprintf(expected, sizeof expected, "%s/x.12", here);
        assert_string_equal(name, expected);
        cli_testing_forget();
    }
    set_with((struct program_env){.folder = "/l", .guard = true}, "--log-file=/x%%", NULL);
    assert_string_equal(parse_back()->log_file, "/x%%");
    cli_testing_forget();
}

// --- pools ---

static void test_nvtx(void **state)
{
    set((struct program_env){.folder = "/l", .guard = true});
    IS("NVTX_INJECTION64_PATH", "/l/libmoat.so");
    UNSET("PYTORCH_NO_CUDA_MEMORY_CACHING");
    setenv("NVTX_INJECTION64_PATH", "/tool.so", 1);
    set((struct program_env){.folder = "/l", .guard = true});
    IS("NVTX_INJECTION64_PATH", "/tool.so");
}

static void test_unpool(void **state)
{
    setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "bfc", 1);
    setenv("PYTHONPATH", "/mine", 1);
    assert_int_equal(pools_set("/l", cli_testing_parse("--unpool", NULL)), 0);
    cli_testing_forget();
    assert_int_equal(python_env_set("/l", cli_testing_parse("--unpool", "--no-jit-ptx"), false), 0);
    cli_testing_forget();
    IS("PYTORCH_NO_CUDA_MEMORY_CACHING", "1");
    IS("XLA_PYTHON_CLIENT_PREALLOCATE", "false");
    IS("XLA_PYTHON_CLIENT_ALLOCATOR", "bfc");
    IS("PYTHONPATH", "/l/python:/mine");
    IS("MOAT_PYTHON", "unpool ");
}

static const char *python_words(char *first, char *second, bool cpu)
{
    unsetenv("MOAT_PYTHON");
    unsetenv("PYTHONPATH");
    assert_int_equal(python_env_set("/l", cli_testing_parse(first, second), cpu), 0);
    cli_testing_forget();
    return getenv("MOAT_PYTHON");
}

static void test_python(void **state)
{
    assert_string_equal(python_words("--torch-alloc", NULL, false), "torch-alloc ptx ");
    IS("PYTHONPATH", "/l/python");
    assert_string_equal(python_words("--torch-alloc", "--unpool", false), "torch-alloc unpool ptx ");
    assert_string_equal(python_words("--mode=canary", NULL, false), "torch-alloc ptx ");
    assert_string_equal(python_words("--mode=check", NULL, false), "torch-alloc ptx ptx-anew ");
    assert_string_equal(python_words("--mode=count", NULL, false), "ptx ptx-anew ");
    assert_string_equal(python_words("--mode=pages", "--no-torch-alloc", false), "ptx ");
    assert_null(python_words("--no-jit-ptx", NULL, false));
    UNSET("PYTHONPATH");
    assert_string_equal(python_words("--no-jit-ptx", NULL, true), "torch-ops ");
    assert_string_equal(python_words("--autotune=all", "--no-torch-ops", true), "ptx launches autotune-all ");
    assert_string_equal(python_words("--autotune=first", NULL, true),
                        "ptx launches autotune-first torch-ops ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_order, clean),    cmocka_unit_test_setup(test_one_each, clean),
        cmocka_unit_test_setup(test_none, clean),     cmocka_unit_test_setup(test_old, clean),
        cmocka_unit_test_setup(test_empty, clean),    cmocka_unit_test_setup(test_blanks, clean),
        cmocka_unit_test_setup(test_channel, clean),  cmocka_unit_test_setup(test_options, clean),
        cmocka_unit_test_setup(test_log_file, clean), cmocka_unit_test_setup(test_nvtx, clean),
        cmocka_unit_test_setup(test_unpool, clean),   cmocka_unit_test_setup(test_python, clean),
    };
    return cmocka_run_group_tests(tests, cli_testing_make_folder, cli_testing_remove_folder);
}
