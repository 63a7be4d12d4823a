// SPDX-License-Identifier: MIT
// A process keeps the states of its shared events in one file, which it makes for the first of them. A handle
// identifies the file and the place in it; a process that opens the handle maps the page.
#include "cpu/event_share.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/share_file.h"

enum { PAGE = 4096, STATES = 8192, RECENT = 62 };

// Record n has ended if ended[n % RECENT] >= n: that member holds n, or a later record that has ended.
struct state {
    _Atomic uint64_t id;        // id of the event; 0: free
    _Atomic uint64_t recorded;  // number of the last record
    _Atomic uint64_t ended[RECENT];
};
_Static_assert(PAGE % sizeof(struct state) == 0, "a state does not reach over the end of a page");

struct event_share {
    struct state *state;
    void *page;  // its mapping; NULL: the process's own file
    atomic_uint refs;
    struct share_ticket ticket;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards what follows; innermost
static struct state *states;
static int file = -1;
static uint64_t ids;
static unsigned next;

static bool make_file(void)
{
    if (states)
        return true;
    uint64_t size = STATES * sizeof *states;
    int fd = share_file_new(size);
    if (fd < 0)
        return false;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED) {
        close(fd);
        return false;
    }
    states = p;
    file = fd;
    return true;
}

// Takes the state that was freed longest ago, as handles of freed ones may still be in use.
static struct state *take_state(void)
{
    for (unsigned n = 0; n < STATES; n++) {
        struct state *s = &states[next];
        next = (next + 1) % STATES;
        if (!atomic_load_explicit(&s->id, memory_order_relaxed)) {
            memset(s, 0, sizeof *s);
            // Partner: event_share_open in another process.
            atomic_store_explicit(&s->id, ++ids, memory_order_release);
            return s;
        }
    }
    return NULL;
}

struct event_share *event_share_new(void)
{
    struct event_share *s = mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    mutex_lock(&lock);
    s->state = make_file() ? take_state() : NULL;
    if (s->state) {
        s->ticket.size = STATES * sizeof *states;
        s->ticket.offset = (uint64_t)((char *)s->state - (char *)states);
        s->ticket.bytes = sizeof *states;
        s->ticket.id = ids;
    }
    mutex_unlock(&lock);
    if (!s->state || share_file_ticket(&s->ticket, SHARE_EVENT, file)) {
        if (s->state)
            atomic_store_explicit(&s->state->id, 0, memory_order_release);
        mem_free(s);
        return NULL;
    }
    s->refs = 1;
    return s;
}

static bool sound(const struct share_ticket *t)
{
    return t->size == STATES * sizeof(struct state) && t->bytes == sizeof(struct state) &&
           t->offset < t->size && t->offset % sizeof(struct state) == 0 && t->id;
}

static void *map_page(const struct share_ticket *t)
{
    int fd = sound(t) ? share_file_open(t) : -1;
    if (fd < 0)
        return NULL;
    void *p = MAP_FAILED;
    if (share_file_fit(fd, t->size))
        p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                 (off_t)(t->offset & ~(uint64_t)(PAGE - 1)));
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

CUresult event_share_open(const CUipcEventHandle *handle, struct event_share **out)
{
    struct event_share *s = mem_zalloc(1, sizeof *s);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->page = share_file_read(&s->ticket, SHARE_EVENT, handle) ? map_page(&s->ticket) : NULL;
    if (s->page) {
        s->state = (struct state *)((char *)s->page + s->ticket.offset % PAGE);
        s->refs = 1;
        // Partner: take_state in another process.
        if (atomic_load_explicit(&s->state->id, memory_order_acquire) == s->ticket.id) {
            *out = s;
            return CUDA_SUCCESS;
        }
        munmap(s->page, PAGE);
    }
    mem_free(s);
    return CUDA_ERROR_INVALID_HANDLE;
}

void event_share_handle(const struct event_share *s, CUipcEventHandle *out)
{
    share_file_write(&s->ticket, out);
}

void event_share_keep(struct event_share *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void event_share_drop(struct event_share *s)
{
    // acq_rel: the thread that drops the last reference sees the writes of the others.
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
        return;
    if (s->page)
        munmap(s->page, PAGE);
    else
        atomic_store_explicit(&s->state->id, 0, memory_order_release);
    mem_free(s);
}

uint64_t event_share_record(struct event_share *s)
{
    // Partner: event_share_last.
    return atomic_fetch_add_explicit(&s->state->recorded, 1, memory_order_acq_rel) + 1;
}

void event_share_end(struct event_share *s, uint64_t number)
{
    _Atomic uint64_t *at = &s->state->ended[number % RECENT];
    uint64_t old = atomic_load_explicit(at, memory_order_relaxed);
    // Partner: event_share_ended. The stream's earlier writes are visible to those who wait.
    while (old < number && !atomic_compare_exchange_weak_explicit(at, &old, number, memory_order_release,
                                                                  memory_order_relaxed))
        continue;
}

uint64_t event_share_last(const struct event_share *s)
{
    return atomic_load_explicit(&s->state->recorded, memory_order_acquire);
}

bool event_share_ended(const struct event_share *s, uint64_t number)
{
    return atomic_load_explicit(&s->state->ended[number % RECENT], memory_order_acquire) >= number;
}
