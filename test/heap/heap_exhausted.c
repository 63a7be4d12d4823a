// SPDX-License-Identifier: MIT
// heap_exhausted good|bad: from its middle on the process gets no more memory from the system. `bad` writes
// behind a block after that.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
    char *volatile block = malloc(40);
    volatile char *p = block;  // the compiler does not know its size
    struct rlimit none = {0, 0};
    if (argc != 2 || !p || setrlimit(RLIMIT_AS, &none))
        return 1;
    char *volatile more;  // clang takes an allocation that nothing reads for one that has succeeded
    do
        more = malloc(100000);
    while (more);
    if (strcmp(argv[1], "bad") == 0)
        p[40] = 0;
    free((void *)p);
    puts("done");
    return 0;
}
