// SPDX-License-Identifier: MIT
// Separate from demangle.c because the renderers in a watched process need this file, and no demangler.
#include <string.h>

#include "report/demangle.h"

enum { LONGEST = 1024 };  // longest mangled name in a sentence

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '.';
}

static size_t word_length(const char *text)
{
    size_t n = 0;
    while (in_name(text[n]))
        n++;
    return n;
}

// Returns the demangled word, which is copied to `name` for the lookup.
static const char *find_word(const struct demangle *d, const char *word, size_t len, char name[LONGEST])
{
    memcpy(name, word, len);
    name[len] = 0;
    return demangle_name(d, name);
}

const char *demangle_text(const struct demangle *d, const char *text, char *buffer, size_t size)
{
    size_t used = 0;
    if (!d || !d->find || !text || !strstr(text, "_Z"))
        return text;
    for (const char *at = text; *at;) {
        char name[LONGEST];
        size_t len = word_length(at), left = size - 1 - used;
        len -= len > 1 && at[len - 1] == '.';  // the sentence's full stop
        len = len ? len : 1;
        bool mangled = len > 2 && len < sizeof name && at[0] == '_' && at[1] == 'Z';
        const char *found = mangled ? find_word(d, at, len, name) : at;
        size_t n = mangled ? strlen(found) : len;
        n = n < left ? n : left;
        memcpy(buffer + used, found, n);
        used += n;
        at += len;
    }
    buffer[used] = 0;
    return buffer;
}
