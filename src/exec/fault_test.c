// SPDX-License-Identifier: MIT
// The position that a fault reports: source lines, functions, inlined functions.
#include "exec/exec_testing.h"
#include "ptx/ptx.h"

#define FILES ".file 1 \"a.cu\"\n.file 2 \"b.h\"\n"
// "outer" and "in", the second at an offset
#define NAMES                                                                             \
    ".section .debug_str\n{\n$Lother:\n.b8 120, 0\n$Lnames:\n.b8 111,117,116,101,114,0\n" \
    ".b8 105 // i\n.b8 110\n.b8 0\n}\n"

struct want {
    const char *function, *file;
    uint32_t line;
    bool inlined;
};

static void compare(const struct exec_fault_frame *f, const struct want *want)
{
    char name[100];
    if (f->inlined)
        ptx_debug_text(f->function, name, sizeof name);
    else
        snprintf(name, sizeof name, STR_FMT, STR_ARG(f->function));
    assert_string_equal(name, want->function);
    assert_true(str_eq(f->file, str_from(want->file)));
    assert_int_equal(f->line, want->line);
    assert_int_equal(f->inlined, want->inlined);
}

// Runs k, which must fault in exactly these frames.
static void expect(const char *text, const struct want *want, unsigned n)
{
    struct exec_program *p = exec_testing_text(text);
    struct exec_launch launch = exec_testing_launch(p, "k", 1, 32, NULL);
    struct exec_fault fault = exec_testing_run(&launch, 1000);
    assert_int_equal(fault.kind, EXEC_LAUNCH_FAILED);
    assert_int_equal(fault.nframes, n);
    for (unsigned i = 0; i < n; i++)
        compare(&fault.frames[i], &want[i]);
    assert_true(str_eq(fault.source_file, fault.frames[0].file));
    assert_int_equal(fault.source_line, fault.frames[0].line);
    exec_program_free(p);
}
#define EXPECT(text, ...)                            \
    expect(text, (const struct want[]){__VA_ARGS__}, \
           sizeof((const struct want[]){__VA_ARGS__}) / sizeof(struct want))

static void inlined_twice(void **state)
{
    EXPECT(
        ".entry k()\n{\n.loc 1 10 0\nbar.sync 0;\n.loc 1 12 3\n"
        ".loc 2 20 5, function_name $Lnames, inlined_at 1 12 3\n"
        ".loc 2 30 7, function_name $Lnames+6, inlined_at 2 20 5\ntrap;\n.loc 1 13 1\nret;\n}\n" FILES NAMES,
        {"in", "b.h", 30, true}, {"outer", "b.h", 20, true}, {"k", "a.cu", 12, false});
}

// The last .loc with that position counts: the second copy of the code was inlined elsewhere.
static void inlined_again(void **state)
{
    EXPECT(".entry k()\n{\n.loc 1 12 3\n.loc 2 20 5, function_name $Lnames, inlined_at 1 12 3\nbar.sync 0;\n"
           ".loc 1 14 3\n.loc 2 20 5, function_name $Lnames, inlined_at 1 14 3\n"
           ".loc 2 30 7, function_name $Lnames+6, inlined_at 2 20 5\ntrap;\nret;\n}\n" FILES NAMES,
           {"in", "b.h", 30, true}, {"outer", "b.h", 20, true}, {"k", "a.cu", 14, false});
}

// Code that the compiler moved away from its line has line 0: the line before it in the text counts.
static void moved_from_its_line(void **state)
{
    EXPECT(".entry k()\n{\n.loc 1 12 3\n.loc 2 20 5, function_name $Lnames, inlined_at 1 12 3\nbar.sync 0;\n"
           ".loc 2 0 5\ntrap;\n.loc 1 14 3\nret;\n}\n" FILES NAMES,
           {"outer", "b.h", 20, true}, {"k", "a.cu", 12, false});
}

// There is no .loc for the position itself, and no name; those of another function do not count.
static void inlined_into_nothing(void **state)
{
    EXPECT(".func f()\n{\n.loc 1 12 3, function_name $Lnames, inlined_at 2 50 1\nret;\n}\n"
           ".entry k()\n{\n.loc 2 30 7, function_name $Lgone, inlined_at 1 12 3\ntrap;\nret;\n}\n" FILES,
           {"", "b.h", 30, true}, {"k", "a.cu", 12, false});
}

// A position that claims to be inlined into itself.
static void inlined_for_ever(void **state)
{
    EXPECT(".entry k()\n{\n.loc 1 5 1, function_name $Lnames, inlined_at 1 5 1\n"
           ".loc 1 5 1, function_name $Lnames, inlined_at 1 5 1\ntrap;\nret;\n}\n" FILES NAMES,
           {"outer", "a.cu", 5, true}, {"outer", "a.cu", 5, true}, {"k", "a.cu", 5, false});
}

static void called(void **state)
{
    EXPECT(".func g()\n{\n.loc 2 3 1\ntrap;\nret;\n}\n"
           ".func f()\n{\n.loc 1 5 1\ncall g, ();\n.loc 1 6 1\nret;\n}\n"
           ".entry k()\n{\n.loc 1 8 1\nbar.sync 0;\n.loc 1 9 1\ncall f, ();\n.loc 1 10 1\nret;\n}\n" FILES,
           {"g", "b.h", 3, false}, {"f", "a.cu", 5, false}, {"k", "a.cu", 9, false});
}

// Blocks are decoded in another order than the text's: the trap belongs to the .loc above it in the text,
// which is in a block that it does not follow.
static void order_of_the_text(void **state)
{
    EXPECT(
        ".entry k()\n{\n.reg .pred p;\n.reg .b32 r;\n.loc 1 1 1\nmov.u32 r, %tid.x;\nsetp.lt.u32 p, r, 99;\n"
        "@p bra THERE;\n.loc 1 2 1\nBACK: .loc 1 3 1\nret;\n.loc 1 4 1\nTHERE: trap;\nbra BACK;\n}\n" FILES,
        {"k", "a.cu", 4, false});
}

static void without_lines(void **state)
{
    EXPECT(".func f()\n{\ntrap;\nret;\n}\n.entry k()\n{\ncall f, ();\nret;\n}\n", {"f", "", 0, false},
           {"k", "", 0, false});
}

// There are more calls than frames: the innermost are reported.
static void too_deep(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".func f(.reg .b32 n)\n{\n.reg .pred p;\n.reg .b32 m;\nsetp.eq.u32 p, n, 0;\n@p trap;\nsub.u32 m, n, "
        "1;\n"
        ".loc 1 7 1\ncall f, (m);\nret;\n}\n.entry k()\n{\n.loc 1 9 1\ncall f, (40);\nret;\n}\n" FILES);
    struct exec_launch launch = exec_testing_launch(p, "k", 1, 1, NULL);
    launch.stack_size = 1 << 14;
    struct exec_fault fault = exec_testing_run(&launch, 1000);
    assert_int_equal(fault.kind, EXEC_LAUNCH_FAILED);
    assert_int_equal(fault.nframes, EXEC_FAULT_FRAMES);
    for (unsigned i = 1; i < fault.nframes; i++) {
        assert_true(str_eq(fault.frames[i].function, STR("f")));
        assert_int_equal(fault.frames[i].line, 7);
    }
    exec_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inlined_twice),
        cmocka_unit_test(inlined_again),
        cmocka_unit_test(moved_from_its_line),
        cmocka_unit_test(inlined_into_nothing),
        cmocka_unit_test(inlined_for_ever),
        cmocka_unit_test(called),
        cmocka_unit_test(order_of_the_text),
        cmocka_unit_test(without_lines),
        cmocka_unit_test(too_deep),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
