// SPDX-License-Identifier: MIT
// The last messages, by number: message n is in line n % LINES as long as n + LINES > total. An iterator is the number of
// the next message to be read.
#include "cpu/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cpu/cpu.h"

enum { LINES = 50, ROOM = 512, CALLBACKS = 32 };  // of 25,600 bytes in all, as NVIDIA's driver has
static const char lost[] = "(earlier messages are lost)\n";

struct CUlogsCallbackEntry_st {
    CUlogsCallback fn;
    void *data;
};

// A leaf.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    size_t len;
    char text[ROOM];  // with a newline
} lines[LINES];
static unsigned total, told;  // told: to callbacks
static struct CUlogsCallbackEntry_st callbacks[CALLBACKS];

void logs_add(const char *text, size_t len)
{
    if (len > ROOM - 1)
        len = ROOM - 1;
    pthread_mutex_lock(&lock);
    char *to = lines[total % LINES].text;
    memcpy(to, text, len);
    to[len] = '\n';
    lines[total++ % LINES].len = len + 1;
    pthread_mutex_unlock(&lock);
}

// The next message that callbacks have not heard, and who shall. False: there is none.
static bool next_untold(char text[ROOM], size_t *len, struct CUlogsCallbackEntry_st to[CALLBACKS])
{
    pthread_mutex_lock(&lock);
    if (told + LINES < total)
        told = total - LINES;
    bool found = told < total;
    if (found) {
        *len = lines[told % LINES].len - 1;
        memcpy(text, lines[told++ % LINES].text, *len);
        text[*len] = 0;
        memcpy(to, callbacks, sizeof callbacks);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void logs_tell(void)
{
    struct CUlogsCallbackEntry_st to[CALLBACKS];
    char text[ROOM];
    size_t len;
    while (next_untold(text, &len, to))
        for (unsigned i = 0; i < CALLBACKS; i++)
            if (to[i].fn)
                to[i].fn(to[i].data, CU_LOG_LEVEL_ERROR, text, len);
}

CUresult cuLogsRegisterCallback(CUlogsCallback fn, void *data, CUlogsCallbackHandle *out)
{
    unsigned i = 0;
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    logs_tell();  // what came before is not for it
    pthread_mutex_lock(&lock);
    while (i < CALLBACKS && callbacks[i].fn)
        i++;
    if (i < CALLBACKS)
        callbacks[i] = (struct CUlogsCallbackEntry_st){fn, data};
    pthread_mutex_unlock(&lock);
    if (i < CALLBACKS && out)
        *out = &callbacks[i];
    return i < CALLBACKS ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < CALLBACKS; i++)
        if (handle == &callbacks[i] && callbacks[i].fn) {
            callbacks[i].fn = NULL;
            found = true;
        }
    pthread_mutex_unlock(&lock);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsCurrent(CUlogIterator *out, unsigned int flags)
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    *out = total;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

// Copies messages from number `from` on, and as many of the last as fit; says so if that is not all. Returns their bytes.
static size_t dump(CUlogIterator *from, char *to, size_t room, bool *fits)
{
    pthread_mutex_lock(&lock);
    unsigned wanted = from ? *from : 0, oldest = total > LINES ? total - LINES : 0;
    unsigned first = wanted < oldest ? oldest : wanted, begin = total;
    size_t used = 0;
    for (; begin > first && used + lines[(begin - 1) % LINES].len <= room; begin--)
        used += lines[(begin - 1) % LINES].len;
    bool cut = begin > wanted && begin != total;
    // Room for the remark is taken from the oldest.
    for (; cut && begin < total && used + sizeof lost - 1 > room; begin++)
        used -= lines[begin % LINES].len;
    *fits = wanted >= total || begin < total;
    cut = cut && begin < total;
    used = 0;
    if (cut)
        memcpy(to, lost, used = sizeof lost - 1);
    for (; begin < total; begin++) {
        memcpy(to + used, lines[begin % LINES].text, lines[begin % LINES].len);
        used += lines[begin % LINES].len;
    }
    if (from && *fits)
        *from = total;
    pthread_mutex_unlock(&lock);
    return used;
}

CUresult cuLogsDumpToMemory(CUlogIterator *from, char *buffer, size_t *size, unsigned int flags)
{
    if (!buffer || !size || !*size || flags)
        return CUDA_ERROR_INVALID_VALUE;
    bool fits;
    *size = dump(from, buffer, *size - 1, &fits);
    buffer[*size] = 0;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool write_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        len -= (size_t)n;
    }
    return true;
}

CUresult cuLogsDumpToFile(CUlogIterator *from, const char *path, unsigned int flags)
{
    enum { ALL = LINES * ROOM + sizeof lost };
    if (!path || flags)
        return CUDA_ERROR_INVALID_VALUE;
    char *text = mem_alloc(ALL);
    if (!text)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool fits, good = fd >= 0 && write_all(fd, text, dump(from, text, ALL, &fits));
    if (fd >= 0)
        close(fd);
    mem_free(text);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
