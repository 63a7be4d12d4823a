// SPDX-License-Identifier: MIT
#include "image/ptx_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/mutex.h"

static char folder_name[4096];
static uint64_t folder_size;
static _Atomic bool used;  // release and acquire: the name and the size are complete
static struct cache *opened;

void ptx_store_use(const char *folder, uint64_t size)
{
    snprintf(folder_name, sizeof folder_name, "%s", folder ? folder : "");
    folder_size = size;
    atomic_store_explicit(&used, true, memory_order_release);
}

bool ptx_store_is_used(void)
{
    return atomic_load_explicit(&used, memory_order_acquire);
}

static void open_once(void)
{
    if (cache_open(folder_name[0] ? folder_name : NULL, folder_size, &opened))
        opened = NULL;
}

// Returns NULL if there is no cache.
static struct cache *store(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!ptx_store_is_used())
        return NULL;
    mutex_hold();
    pthread_once(&once, open_once);
    mutex_release();
    return opened;
}

static struct cache_key key_of(struct str code)
{
    return (struct cache_key){.content = code, .pass = "the PTX behind it"};
}

int ptx_store_put(struct str code, struct str ptx)
{
    struct cache *c = store();
    struct cache_key key = key_of(code);
    return c ? cache_put(c, &key, ptx, (struct str){"", 0}) : -EBADF;
}

bool ptx_store_get(struct str code, struct cache_entry *found)
{
    struct cache *c = store();
    struct cache_key key = key_of(code);
    return c && !cache_get(c, &key, found);
}
