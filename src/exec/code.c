// SPDX-License-Identifier: MIT
// Addresses of functions: in the upper half of the local window, which no thread's local memory reaches.
#include <pthread.h>

#include "base/vec.h"
#include "exec/exec_program.h"
#include "exec/space.h"

enum { STEP = 16 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;  // rank: leaf
static VEC(const struct exec_func *) functions;
static VEC(uint32_t) unused;

static uint64_t base(void)
{
    return space.local_window + SPACE_WINDOW / 2;
}

uint64_t code_add(const struct exec_func *f)
{
    uint64_t address = 0;
    pthread_rwlock_wrlock(&lock);
    if (unused.len) {
        uint32_t at = unused.items[--unused.len];
        functions.items[at] = f;
        address = base() + (uint64_t)at * STEP;
    } else if (functions.len < SPACE_WINDOW / 2 / STEP && !vec_push(&functions, f)) {
        address = base() + (functions.len - 1) * STEP;
    }
    pthread_rwlock_unlock(&lock);
    return address;
}

void code_remove(uint64_t address)
{
    if (!address)
        return;
    uint32_t at = (uint32_t)((address - base()) / STEP);
    pthread_rwlock_wrlock(&lock);
    functions.items[at] = NULL;
    if (vec_push(&unused, at)) {
        // Out of memory: the address is not reused.
    }
    pthread_rwlock_unlock(&lock);
}

const struct exec_func *code_find(uint64_t address)
{
    uint64_t at = (address - base()) / STEP;
    const struct exec_func *f = NULL;
    pthread_rwlock_rdlock(&lock);
    if (at < functions.len && (address - base()) % STEP == 0)
        f = functions.items[at];
    pthread_rwlock_unlock(&lock);
    return f;
}
