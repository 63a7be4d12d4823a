// SPDX-License-Identifier: MIT
// Mutations of PTX for fuzzers. Random bytes rarely parse, so most mutations change whole tokens or
// statements. Included by one file of a fuzzer, which gets LLVMFuzzerCustomMutator from here.
#ifndef MOAT_FUZZ_PTX_MUTATE_H
#define MOAT_FUZZ_PTX_MUTATE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/lexer.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static uint32_t mutate_random(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return below ? (uint32_t)((uint64_t)(*seed >> 8) * below >> 24) : 0;
}

// clang-format off
static const char *const mutate_words[] = {
    "mov.u32", "ld.global.u32", "call", "bra", "ret", ".reg", ".param", ".shared", ".b32", ".pred", ".v2",
    "%r<5>", "%r1", "%p1", "L:", "L", "{", "}", "[", "]", "(", ")", ";", ",", "|", "!", "@%p1", "-", "+",
    "_", "0", "0x10", "1.5", "%tid.x", ".x", ".func", "f", "entry", "=", "<", ">", ":", "foo", "foo.bar",
    ".foo", "/**/", "//\n", ".loc", ".align", "0f00000000", ".branchtargets", ".callprototype", "generic",
};
// clang-format on

// Numbers at the limits of types.
static const char *const mutate_numbers[] = {
    "0",
    "1",
    "2",
    "3",
    "4",
    "7",
    "8",
    "15",
    "16",
    "31",
    "32",
    "33",
    "63",
    "64",
    "65",
    "127",
    "128",
    "255",
    "256",
    "1023",
    "1024",
    "4095",
    "4096",
    "65535",
    "65536",
    "524288",
    "1048576",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "0x7fffffffffffffff",
    "0x8000000000000000",
    "0xffffffffffffffff",
    "0xfffffffffffffff8",
    "0f7F800000",
    "0fFFC00000",
    "0f00000001",
    "0d7FF0000000000000",
    "0d8000000000000000",
};
static const char *const mutate_modifiers[] = {
    ".u8",   ".s8",       ".b8",      ".u16",    ".s16",    ".b16",     ".f16",    ".bf16",     ".f16x2",
    ".u32",  ".s32",      ".b32",     ".f32",    ".u64",    ".s64",     ".b64",    ".f64",      ".b128",
    ".pred", ".v2",       ".v4",      ".global", ".shared", ".local",   ".param",  ".const",    ".sync",
    ".wide", ".lo",       ".hi",      ".cc",     ".rn",     ".rzi",     ".sat",    ".ftz",      ".add",
    ".cas",  ".and",      ".all",     ".extern", ".weak",   ".visible", ".common", ".noreturn", ".uni",
    ".x",    ".volatile", ".acquire", ".to",
};
#define MUTATE_ONE_OF(list, seed) str_from((list)[mutate_random((seed), sizeof(list) / sizeof *(list))])

static bool mutate_is_name(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("_$%", c));
}

// Returns a whole token somewhere in text.
static struct token mutate_pick(struct str text, uint32_t *seed)
{
    size_t at = mutate_random(seed, (uint32_t)text.len);
    while (at && mutate_is_name(text.ptr[at - 1]))
        at--;
    struct lexer l;
    lexer_init(&l, str_skip(text, at));
    lexer_advance(&l);
    return l.tok;
}

static struct str mutate_any_token(struct str text, uint32_t *seed)
{
    return mutate_random(seed, 2) ? MUTATE_ONE_OF(mutate_words, seed) : mutate_pick(text, seed).text;
}

// Returns something that may replace the token: a register for a register, a number for a number.
static struct str mutate_alike(struct str text, struct token t, uint32_t *seed)
{
    if (t.kind == TOK_INT || t.kind == TOK_F32 || t.kind == TOK_F64)
        return MUTATE_ONE_OF(mutate_numbers, seed);
    if (t.kind == TOK_WORD && mutate_random(seed, 2))
        return MUTATE_ONE_OF(mutate_modifiers, seed);
    for (unsigned tries = 0; tries < 16; tries++) {
        struct token other = mutate_pick(text, seed);
        bool regs = t.text.len && t.text.ptr[0] == '%',
             other_regs = other.text.len && other.text.ptr[0] == '%';
        if (other.kind == t.kind && regs == other_regs && !str_eq(other.text, t.text))
            return other.text;
    }
    return t.text;
}

struct mutate_buffer {
    uint8_t *at;
    size_t len, most;
    bool full;
};

static void mutate_put(struct mutate_buffer *b, struct str s)
{
    if (b->full || s.len > b->most - b->len) {
        b->full = true;
        return;
    }
    memcpy(b->at + b->len, s.ptr, s.len);
    b->len += s.len;
}

// Replaces a token of text by one like it, or by none, one or two others.
static void mutate_token(struct str text, uint32_t *seed, struct mutate_buffer *out)
{
    struct token token = mutate_pick(text, seed);
    size_t head = (size_t)(token.text.ptr - text.ptr);
    uint32_t pieces = mutate_random(seed, 3);
    mutate_put(out, (struct str){text.ptr, head});
    if (mutate_random(seed, 4)) {
        mutate_put(out, mutate_alike(text, token, seed));
    } else {
        for (uint32_t i = 0; i < pieces; i++) {
            mutate_put(out, mutate_any_token(text, seed));
            mutate_put(out, STR(" "));
        }
    }
    mutate_put(out, str_skip(text, head + token.text.len));
}

// Returns the statement around a random place: from behind a ';' or a brace to the next ';'.
static struct str mutate_any_statement(struct str text, uint32_t *seed)
{
    size_t at = mutate_random(seed, (uint32_t)text.len), end;
    while (at && !strchr(";{}\n", text.ptr[at - 1]))
        at--;
    const char *stop = memchr(text.ptr + at, ';', text.len - at);
    end = stop ? (size_t)(stop - text.ptr) + 1 : text.len;
    return (struct str){text.ptr + at, end - at};
}

// Puts a statement where another one starts, or in its place.
static void mutate_statement(struct str text, uint32_t *seed, struct mutate_buffer *out)
{
    struct str where = mutate_any_statement(text, seed), what = mutate_any_statement(text, seed);
    size_t head = (size_t)(where.ptr - text.ptr), behind = head + (mutate_random(seed, 2) ? where.len : 0);
    mutate_put(out, (struct str){text.ptr, head});
    if (mutate_random(seed, 4))
        mutate_put(out, what);
    mutate_put(out, str_skip(text, behind));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    uint32_t random = seed;
    struct str text = {(const char *)data, size};
    struct mutate_buffer out = {.at = most && size ? malloc(most) : NULL, .most = most};
    uint32_t kind = mutate_random(&random, 8);
    if (out.at && kind < 3)
        mutate_token(text, &random, &out);
    else if (out.at && kind < 5)
        mutate_statement(text, &random, &out);
    bool use = out.len && !out.full;
    if (use)
        memcpy(data, out.at, out.len);
    free(out.at);
    return use ? out.len : LLVMFuzzerMutate(data, size, most);
}

#endif
