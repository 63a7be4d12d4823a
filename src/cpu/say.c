// SPDX-License-Identifier: MIT
#include "cpu/say.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "base/vec.h"
#include "cpu/logs.h"
#include "cpu/unsupported.h"

static void put(bool aloud, const char *fmt, va_list args)
{
    char line[512] = "moat: ";
    size_t start = strlen(line), room = sizeof line - start - 1;
    int saved = errno;

    int n = vsnprintf(line + start, room, fmt, args);
    size_t len = start + (n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 127)
            line[i] = '?';
    logs_add(line + start, len - start);
    line[len++] = '\n';
    // A failed write is ignored.
    ssize_t ignored = aloud ? write(STDERR_FILENO, line, len) : 0;
    (void)ignored;
    errno = saved;
}

void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put(true, fmt, args);
    va_end(args);
}

// Adds a message for cuLogs* only.
static void __attribute__((format(printf, 1, 2))) note(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put(false, fmt, args);
    va_end(args);
}

CUresult not_supported(const char *call)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static VEC(const char *) said;
    bool first = true;

    mutex_lock(&lock);
    for (size_t i = 0; i < said.len && first; i++)
        first = strcmp(said.items[i], call) != 0;
    if (first && vec_push(&said, call))
        first = false;  // out of memory: rather silent than repeated without end
    mutex_unlock(&lock);
    (first ? say : note)("%s is not supported by the CPU device", call);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult not_supported_notify(const char *call)
{
    CUresult r = not_supported(call);
    logs_notify();
    return r;
}
