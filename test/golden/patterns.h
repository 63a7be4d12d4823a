// SPDX-License-Identifier: MIT
// patterns.def as a PTX text.
#ifndef MOAT_TEST_GOLDEN_PATTERNS_H
#define MOAT_TEST_GOLDEN_PATTERNS_H

#include "combos.h"

static const struct {
    const char *spelling, *operands;
} patterns[] = {
#define PATTERN(spelling, operands) {spelling, operands},
#include "patterns.def"
};

// Returns the letter of the register that operand i of a form takes.
static char pattern_letter(const struct ptx_form *f, unsigned i)
{
    enum ptx_type t = fit_type(f, i);
    unsigned bits = t != PTX_TYPE_NONE ? ptx_type_bits(t) : 32;
    if (f->rules[i].fit == PTX_FIT_WIDE && ptx_form_has(f, PTX_MOD_WIDE))
        bits = 2 * ptx_type_bits(f->types[0]);
    if (f->rules[i].fit == PTX_FIT_64)
        bits = 64;
    return bits == 1 ? 'p' : bits <= 16 ? 'h' : bits == 32 ? 'u' : bits == 64 ? 'l' : 'x';
}

static void pattern_operand(char letter, unsigned i, struct out *to)
{
    if (letter == 'P')
        out_fmt(to, "p%u|p%u", i, i + 5);
    else if (letter == 'U')
        out_fmt(to, "u%u|p%u", i, i + 5);
    else if (letter == 'a')
        out_lit(to, "[l9]");
    else if (letter == 'n')
        out_fmt(to, "!p%u", i);
    else
        out_fmt(to, "%c%u", letter, i);
}

// Writes a register for operand i, or as many as the form's vector has.
static void pattern_register(const struct ptx_form *f, unsigned i, struct out *to)
{
    char letter = pattern_letter(f, i);
    unsigned role = f->rules[i].role;
    if (role >= PTX_ROLE_MEM_READ && role <= PTX_ROLE_MEM_ATOMIC)
        letter = 'a';
    if (f->vec == 1 || letter == 'a') {
        pattern_operand(letter, i, to);
        return;
    }
    for (unsigned k = 0; k < f->vec; k++)
        out_fmt(to, "%s%c%u", k ? ", " : "{", letter, k);
    out_char(to, '}');
}

static void pattern_line(struct str spelling, const char *operands, struct out *to)
{
    struct ptx_form f;
    ptx_form_decode(spelling, &f);
    out_fmt(to, "    " STR_FMT " ", STR_ARG(spelling));
    if (strchr(operands, ',')) {
        out_cstr(to, operands);
    } else {
        unsigned n = *operands ? (unsigned)strlen(operands) : f.nneeded;
        for (unsigned i = 0; i < n; i++) {
            out_cstr(to, i ? ", " : "");
            if (*operands && operands[i] != '.')
                pattern_operand(operands[i], i, to);
            else
                pattern_register(&f, i, to);
        }
    }
    out_lit(to, ";\n");
}

// Writes the lines of a spelling whose first `done` characters contain no choice any more.
static void pattern_expand(struct str spelling, size_t done, const char *operands, struct out *to)
{
    char line[256];
    const char *open = memchr(spelling.ptr + done, '{', spelling.len - done);
    if (!open) {
        pattern_line(spelling, operands, to);
        return;
    }
    size_t before = (size_t)(open - spelling.ptr);
    const char *close = memchr(open, '}', spelling.len - before);
    for (const char *at = open + 1;; at++) {
        const char *end = at + strcspn(at, ",}");
        int len = snprintf(line, sizeof line, "%.*s%.*s%.*s", (int)before, spelling.ptr, (int)(end - at), at,
                           (int)(spelling.ptr + spelling.len - close - 1), close + 1);
        pattern_expand((struct str){line, (size_t)len}, before + (size_t)(end - at), operands, to);
        at = end;
        if (end == close)
            return;
    }
}

static void patterns_print(struct out *to)
{
    out_cstr(to, ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry patterns()\n{\n"
                 "    .reg .pred p<10>;\n    .reg .b16 h<10>;\n    .reg .b32 u<10>;\n    .reg .b64 l<10>;\n"
                 "    .reg .b128 x<10>;\n");
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        pattern_expand(str_from(patterns[i].spelling), 0, patterns[i].operands, to);
    out_cstr(to, "    ret;\n}\n");
}

#endif
