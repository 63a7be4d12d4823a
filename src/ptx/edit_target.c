// SPDX-License-Identifier: MIT
// Rewrites the .target line for GPUs other than the one it was written for.
#include "ptx/edit.h"

#include <errno.h>

bool edit_target_parse(struct str target, unsigned *arch, char *suffix)
{
    struct str sm = STR("sm_");
    *arch = 0;
    *suffix = 0;
    if (!str_starts(target, sm))
        return false;
    size_t i = sm.len;
    for (; i < target.len && target.ptr[i] >= '0' && target.ptr[i] <= '9' && *arch < 10000; i++)
        *arch = *arch * 10 + (unsigned)(target.ptr[i] - '0');
    if (i == sm.len)
        return false;
    if (i < target.len && (target.ptr[i] == 'a' || target.ptr[i] == 'f'))
        *suffix = target.ptr[i++];
    return i == target.len || target.ptr[i] == ',' || target.ptr[i] == ' ' || target.ptr[i] == '\t';
}

// Returns whether code of that target runs on arch: sm_90a runs on sm_90 alone; a family is an architecture
// and the later ones of its generation.
static bool suffix_holds(unsigned written, char suffix, unsigned arch)
{
    return suffix == 'f' ? written / 10 == arch / 10 && written <= arch : written == arch;
}

int edit_target(struct ptx_module *m, unsigned arch, bool *changed)
{
    unsigned written;
    char suffix;
    *changed = false;
    if (!edit_target_parse(m->target, &written, &suffix))
        return -EINVAL;
    bool keeps = !suffix || suffix_holds(written, suffix, arch);
    if (written <= arch && keeps)
        return 0;
    size_t rest = 0;  // ", debug"
    while (rest < m->target.len && m->target.ptr[rest] != ',')
        rest++;
    char sm[16];
    int len = snprintf(sm, sizeof sm, "sm_%u", written < arch ? written : arch);
    struct str tail = str_skip(m->target, rest);
    char *target = arena_alloc(&m->arena, (size_t)len + tail.len);
    if (!target)
        return -ENOMEM;
    memcpy(mempcpy(target, sm, (size_t)len), tail.ptr, tail.len);
    m->target = (struct str){target, (size_t)len + tail.len};
    *changed = true;
    return 0;
}
