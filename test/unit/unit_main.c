// SPDX-License-Identifier: MIT
// The program around the test files of a module. BUILD/test/NAME_test is a link to it; called by that name,
// it runs the tests of NAME_test.c and no others, so that a process is never shared by two files. An argument
// is a pattern, with * and ?, of the tests to run. Called by its own name, the program lists its files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit_group.h"

static struct unit_group *groups;

void unit_add(struct unit_group *group)
{
    group->next = groups;
    groups = group;
}

unsigned unit_cases(unsigned n)
{
    const char *all = getenv("TEST_ALL");
    return UNIT_SANITIZED && all && !strcmp(all, "0") ? n / 8 : n;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash ? slash + 1 : argv[0];
    struct unit_group *g = groups;
    while (g && strcmp(g->name, name))
        g = g->next;
    if (argc > 2 || (argc > 1 && !g)) {
        fprintf(stderr, "usage: %s [PATTERN]\n", argv[0]);
        return 2;
    }
    if (g) {
        if (argc > 1)
            cmocka_set_test_filter(argv[1]);
        return g->run();
    }
    for (g = groups; g; g = g->next)
        puts(g->name);
    return 0;
}
