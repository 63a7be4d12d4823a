// SPDX-License-Identifier: MIT
#include "base/host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/host_symbol.h"

enum { LINE = 4096 };

// A line of /proc/self/maps: "START-END RIGHTS OFFSET DEVICE INODE   NAME". Returns whether it has the
// address; then *named says whether it is memory of the host's.
static bool look(const char *line, uint64_t address, char *text, size_t size, bool *named)
{
    unsigned long long start, end;
    char rights[5] = "";
    int at = 0;
    if (sscanf(line, "%llx-%llx %4s %*s %*s %*s %n", &start, &end, rights, &at) != 3 || address < start ||
        address >= end)
        return false;
    const char *name = line + at;
    *named = rights[0] == 'r' && strncmp(name, "/dev/", 5) != 0 && strncmp(name, "/memfd:", 7) != 0 &&
             (name[0] != '[' || !strcmp(name, "[stack]") || !strcmp(name, "[heap]"));
    if (!strcmp(name, "[stack]"))
        snprintf(text, size, "the stack of the program");
    else if (!strcmp(name, "[heap]"))
        snprintf(text, size, "the heap of the program");
    else if (*name)
        snprintf(text, size, "a mapping of %s", name);
    else
        snprintf(text, size, "memory of the program");
    return true;
}

// Reads the file line by line. The rest of a line that is too long is a line that is no mapping.
static bool search(int file, uint64_t address, char *text, size_t size)
{
    char buffer[LINE];
    size_t used = 0;
    bool named = false;
    for (;;) {
        ssize_t n = read(file, buffer + used, sizeof buffer - 1 - used);
        if (n <= 0)
            return false;
        used += (size_t)n;
        buffer[used] = 0;
        char *line = buffer, *stop;
        while ((stop = strchr(line, '\n'))) {
            *stop = 0;
            if (look(line, address, text, size, &named))
                return named;
            line = stop + 1;
        }
        used -= (size_t)(line - buffer);
        if (used == sizeof buffer - 1)
            used = 0;
        memmove(buffer, line, used);
    }
}

// Writes what the program calls it. The variable that the compiler makes on the host for one of the device
// has its name, and many programs pass its address to a kernel.
static void name_symbol(const struct host_symbol *symbol, char *text, size_t size)
{
    if (symbol->function)
        snprintf(text, size, "the function %s", symbol->name);
    else
        snprintf(text, size,
                 "the variable %s (if it is a __device__ one, cudaGetSymbolAddress tells its address on the "
                 "device)",
                 symbol->name);
}

bool host_memory_name(uint64_t address, char *text, size_t size)
{
    struct host_symbol symbol;
    int saved = errno, file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool found = file >= 0 && search(file, address, text, size);
    if (file >= 0)
        close(file);
    if (found && host_symbol_find(address, &symbol))
        name_symbol(&symbol, text, size);
    errno = saved;
    return found;
}
