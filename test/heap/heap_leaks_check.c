// SPDX-License-Identifier: MIT
// heap_leaks_check NAME: runs one of the ways in which memory is still in use when a process ends. Each is
// correct: under libmoat-heap.so with --leak-check it must end with status 0 and without output. With "+bug"
// behind the name, one block is leaked besides.
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 12, BLOCKS = 100000, PIECE = 1 << 18, LARGE = 1 << 20, HEAP_BYTES = 64 << 20 };

static void *volatile blocks[BLOCKS];  // volatile: it is only written

// Makes the search for leaks take a while.
static void fill(void)
{
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(32);
}

static void *nothing(void *arg)
{
    return arg;
}

// Keeps starting more threads than the C library keeps stacks of: it frees a vector of each.
static void *start_threads(void *unused)
{
    for (;;) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, nothing, NULL))
                abort();
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    return unused;
}

static void do_threads_end(void)
{
    pthread_t thread;
    fill();
    if (pthread_create(&thread, NULL, start_threads, NULL))
        abort();
    usleep(20000);
}

// The program's threads have ended, but the C library has their stacks, more than it keeps.
static void do_threads_ended(void)
{
    pthread_t threads[THREADS];
    fill();
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, nothing, NULL))
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void *map_at(char *address, size_t size, int flags)
{
    flags |= MAP_PRIVATE | MAP_ANONYMOUS | (address ? MAP_FIXED_NOREPLACE : 0);
    void *p = mmap(address, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

// Allocates a block that only *at points to.
static __attribute__((noinline)) void allocate_at(void **at, size_t size)
{
    *at = malloc(size);
    memset(*at, 0, size);
}

// The kernel makes one mapping of the program's memory and a large block that lies right above it.
static void do_beside_mapped(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void **at = NULL;
    for (int i = 0; i < 100 && !at; i++) {
        blocks[i] = malloc(LARGE);
        at = map_at((char *)((uintptr_t)blocks[i] / page * page) - PIECE, PIECE, 0);
    }
    if (!at)
        abort();
    allocate_at(at, 3000);
}

static sem_t tried;
static bool beside;

static void *in_arena(void *unused)
{
    // The heap that the C library has for this thread begins at a multiple of its largest size.
    char *block = malloc(5000), *start = (char *)((uintptr_t)block & ~((uintptr_t)HEAP_BYTES - 1));
    void **at = map_at(start - PIECE, PIECE, MAP_NORESERVE);
    if (at) {
        allocate_at(at, 3000);
        blocks[1] = block;
        beside = true;
    }
    sem_post(&tried);
    // A thread that ended would leave its heap to the next one.
    while (!at)
        pause();
    return unused;
}

// The same for memory that lies right below a thread's heap, if it is mapped like that. Something else may be
// there, as another thread's stack: then the next thread tries.
static void do_beside_arena(void)
{
    pthread_t thread;
    sem_init(&tried, 0, 0);
    for (int i = 0; i < 8 && !beside; i++) {
        if (pthread_create(&thread, NULL, in_arena, NULL))
            abort();
        while (sem_wait(&tried))
            ;
    }
    if (!beside)
        abort();
    pthread_join(thread, NULL);
}

static void *_Atomic *slots[2];

// Moves a pointer from one place to another; it is in one of them at any time.
static void *move(void *unused)
{
    void *p = malloc(50);
    for (int i = 0;; i ^= 1) {
        atomic_store(slots[i], p);
        atomic_store(slots[!i], NULL);
        usleep(300);
    }
    return unused;
}

static void do_moves(void)
{
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        slots[i] = map_at(NULL, LARGE, 0);
    fill();
    if (pthread_create(&thread, NULL, move, NULL))
        abort();
    usleep(20000);
}

static const struct way {
    const char *name;
    void (*run)(void);
} ways[] = {
    {"threads_end", do_threads_end},     {"threads_ended", do_threads_ended}, {"moves", do_moves},
    {"beside_mapped", do_beside_mapped}, {"beside_arena", do_beside_arena},
};

// So that neither a register nor the stack has the address.
static __attribute__((noinline)) void leak(void)
{
    char *volatile p = malloc(77);
    memset(p, 0, 77);
    p = NULL;
}

static __attribute__((noinline)) void clear_stack(void)
{
    char room[4096];
    memset(room, 0, sizeof room);
    __asm__ volatile("" ::"r"(room) : "memory");
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        size_t length = strlen(ways[i].name);
        if (argc < 2)
            puts(ways[i].name);
        else if (strncmp(argv[1], ways[i].name, length) == 0 &&
                 (!argv[1][length] || argv[1][length] == '+')) {
            if (argv[1][length])
                leak();
            clear_stack();
            ways[i].run();
            return 0;
        }
    }
    return argc > 1;
}
