// SPDX-License-Identifier: MIT
// Vectors that one processor stores while another one loads them: never in parts, as on a GPU.
#include <pthread.h>

#include "exec/exec_testing.h"

enum { READS = 20000, LANES = 32 };

// Block 0 stores vectors of equal elements, other ones each time; block 1 loads them READS times and counts
// those whose elements differ. First each waits for the other. In memory: whether block 1 has ended, its
// count, which blocks have begun, and from byte 64 on the vectors.
#define KERNEL                                                                                            \
    ".visible .entry k(.param .u64 memory)\n{\n"                                                          \
    ".reg .b64 m, v; .reg .b32 t, b, n, bad, r<3>; .reg .pred p;\n.reg %s x, y<5>;\n"                     \
    "ld.param.u64 m, [memory]; mov.u32 t, %%tid.x; mov.u32 b, %%ctaid.x; mov.u32 n, 0; mov.u32 bad, 0;\n" \
    "mad.wide.u32 v, t, %u, m; mad.wide.u32 m, b, 4, m; st.volatile.global.u32 [m+8], 1;\n"               \
    "ld.param.u64 m, [memory];\n"                                                                         \
    "WAIT: ld.volatile.global.u32 r0, [m+8]; ld.volatile.global.u32 r1, [m+12];\n"                        \
    "and.b32 r0, r0, r1; setp.eq.u32 p, r0, 0; @p bra WAIT;\n"                                            \
    "setp.ge.u32 p, t, %u; @p ret; setp.ne.u32 p, b, 0; @p bra READ;\n"                                   \
    "WRITE: add.u32 n, n, 1; cvt.%s.u32 x, n; st.relaxed.gpu.global.%s [v+64], %s;\n"                     \
    "ld.volatile.global.u32 r0, [m]; setp.eq.u32 p, r0, 0; @p bra WRITE; ret;\n"                          \
    "READ: add.u32 n, n, 1; ld.relaxed.gpu.global.%s %s, [v+64];\n"                                       \
    "%s setp.lt.u32 p, n, %u; @p bra READ;\n"                                                             \
    "red.global.add.u32 [m+4], bad; st.volatile.global.u32 [m], 1; ret;\n}\n"

#define DIFFERS(a, b) "setp.ne.b" b " p, y1, " a "; @p add.u32 bad, bad, 1; "
#define TWO "{x, x}", "{y1, y2}"
#define FOUR "{x, x, x, x}", "{y1, y2, y3, y4}"

static const struct form {
    const char *access, *reg, *from, *stored, *loaded, *compare;
    unsigned size;
} forms[] = {
    {"v2.u64", ".b64", "u64", TWO, DIFFERS("y2", "64"), 16},
    {"v4.u32", ".b32", "u32", FOUR, DIFFERS("y2", "32") DIFFERS("y3", "32") DIFFERS("y4", "32"), 16},
    {"v2.u32", ".b32", "u32", TWO, DIFFERS("y2", "32"), 8},
    {"v4.u16", ".b16", "u16", FOUR, DIFFERS("y2", "16") DIFFERS("y4", "16"), 8},
    {"v2.u16", ".b16", "u16", TWO, DIFFERS("y2", "16"), 4},
    {"v4.u8", ".b16", "u8", FOUR, DIFFERS("y2", "16") DIFFERS("y4", "16"), 4},
    {"v2.u8", ".b16", "u8", TWO, DIFFERS("y2", "16"), 2},
};

struct stepper {
    struct exec_grid *grid;
    pthread_barrier_t *start;
};

static void *run_steps(void *arg)
{
    struct stepper *s = (struct stepper *)arg;
    struct exec_runner *r = exec_runner_new();
    pthread_barrier_wait(s->start);
    while (r && exec_grid_step(s->grid, r) != EXEC_DONE)
        continue;
    exec_runner_free(r);
    return NULL;
}

static struct exec_fault run_on_two(const struct exec_launch *l)
{
    pthread_barrier_t start;
    struct stepper s = {exec_grid_new(l, NULL), &start};
    pthread_t threads[2];
    assert_non_null(s.grid);
    pthread_barrier_init(&start, NULL, 2);
    for (unsigned k = 0; k < 2; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, run_steps, &s), 0);
    for (unsigned k = 0; k < 2; k++)
        pthread_join(threads[k], NULL);
    pthread_barrier_destroy(&start);
    struct exec_fault fault = *exec_grid_fault(s.grid);
    exec_grid_free(s.grid);
    return fault;
}

// Returns how often a vector was seen in parts. Lanes: those that take part. Step: bytes from one lane's
// vector to the next one's.
static uint32_t count_parts(const struct form *f, unsigned lanes, unsigned step)
{
    char *text;
    assert_true(asprintf(&text, KERNEL, f->reg, step, lanes, f->from, f->access, f->stored, f->access,
                         f->loaded, f->compare, unit_cases(READS)) > 0);
    struct exec_program *p = exec_testing_text(text);
    uint64_t memory = exec_testing_take(4096, 256);
    struct exec_launch l = exec_testing_launch(p, "k", 2, LANES, &memory);
    assert_int_equal(run_on_two(&l).kind, EXEC_NO_FAULT);
    assert_int_equal(exec_testing_word(memory), 1);
    exec_program_free(p);
    free(text);
    return exec_testing_word(memory + 4);
}

// Each way in which lanes_mem.c finds addresses: all lanes at one, in a row, scattered, and not all lanes.
static void sees_whole_vectors(void **state)
{
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        const struct form *f = &forms[k];
        const struct {
            unsigned lanes, step;
        } ways[] = {{LANES, 0}, {LANES, f->size}, {LANES, 2 * f->size}, {LANES - 1, f->size}, {1, 0}};
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            uint32_t parts = count_parts(f, ways[w].lanes, ways[w].step);
            if (parts)
                print_error("%s: %u lanes, %u bytes apart: %u seen in parts\n", f->access, ways[w].lanes,
                            ways[w].step, parts);
            assert_int_equal(parts, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sees_whole_vectors)};
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
