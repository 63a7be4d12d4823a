// SPDX-License-Identifier: MIT
#include "pass/pass_apart.h"

#include <string.h>

static bool begins(struct str line, const char *with)
{
    size_t length = strlen(with);
    return line.len >= length && !memcmp(line.ptr, with, length);
}

void pass_apart_declare(const char *text, struct out *to)
{
    static const char weak[] = ".weak .func";
    bool in_head = false;
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, '\n');
        struct str line = {at, (size_t)(end - at)};
        if (in_head && begins(line, "{")) {
            out_lit(to, ";\n");
            in_head = false;
        } else if (begins(line, weak)) {
            out_fmt(to, ".extern .func%.*s\n", (int)(line.len - strlen(weak)), at + strlen(weak));
            in_head = true;
        } else if (in_head || begins(line, ".weak .const") || begins(line, ".weak .global")) {
            out_fmt(to, "%.*s\n", (int)line.len, at);
        }
    }
}
