// SPDX-License-Identifier: MIT
#include "context/kernel_filter.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/kernel_name.h"
#include "base/mem.h"
#include "core/guard.h"

static struct kernel_name_pattern *pattern;  // written once, before other threads look

bool kernel_filter_start(char *why, size_t size)
{
    const char *text = guard.options.kernel_name;
    return !text || !kernel_name_compile(text, &pattern, why, size);
}

bool kernel_filter_on(void)
{
    return pattern;
}

bool kernel_filter_wants(struct str name)
{
    if (!pattern)
        return true;
    char *text = mem_alloc(name.len + 1);
    if (!text)
        return true;
    memcpy(text, name.ptr, name.len);
    text[name.len] = 0;
    bool wanted = kernel_name_matches(pattern, text);
    mem_free(text);
    return wanted;
}

bool kernel_filter_any(const char *const *names, unsigned n)
{
    bool any = !pattern || !n;
    for (unsigned i = 0; i < n && !any; i++)
        any = !names[i] || kernel_name_matches(pattern, names[i]);
    return any;
}

uint64_t kernel_filter_sum(void)
{
    const char *text = guard.options.kernel_name;
    return text ? XXH3_64bits(text, strlen(text)) : 0;
}
