// SPDX-License-Identifier: MIT
#include "report/log_name.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "report/text_buffer.h"

static int expand_one(struct text_buffer *b, char what, int pid)
{
    struct utsname host;
    switch (what) {
    case '%': text_buffer_char(b, '%'); return 0;
    case 'p': text_buffer_u64(b, (uint64_t)pid); return 0;
    case 'h': text_buffer_cstr(b, uname(&host) ? "localhost" : host.nodename); return 0;
    default: return -EINVAL;
    }
}

int log_name_expand(const char *template, int pid, char *name, size_t size)
{
    struct text_buffer b;
    text_buffer_init(&b, name, size - 1);
    for (const char *p = template; *p; p++) {
        if (*p != '%')
            text_buffer_char(&b, *p);
        else if (expand_one(&b, *++p, pid))
            return -EINVAL;
    }
    name[b.len] = 0;
    return b.cut ? -ENAMETOOLONG : 0;
}

bool log_name_per_process(const char *template)
{
    for (const char *p = template; (p = strchr(p, '%')) && p[1]; p += 2)
        if (p[1] == 'p')
            return true;
    return false;
}
