// SPDX-License-Identifier: MIT
// The Makefile includes this before each src/*/*_test.c and defines TEST_GROUP as the file's name without .c.
// The file's main becomes a group of tests, one of several in a program of unit_main.c's.
#ifndef MOAT_UNIT_GROUP_H
#define MOAT_UNIT_GROUP_H

struct unit_group {
    const char *name;
    int (*run)(void);
    struct unit_group *next;
};

// Before main: the program offers the group. The caller keeps it.
void unit_add(struct unit_group *group);

// How many of n random cases a test looks at: all of them, but an eighth in a build with sanitizers where
// TEST_ALL is 0. The build without them looks at the same cases, from the first on.
unsigned unit_cases(unsigned n);

#ifdef TEST_GROUP
#define UNIT_JOIN(a, b) a##b
#define UNIT_MAIN(group) UNIT_JOIN(unit_main_, group)
#define UNIT_TEXT(word) #word
#define UNIT_NAME(group) UNIT_TEXT(group)

int UNIT_MAIN(TEST_GROUP)(void);

static __attribute__((constructor)) void unit_add_this(void)
{
    static struct unit_group group = {UNIT_NAME(TEST_GROUP), UNIT_MAIN(TEST_GROUP), 0};
    unit_add(&group);
}

#define main UNIT_MAIN(TEST_GROUP)
#endif

#endif
