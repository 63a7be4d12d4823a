// SPDX-License-Identifier: MIT
#include "report/brief_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (is_word(at[n]))
        n++;
    return n;
}

// Returns whether a namespace is a version: THRUST_300001_SM_900_NS, CUB_300001_SM_900, __4.
static bool is_version(struct str word)
{
    static const char *const names[] = {"THRUST_", "CUB_"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_starts(word, str_from(names[i])))
            return word.len > strlen(names[i]) && isdigit((unsigned char)word.ptr[strlen(names[i])]);
    for (size_t i = 2; i < word.len; i++)
        if (!isdigit((unsigned char)word.ptr[i]))
            return false;
    return word.len > 2 && str_starts(word, STR("__"));
}

// Removes in place the namespaces that are versions.
static void drop_versions(char *text)
{
    char *to = text;
    for (const char *at = text; *at;) {
        size_t n = word_length(at);
        if (!n) {
            *to++ = *at++;
        } else if (at[n] == ':' && at[n + 1] == ':' && is_version((struct str){at, n})) {
            at += n + 2;
        } else {
            memmove(to, at, n);
            to += n;
            at += n;
        }
    }
    *to = 0;
}

// Returns the length of the word "operator" with the signs of its name behind it; 0 if none is there.
static size_t operator_length(const char *at)
{
    size_t n = word_length(at);
    if (n != 8 || strncmp(at, "operator", 8) != 0)
        return 0;
    if (strncmp(at + n, "()", 2) == 0 || strncmp(at + n, "[]", 2) == 0)
        return n + 2;
    while (at[n] && strchr("<>=-!+*/%^&|~,", at[n]))
        n++;
    return n;
}

// Returns the length of what is between brackets, with them; 0 if they are not closed. Brackets of the
// other kinds inside hide theirs: f<(A)1>, f(B<2>).
static size_t bracket_length(const char *at)
{
    char open[64];
    size_t depth = 0, i = 0;
    for (; at[i]; i++) {
        size_t sign = i && is_word(at[i - 1]) ? 0 : operator_length(at + i);
        if (sign) {
            i += sign - 1;
            continue;
        }
        bool arrow = i && at[i] == '>' && at[i - 1] == '-';
        if (strchr("<({", at[i])) {
            if (depth == sizeof open)
                return 0;
            open[depth++] = at[i] == '<' ? '>' : at[i] == '(' ? ')' : '}';
        } else if (strchr(">)}", at[i]) && !arrow) {
            if (open[depth - 1] != at[i])
                return 0;
            if (!--depth)
                return i + 1;
        }
    }
    return 0;
}

// Replaces in place what is between brackets by three dots; nothing if a bracket is not closed.
static void collapse(char *text, char open)
{
    char *to = text;
    for (const char *at = text; *at;) {
        size_t n = operator_length(at);
        if (!n)
            n = word_length(at);
        if (n) {
            memmove(to, at, n);
            to += n;
            at += n;
            continue;
        }
        n = *at == open || *at == '{' ? bracket_length(at) : 0;
        bool kept = n <= 5 || *at == '{' || strncmp(at, "(anonymous namespace)", 21) == 0;
        if (n && !kept) {
            *to++ = open;
            memcpy(to, "...", 3);
            to += 3;
            *to++ = at[n - 1];
            at += n;
        } else {
            n = n ? n : 1;
            memmove(to, at, n);
            to += n;
            at += n;
        }
    }
    *to = 0;
}

// Adds the next source name of a mangled name, "6detail", and returns what is behind it; NULL if none is
// there.
static const char *add_part(const char *at, char *text, size_t size)
{
    size_t n = 0, used = strlen(text);
    const char *word = at;
    while (isdigit((unsigned char)*word) && n < size)
        n = n * 10 + (size_t)(*word++ - '0');
    if (!n || strnlen(word, n) < n || used + n + 8 > size)
        return NULL;
    snprintf(text + used, size - used, "%s%.*s", used ? "::" : "", (int)n, word);
    return word + n;
}

// Writes the readable beginning of a mangled name that the C++ library cannot demangle, since it is older
// than the compiler: the names before the first template arguments or parameters. Returns false if it has
// none.
static bool read_beginning(const char *name, char *text, size_t size)
{
    const char *at = name + 2, *next;
    text[0] = 0;
    bool nested = *at == 'N';
    for (at += nested; *at == 'r' || *at == 'V' || *at == 'K' || *at == 'L'; at++)
        ;
    if (strncmp(at, "St", 2) == 0) {
        strcpy(text, "std");
        at += 2;
    }
    while ((next = add_part(at, text, size)) && (at = next) && nested)
        at += *at == 'L';
    if (!text[0] || strcmp(text, "std") == 0)
        return false;
    strcat(text, *at == 'I' ? "<...>" : nested && *at != 'E' ? "..." : "(...)");
    return true;
}

const char *brief_name(const char *name, char *buffer, size_t size)
{
    enum { BEGINNING = 60 };
    size_t n = strlen(name);
    if (n <= BRIEF_NAME_MOST || n >= size)
        return name;
    if (strncmp(name, "_Z", 2) == 0) {
        if (read_beginning(name, buffer, size))
            drop_versions(buffer);
        else
            snprintf(buffer, size, "%.*s...", BEGINNING, name);
        return buffer;
    }
    memcpy(buffer, name, n + 1);
    drop_versions(buffer);
    if (strlen(buffer) > BRIEF_NAME_MOST)
        collapse(buffer, '<');
    if (strlen(buffer) > BRIEF_NAME_MOST)
        collapse(buffer, '(');
    return buffer;
}
