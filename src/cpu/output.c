// SPDX-License-Identifier: MIT
// Output of kernels. It is kept until the host waits for the device, as on a GPU. Where a GPU would lose text
// because its buffer is full, we print it early: so CU_LIMIT_PRINTF_FIFO_SIZE has no visible effect.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mutex.h"
#include "cpu/cpu.h"

enum { CAPACITY = 1 << 20 };  // size of a GPU's buffer

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[CAPACITY];
// Under the lock; read without it as a hint, so relaxed: text from before a wait is visible because of the
// wait itself.
static atomic_size_t used;

static size_t fill(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed);
}

static void drain(void)
{
    size_t n = fill();
    atomic_store_explicit(&used, 0, memory_order_relaxed);
    if (!n)
        return;
    fwrite(text, 1, n, stdout);
    fflush(stdout);
}

void output_append(const char *bytes, size_t len)
{
    mutex_lock(&lock);
    while (len) {
        size_t at = fill(), n = CAPACITY - at;
        if (n > len)
            n = len;
        memcpy(text + at, bytes, n);
        atomic_store_explicit(&used, at + n, memory_order_relaxed);
        bytes += n;
        len -= n;
        if (at + n == CAPACITY)
            drain();
    }
    mutex_unlock(&lock);
}

void output_flush(void)
{
    if (!fill())
        return;
    mutex_lock(&lock);
    drain();
    mutex_unlock(&lock);
}
