// SPDX-License-Identifier: MIT
#include "context/names.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "core/lock.h"

// Address space is reserved at the first use, and memory is committed as it is filled. A table of offsets
// finds a text again.
enum { ROOM = 16 << 20, SLOTS = 1 << 16 };

static struct lock lock = LOCK_INIT(NAMES);  // a leaf
static char *room;
static size_t used = 1;  // offset 0 means none
static uint32_t slots[SLOTS];
static unsigned filled;

static uint32_t hash(const char *text, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

static bool have_room(void)
{
    if (!room) {
        void *p =
            mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        room = p == MAP_FAILED ? NULL : p;
    }
    return room;
}

// Requires the lock.
static const char *keep(const char *text, size_t n)
{
    uint32_t at = hash(text, n) % SLOTS;
    for (; slots[at]; at = (at + 1) % SLOTS)
        if (strcmp(room + slots[at], text) == 0)
            return room + slots[at];
    if (n + 1 > ROOM - used || filled > SLOTS / 4 * 3)
        return NULL;
    char *kept = memcpy(room + used, text, n + 1);
    slots[at] = (uint32_t)used;
    used += n + 1;
    filled++;
    return kept;
}

const char *names_keep(const char *text)
{
    if (!text)
        return NULL;
    lock_take(&lock);
    const char *kept = have_room() ? keep(text, strlen(text)) : NULL;
    lock_give(&lock);
    return kept;
}

void names_after_fork(void)
{
    lock_after_fork(&lock);
}
