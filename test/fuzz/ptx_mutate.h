// SPDX-License-Identifier: MIT
// Mutations of PTX for fuzzers. Random bytes rarely parse: half of the mutations change whole tokens instead.
// Included by one file of a fuzzer, which gets LLVMFuzzerCustomMutator from here.
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

static struct lexer mutate_lexer(struct str text, uint32_t *seed)
{
    struct lexer l;
    lexer_init(&l, str_skip(text, mutate_random(seed, (uint32_t)text.len)));
    lexer_advance(&l);
    return l;
}

static struct str mutate_any_token(struct str text, uint32_t *seed)
{
    if (mutate_random(seed, 2))
        return str_from(mutate_words[mutate_random(seed, sizeof mutate_words / sizeof *mutate_words)]);
    return mutate_lexer(text, seed).tok.text;
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

// Replaces a token of text by none, one or two others.
static void mutate_token(struct str text, uint32_t *seed, struct mutate_buffer *out)
{
    struct str token = mutate_lexer(text, seed).tok.text;
    size_t head = (size_t)(token.ptr - text.ptr);
    uint32_t pieces = mutate_random(seed, 3);
    mutate_put(out, (struct str){text.ptr, head});
    for (uint32_t i = 0; i < pieces; i++) {
        mutate_put(out, mutate_any_token(text, seed));
        mutate_put(out, STR(" "));
    }
    mutate_put(out, str_skip(text, head + token.len));
}

// The statement around a random place: from behind a ';' or a brace to the next ';'.
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
    uint32_t kind = mutate_random(&random, 4);
    if (out.at && kind == 0)
        mutate_token(text, &random, &out);
    else if (out.at && kind == 1)
        mutate_statement(text, &random, &out);
    bool use = out.len && !out.full;
    if (use)
        memcpy(data, out.at, out.len);
    free(out.at);
    return use ? out.len : LLVMFuzzerMutate(data, size, most);
}

#endif
