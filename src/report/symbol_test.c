// SPDX-License-Identifier: MIT
// The test looks up its own symbols: it was compiled with source lines.
#include "report/symbol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static uint64_t recorded;
static unsigned recorded_line, caller_line;

// Records the place of its caller, as a return address.
__attribute__((noinline)) static void record(unsigned line)
{
    recorded = (uint64_t)(uintptr_t)__builtin_return_address(0);
    recorded_line = line;
}

__attribute__((always_inline)) static inline void inner(void)
{
    record(__LINE__);
    __asm__ volatile("");
}

__attribute__((noinline)) static void outer(void)
{
    inner(), caller_line = __LINE__;
    __asm__ volatile("");
}

static struct report_frame frame_at(uint64_t pc)
{
    static char self[PATH_MAX];
    Dl_info info;
    struct link_map *map;
    assert_true(dladdr1((void *)(uintptr_t)pc, &info, (void **)&map, RTLD_DL_LINKMAP));
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
    return (struct report_frame){
        .pc = pc, .object = map->l_name[0] ? info.dli_fname : self, .offset = pc - (uint64_t)map->l_addr};
}

static const char *last_part(const char *path)
{
    return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

static void good_lines_and_inlined_functions(void **state)
{
    struct symbols *s = symbol_new();
    struct arena a;
    arena_init(&a, 0);
    outer();
    struct report_frame frame = frame_at(recorded);
    for (int i = 0; i < 2; i++) {
        struct report_stack stack = {1, &frame};
        symbol_stack(s, &a, &stack);
        assert_int_equal(stack.count, 2);
        assert_string_equal(stack.frames[0].function, "inner");
        assert_string_equal(last_part(stack.frames[0].file), "symbol_test.c");
        assert_int_equal(stack.frames[0].line, recorded_line);
        assert_true(stack.frames[0].inlined);
        assert_string_equal(stack.frames[1].function, "outer");
        assert_string_equal(last_part(stack.frames[1].file), "symbol_test.c");
        assert_int_equal(stack.frames[1].line, caller_line);
        assert_false(stack.frames[1].inlined);
        assert_int_equal(stack.frames[1].pc, recorded);
    }
    symbol_free(s);
    arena_free(&a);
}

// A library without DWARF still has symbols.
static void good_symbols_of_libraries(void **state)
{
    struct symbols *s = symbol_new();
    struct arena a;
    arena_init(&a, 0);
    struct report_frame frame =
        frame_at((uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "cmocka_set_message_output") + 2);
    struct report_stack stack = {1, &frame};
    symbol_stack(s, &a, &stack);
    assert_int_equal(stack.count, 1);
    assert_string_equal(stack.frames[0].function, "cmocka_set_message_output");
    symbol_free(s);
    arena_free(&a);
}

// All stacks of an error are symbolised; frames that have a function stay as they are.
static void good_whole_errors(void **state)
{
    struct symbols *s = symbol_new();
    struct arena a;
    arena_init(&a, 0);
    outer();
    struct report_frame frames[] = {
        {.function = "known", .object = "/nowhere"}, frame_at(recorded), {.pc = 5}};
    struct report_buffer buffer = {.made_at = {1, frames + 1}, .freed_at = {3, frames}};
    struct report_line line = {.event = REPORT_ERROR,
                               .error = {.stack = {3, frames}, .nbuffers = 1, .buffers = &buffer}};
    symbol_line(s, &a, &line);
    assert_int_equal(line.error.stack.count, 4);
    assert_string_equal(line.error.stack.frames[0].function, "known");
    assert_string_equal(line.error.stack.frames[2].function, "outer");
    assert_null(line.error.stack.frames[3].function);
    assert_int_equal(line.error.buffers[0].made_at.count, 2);
    assert_int_equal(line.error.buffers[0].freed_at.count, 4);
    struct report_line note = {.event = REPORT_NOTE};
    symbol_line(s, &a, &note);
    symbol_free(s);
    arena_free(&a);
}

// The same file has lines under any other name.
static void good_runtimes_have_no_lines(void **state)
{
    char runtime[] = "/tmp/moat-symbol-XXXXXX/libcudart.so.13", command[PATH_MAX + 100];
    char *name = strrchr(runtime, '/');
    *name = 0;
    assert_non_null(mkdtemp(runtime));
    *name = '/';
    outer();
    struct report_frame frame = frame_at(recorded);
    snprintf(command, sizeof command, "cp '%s' %s", frame.object, runtime);
    assert_int_equal(system(command), 0);
    frame.object = runtime;
    struct symbols *s = symbol_new();
    struct arena a;
    arena_init(&a, 0);
    struct report_stack stack = {1, &frame};
    symbol_stack(s, &a, &stack);
    assert_int_equal(stack.count, 1);
    assert_string_equal(stack.frames[0].function, "outer");
    assert_null(stack.frames[0].file);
    symbol_free(s);
    arena_free(&a);
    unlink(runtime);
    *name = 0;
    rmdir(runtime);
}

static void expect_unknown(struct symbols *s, const char *path)
{
    struct arena a;
    arena_init(&a, 0);
    struct report_frame frame = {.pc = 1, .object = path, .offset = 0x1000};
    struct report_stack stack = {1, &frame};
    symbol_stack(s, &a, &stack);
    assert_int_equal(stack.count, 1);
    assert_null(stack.frames[0].function);
    assert_string_equal(stack.frames[0].object, path);
    arena_free(&a);
}

static void bad_files(void **state)
{
    struct symbols *s = symbol_new();
    char folder[] = "/tmp/symbol_test.XXXXXX", path[64], self[PATH_MAX] = "";
    assert_non_null(mkdtemp(folder));
    expect_unknown(s, "/no/such/file");
    expect_unknown(s, "");
    expect_unknown(s, "[vdso]");
    expect_unknown(s, folder);
    expect_unknown(s, "/dev/zero");
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_unknown(s, path);
    unlink(path);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    for (int i = 0; i < 3; i++) {
        static char bytes[5000];
        FILE *from = fopen(self, "r");
        size_t n = fread(bytes, 1, i == 0 ? 0 : i == 1 ? 64 : sizeof bytes, from);
        fclose(from);
        snprintf(path, sizeof path, "%s/cut%d", folder, i);
        FILE *to = fopen(path, "w");
        fwrite(bytes, 1, n, to);
        fclose(to);
        expect_unknown(s, path);
        unlink(path);
    }
    rmdir(folder);
    symbol_free(s);
}

static void bad_memory_runs_out(void **state)
{
    outer();
    struct report_frame frame = frame_at(recorded);
    for (long n = 0; n < 20; n++) {
        struct arena a;
        mem_fail_after(n);
        arena_init(&a, 0);
        struct symbols *s = symbol_new();
        struct report_buffer buffer = {.made_at = {1, &frame}};
        struct report_line line = {.event = REPORT_ERROR,
                                   .error = {.stack = {1, &frame}, .nbuffers = 1, .buffers = &buffer}};
        symbol_line(s, &a, &line);
        mem_fail_after(-1);
        assert_true(line.error.stack.count == 1 || line.error.stack.count == 2);
        assert_int_equal(line.error.stack.frames[0].pc, recorded);
        symbol_free(s);
        arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_lines_and_inlined_functions),
        cmocka_unit_test(good_symbols_of_libraries),
        cmocka_unit_test(good_runtimes_have_no_lines),
        cmocka_unit_test(good_whole_errors),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(bad_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
