// SPDX-License-Identifier: MIT
#include "report/report.h"

#include <string.h>

const struct report_row report_rows[REPORT_TYPES] = {
#define ERROR(id, name, family, cwe, text) {name, #family, text, cwe},
#include "report/errors.def"
#undef ERROR
};

int report_type_find(const char *name)
{
    for (int i = 0; i < REPORT_TYPES; i++)
        if (strcmp(report_rows[i].name, name) == 0)
            return i;
    return -1;
}

static bool begins(const char *path, const char *const *names)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *name = slash ? slash + 1 : path;
    for (; name && *names; names++)
        if (strncmp(name, *names, strlen(*names)) == 0)
            return true;
    return false;
}

static bool is_foreign(const struct report_frame *f)
{
    static const char *const objects[] = {"libcudart.", "libcuda.",   "libmoat",   "libc.so",
                                          "ld-linux",   "libpthread", "libstdc++", NULL};
    static const char *const headers[] = {"cuda_runtime.h", "cuda_runtime_api.h", NULL};
    return begins(f->object, objects) || begins(f->file, headers);
}

const struct report_frame *report_frame_of_program(const struct report_stack *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->frames[i].file && !is_foreign(&s->frames[i]))
            return &s->frames[i];
    for (uint32_t i = 0; i < s->count; i++)
        if (s->frames[i].file)
            return &s->frames[i];
    for (uint32_t i = 0; i < s->count; i++)
        if (s->frames[i].function)
            return &s->frames[i];
    return s->count ? &s->frames[0] : NULL;
}
