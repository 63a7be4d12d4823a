// SPDX-License-Identifier: MIT
// snippets.def as combinations, and what their modules hold besides.
#ifndef MOAT_TEST_GOLDEN_SNIPPETS_H
#define MOAT_TEST_GOLDEN_SNIPPETS_H

#include "combos.h"

struct snippet {
    const char *spelling, *note, *results, *operands, *body;
};

static const struct snippet snippets[] = {
#define SNIPPET(spelling, note, results, operands, body) {spelling, note, results, operands, body},
#include "snippets.def"
#define SNIPPET(spelling, note, results, operands, body) {spelling, note, results, operands, body},
#include "snippets_matrix.def"
#define SNIPPET(spelling, note, results, operands, body) {spelling, note, results, operands, body},
#include "snippets_cluster.def"
#define SNIPPET(spelling, note, results, operands, body) {spelling, note, results, operands, body},
#include "snippets_async.def"
};

static struct combo_slot snippet_slot(char letter)
{
    static const struct {
        char letter;
        enum ptx_type type;
    } matrices[] = {{'H', PTX_F16}, {'B', PTX_BF16}, {'T', PTX_TF32}, {'F', PTX_F32}, {'W', PTX_B32}};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        if (matrices[i].letter == letter)
            return (struct combo_slot){32, input_of_matrix(matrices[i].type, 32)};
    if (letter == 'D')
        return (struct combo_slot){64, input_of_matrix(PTX_F64, 64)};
    unsigned bits = letter == 'p' ? 1 : letter == 'h' ? 16 : letter == 'u' ? 32 : 64;
    return (struct combo_slot){(uint8_t)bits, input_of_type(bits == 1 ? PTX_PRED : PTX_TYPE_NONE, bits)};
}

static void snippet_body(const char *body, const char *spelling, struct out *to)
{
    size_t word = strcspn(spelling, " ");
    for (; *body; body++) {
        if (*body == '$')
            out_bytes(to, spelling, word);
        else if (*body == '#')
            out_cstr(to, spelling[word] ? spelling + word + 1 : "");
        else
            out_char(to, *body);
    }
    out_char(to, '\0');
}

// Adds the combination of a spelling without choices. The form's name points into the label.
static int snippet_add(struct combos *all, const struct snippet *s, const char *spelling)
{
    struct combo c = {.group = COMBO_BLOCK, .clusters = strstr(s->note, "cluster") != NULL};
    struct ptx_form *form = mem_zalloc(1, sizeof *form);
    struct out text;
    char *label;
    if (!form || vec_push(&all->forms, form) || out_to_memory(&text))
        return -ENOMEM;
    snippet_body(s->body, spelling, &text);
    c.text = strdup(text.buf);
    out_close(&text);
    if (!c.text || asprintf(&label, "%s%s", spelling, s->note) < 0)
        return -ENOMEM;
    c.label = label;
    ptx_form_decode((struct str){label, strcspn(spelling, " ")}, form);
    c.form = form;
    for (const char *p = s->results; *p; p++)
        c.out[c.nout++] = snippet_slot(*p);
    for (const char *p = s->operands; *p; p++)
        c.in[c.nin++] = snippet_slot(*p);
    return vec_push(&all->list, c);
}

// Adds the combinations of a spelling whose first `done` characters contain no choice any more.
static int snippet_expand(struct combos *all, const struct snippet *s, const char *spelling, size_t done)
{
    char line[256];
    const char *open = strchr(spelling + done, '{');
    if (!open)
        return snippet_add(all, s, spelling);
    const char *close = strchr(open, '}');
    for (const char *at = open + 1;; at++) {
        const char *end = at + strcspn(at, ",}");
        snprintf(line, sizeof line, "%.*s%.*s%s", (int)(open - spelling), spelling, (int)(end - at), at,
                 close + 1);
        int err = snippet_expand(all, s, line, (size_t)(open - spelling));
        if (err || end == close)
            return err;
        at = end;
    }
}

static int snippets_add(struct combos *all)
{
    int err = 0;
    for (size_t i = 0; i < sizeof snippets / sizeof *snippets && !err; i++)
        err = snippet_expand(all, &snippets[i], snippets[i].spelling, 0);
    return err;
}

// Functions of (a, b): one that computes, one that calls itself, one that some lanes leave early.
static const char snippets_header[] =
    ".global .align 16 .b8 globals[1024];\n"
    ".func (.param .b32 r) golden_mix(.param .b32 a, .param .b32 b)\n{\n    .reg .b32 x, y;\n"
    "    ld.param.b32 x, [a];\n    ld.param.b32 y, [b];\n    mad.lo.u32 x, x, 31, y;\n    xor.b32 x, x, "
    "0x5bd1;\n"
    "    st.param.b32 [r], x;\n    ret;\n}\n"
    ".func (.param .b32 r) golden_depth(.param .b32 a, .param .b32 b)\n{\n    .reg .b32 x, y, z;\n"
    "    .reg .pred p;\n    .param .b32 c, d, e;\n    ld.param.b32 x, [a];\n    ld.param.b32 y, [b];\n"
    "    and.b32 z, y, 15;\n    setp.eq.u32 p, z, 0;\n    @p bra END;\n    sub.u32 z, z, 1;\n"
    "    add.u32 x, x, y;\n    st.param.b32 [c], x;\n    st.param.b32 [d], z;\n"
    "    call (e), golden_depth, (c, d);\n    ld.param.b32 z, [e];\n    mad.lo.u32 x, z, 3, y;\n"
    "END:\n    st.param.b32 [r], x;\n    ret;\n}\n"
    ".func (.param .b32 r) golden_early(.param .b32 a, .param .b32 b)\n{\n    .reg .b32 x, y;\n    .reg "
    ".pred p;\n"
    "    ld.param.b32 x, [a];\n    ld.param.b32 y, [b];\n    st.param.b32 [r], x;\n    and.b32 x, x, 2;\n"
    "    setp.ne.u32 p, x, 0;\n    @p ret;\n    st.param.b32 [r], y;\n    ret;\n}\n\n";

#endif
