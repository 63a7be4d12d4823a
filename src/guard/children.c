// SPDX-License-Identifier: MIT
// --follow-children=no: the programs that this process starts are not watched. The dynamic loader of each of
// them reads LD_PRELOAD, so moat's libraries are removed from it here, before the program reads it.
#include <stdlib.h>
#include <string.h>

#include "base/option_variable.h"
#include "guard/ptxas.h"

static bool is_ours(const char *entry, size_t len)
{
    static const char *const names[] = {"libmoat.so", "libmoat-heap.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (len >= n && memcmp(entry + len - n, names[i], n) == 0 && (len == n || entry[len - n - 1] == '/'))
            return true;
    }
    return false;
}

// Removes moat's libraries from the list in place: the list only becomes shorter.
static void leave(char *list)
{
    char *to = list;
    for (const char *from = list; *from;) {
        size_t len = strcspn(from, ": ");
        bool more = from[len];
        if (len && !is_ours(from, len)) {
            if (to != list)
                *to++ = ':';
            memmove(to, from, len);
            to += len;
        }
        from += len + more;
    }
    *to = 0;
}

static bool is_wanted(const char *text)
{
    struct option_set set;
    struct options options;
    // Almost always the default holds, and nothing is parsed.
    if (!text || !strstr(text, "follow-children") || option_read_variable(&set, &options, text, NULL, NULL))
        return true;
    bool wanted = options.follow_children;
    option_free(&set);
    return wanted;
}

__attribute__((constructor)) static void at_load(void)
{
    char *list = getenv("LD_PRELOAD");
    if (list && !is_wanted(getenv(OPTION_VARIABLE)))
        leave(list);
    ptxas_watch();
}
