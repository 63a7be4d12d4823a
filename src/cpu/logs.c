// SPDX-License-Identifier: MIT
// The last messages, by number: message n is in line n % LINES as long as n + LINES > total. An iterator is
// the number of the next message to read.
//
// A callback gets each message that was added since it was registered once, after the call that caused it has
// released its locks. The entry of a callback is free if it is not registered and running == 0.
//
//   running: threads in the callback. Unregistering waits until it is 0, except in a thread that is in a
//            callback itself: the other thread may be waiting for it
#include "cpu/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/cpu.h"

enum { LINES = 50, ROOM = 512, CALLBACKS = 32 };  // 25,600 bytes of lines in all, as NVIDIA's driver has
static const char lost[] = "(earlier messages are lost)\n";

struct CUlogsCallbackEntry_st {
    CUlogsCallback fn;  // NULL: not registered
    void *data;
    unsigned since, running;
};

// A leaf; not held while a callback runs. Numbers are compared without regard to overflow: nobody sends four
// billion messages.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;  // a callback has returned
static struct {
    size_t len;
    char text[ROOM];  // with a newline
} lines[LINES];
static unsigned total, delivered;  // delivered: messages that callbacks have got
// True if delivered < total, a moment ago. Relaxed: the thread that adds a message checks it itself.
static atomic_bool news;
static struct CUlogsCallbackEntry_st callbacks[CALLBACKS];
static _Thread_local const struct CUlogsCallbackEntry_st *inside;  // the callback that this thread is in

void logs_add(const char *text, size_t len)
{
    if (len > ROOM - 1)
        len = ROOM - 1;
    mutex_lock(&lock);
    char *to = lines[total % LINES].text;
    memcpy(to, text, len);
    to[len] = '\n';
    lines[total++ % LINES].len = len + 1;
    atomic_store_explicit(&news, true, memory_order_relaxed);
    mutex_unlock(&lock);
}

struct message {
    unsigned number;
    size_t len;
    char text[ROOM];
};

// Copies the next message for callbacks. Returns false if there is none.
static bool next_undelivered(struct message *m)
{
    mutex_lock(&lock);
    if (delivered + LINES < total)
        delivered = total - LINES;
    bool found = delivered < total;
    if (found) {
        m->number = delivered;
        m->len = lines[delivered % LINES].len - 1;
        memcpy(m->text, lines[delivered++ % LINES].text, m->len);
        m->text[m->len] = 0;
    }
    atomic_store_explicit(&news, delivered < total, memory_order_relaxed);
    mutex_unlock(&lock);
    return found;
}

// Calls a callback with its own copy of the text, which it may write to.
static void deliver_one(struct CUlogsCallbackEntry_st *e, const struct message *m)
{
    mutex_lock(&lock);
    if (e->fn && m->number >= e->since) {
        struct message own = *m;
        CUlogsCallback fn = e->fn;
        void *data = e->data;
        e->running++;
        mutex_unlock(&lock);
        inside = e;
        fn(data, CU_LOG_LEVEL_ERROR, own.text, own.len);
        inside = NULL;
        mutex_lock(&lock);
        e->running--;
        pthread_cond_broadcast(&ended);
    }
    mutex_unlock(&lock);
}

// Messages that a callback causes are delivered after it has returned.
void logs_notify(void)
{
    struct message m;
    if (inside || !atomic_load_explicit(&news, memory_order_relaxed))
        return;
    while (next_undelivered(&m)) {
        for (unsigned i = 0; i < CALLBACKS; i++)
            deliver_one(&callbacks[i], &m);
    }
}

CUresult cuLogsRegisterCallback(CUlogsCallback fn, void *data, CUlogsCallbackHandle *out)
{
    unsigned i = 0;
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&lock);
    while (i < CALLBACKS && (callbacks[i].fn || callbacks[i].running))
        i++;
    if (i < CALLBACKS)
        callbacks[i] = (struct CUlogsCallbackEntry_st){fn, data, total, 0};
    mutex_unlock(&lock);
    if (i < CALLBACKS && out)
        *out = &callbacks[i];
    return i < CALLBACKS ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// The program may free the callback's data as soon as this returns.
CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
    struct CUlogsCallbackEntry_st *e = NULL;
    mutex_lock(&lock);
    for (unsigned i = 0; i < CALLBACKS; i++) {
        if (handle == &callbacks[i] && callbacks[i].fn)
            e = &callbacks[i];
    }
    if (e)
        e->fn = NULL;
    while (e && e->running && !inside)
        pthread_cond_wait(&ended, &lock);
    mutex_unlock(&lock);
    return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsCurrent(CUlogIterator *out, unsigned int flags)
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&lock);
    *out = total;
    mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

// Copies the messages from number `from` on, or as many of the last ones as fit, with a remark if some are
// missing. Returns the number of bytes.
static size_t dump(CUlogIterator *from, char *to, size_t room, bool *fits)
{
    mutex_lock(&lock);
    unsigned wanted = from ? *from : 0, oldest = total > LINES ? total - LINES : 0;
    unsigned first = wanted < oldest ? oldest : wanted, begin = total;
    size_t used = 0;
    for (; begin > first && used + lines[(begin - 1) % LINES].len <= room; begin--)
        used += lines[(begin - 1) % LINES].len;
    bool cut = begin > wanted && begin != total;
    // The oldest messages make room for the remark.
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
    mutex_unlock(&lock);
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
