// SPDX-License-Identifier: MIT
#include "guard/ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/modes.h"
#include "base/option_variable.h"
#include "image/ptx_store.h"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

// Returns what an argument says behind the name of an option, as in --output-file=x; NULL: it is another one.
static const char *value_of(const char *argument, const char *option)
{
    size_t n = strlen(option);
    return !strncmp(argument, option, n) && argument[n] == '=' ? argument + n + 1 : NULL;
}

bool ptxas_files(struct str arguments, const char **input, const char **output)
{
    const char *before = "";
    unsigned inputs = 0;
    *input = *output = NULL;
    for (size_t at = 0; at < arguments.len; at += strlen(arguments.ptr + at) + 1) {
        const char *a = arguments.ptr + at, *v;
        if (!memchr(a, '\0', arguments.len - at))
            return false;
        if (!strcmp(before, "-o") || !strcmp(before, "--output-file"))
            *output = a;
        else if ((v = value_of(a, "-o")) || (v = value_of(a, "--output-file")))
            *output = v;
        else if (a[0] != '-' && ends_with(a, ".ptx")) {
            *input = a;
            inputs++;
        }
        before = a;
    }
    return inputs == 1 && *output;
}

// Maps a file until the process ends. Returns false if it is no file with contents.
static bool map(const char *path, struct str *contents)
{
    struct stat about;
    void *p = MAP_FAILED;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &about) && S_ISREG(about.st_mode) && about.st_size > 0)
        p = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (p != MAP_FAILED)
        *contents = (struct str){p, (size_t)about.st_size};
    return p != MAP_FAILED;
}

static void at_end(int status, void *unused)
{
    static char arguments[64 << 10];
    const char *input, *output;
    struct str ptx, code;
    int fd = status ? -1 : open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, arguments, sizeof arguments);
    if (fd >= 0)
        close(fd);
    if (n > 0 && n < (ssize_t)sizeof arguments &&
        ptxas_files((struct str){arguments, (size_t)n}, &input, &output) && map(input, &ptx) &&
        map(output, &code))
        ptx_store_put(code, ptx);
}

// Returns whether somebody will look into kernels, and names the store.
static bool is_wanted(void)
{
    struct option_set set;
    struct options o;
    if (option_read_variable(&set, &o, getenv(OPTION_VARIABLE), NULL, NULL))
        return false;
    bool looks = modes_rewrite(&o) || (o.driver && strstr(o.driver, "libmoat-cpu"));
    bool wanted = o.jit_ptx && o.cache && looks;
    if (wanted)
        ptx_store_use(o.cache_dir, o.cache_size);
    option_free(&set);
    return wanted;
}

// What is registered before ptxas's own handlers runs after them, when its output is complete.
void ptxas_watch(void)
{
    if (!strncmp(program_invocation_short_name, "ptxas", 5) && getenv(OPTION_VARIABLE) && is_wanted())
        on_exit(at_end, NULL);
}
