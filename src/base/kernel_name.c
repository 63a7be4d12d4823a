// SPDX-License-Identifier: MIT
#include "base/kernel_name.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { LONGEST = 1024 };  // of names in the source that are matched

struct kernel_name_pattern {
    regex_t regex;
};

int kernel_name_compile(const char *text, struct kernel_name_pattern **out, char *why, size_t size)
{
    struct kernel_name_pattern *p = mem_zalloc(1, sizeof *p);
    *out = NULL;
    if (!p)
        return -ENOMEM;
    int err = regcomp(&p->regex, text, REG_EXTENDED | REG_NOSUB);
    if (err) {
        regerror(err, &p->regex, why, size);
        mem_free(p);
        return err == REG_ESPACE ? -ENOMEM : -EINVAL;
    }
    *out = p;
    return 0;
}

void kernel_name_free(struct kernel_name_pattern *p)
{
    if (p)
        regfree(&p->regex);
    mem_free(p);
}

bool kernel_name_matches(const struct kernel_name_pattern *p, const char *mangled)
{
    char plain[LONGEST];
    return !regexec(&p->regex, mangled, 0, NULL, 0) ||
           (kernel_name_plain(mangled, plain, sizeof plain) && !regexec(&p->regex, plain, 0, NULL, 0));
}

// --- mangled names -----------------------------------------------------------------------------------------

struct text {
    char *at, *end;  // end: of the buffer; its last byte is for the NUL
};

static void add(struct text *to, const char *from, size_t len)
{
    size_t room = (size_t)(to->end - to->at) - 1;
    len = len < room ? len : room;
    memcpy(to->at, from, len);
    to->at += len;
    *to->at = 0;
}

// Appends a name that is written as its length and its letters, and returns what follows; NULL if there is
// none.
static const char *take_name(const char *from, struct text *to)
{
    size_t len = 0;
    if (*from < '1' || *from > '9')
        return NULL;
    for (; *from >= '0' && *from <= '9'; from++)
        if ((len = len * 10 + (size_t)(*from - '0')) > LONGEST)
            return NULL;
    if (strnlen(from, len) < len)
        return NULL;
    if (len >= 10 && !memcmp(from, "_GLOBAL__N", 10))
        add(to, "(anonymous namespace)", 21);
    else
        add(to, from, len);
    return from + len;
}

// Returns what follows template arguments or another bracketed part, which begins before `from`; NULL if it
// does not end. Names are skipped whole, since they may hold any letter.
static const char *skip_arguments(const char *from)
{
    char ignored[2];
    for (unsigned depth = 1; depth; from++) {
        struct text to = {ignored, ignored + sizeof ignored};
        const char *behind = take_name(from, &to);
        if (*from == 'L')  // a literal
            behind = strchr(from, 'E') ? strchr(from, 'E') + 1 : from;
        if (behind == from || !*from)
            return NULL;
        if (behind)
            from = behind - 1;
        else if (*from == 'S' && from[1])  // what stood before: St, S_, S0_
            from++;
        else
            depth += (strchr("IJNX", *from) != NULL) - (*from == 'E');
    }
    return from;
}

bool kernel_name_plain(const char *mangled, char *plain, size_t size)
{
    struct text to = {plain, plain + size};
    const char *from = mangled + 2;
    bool nested = false;
    if (!strncmp(mangled, "_Z", 2)) {
        nested = *from == 'N';
        from += nested;
        from += *from == 'L';  // of one file
        for (from = take_name(from, &to); nested && from; from = take_name(from, &to)) {
            if (*from == 'I')
                from = skip_arguments(from + 1);
            if (!from || *from == 'E')
                break;
            from += *from == 'L';
            add(&to, "::", 2);
        }
        if (from)
            return true;
    }
    to.at = plain;
    add(&to, mangled, strlen(mangled));
    return false;
}
