// SPDX-License-Identifier: MIT
// name_places OBJECT OFFSET...: the functions and lines at places of objects, one frame per line, as a report
// has them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/demangle.h"
#include "report/symbol.h"

static void print_frame(const struct report_frame *f, const struct demangle *demangle)
{
    const char *slash = f->file ? strrchr(f->file, '/') : NULL;
    printf("%s%s", f->inlined ? "+" : "", f->function ? demangle_name(demangle, f->function) : "?");
    if (f->file)
        printf(" %s:%u", slash ? slash + 1 : f->file, f->line);
    printf("\n");
}

int main(int argc, char **argv)
{
    struct symbols *s = symbol_new();
    struct demangler *d = demangle_new();
    struct demangle demangle = demangle_with(d);
    struct arena a;
    arena_init(&a, 0);
    for (int i = 1; i + 1 < argc; i += 2) {
        struct report_frame frame = {.object = argv[i], .offset = strtoull(argv[i + 1], NULL, 0)};
        struct report_stack stack = {1, &frame};
        symbol_stack(s, &a, &stack);
        for (uint32_t j = 0; j < stack.count; j++)
            print_frame(&stack.frames[j], &demangle);
    }
    symbol_free(s);
    demangle_free(d);
    arena_free(&a);
    return 0;
}
