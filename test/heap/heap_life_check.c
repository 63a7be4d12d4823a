// SPDX-License-Identifier: MIT
// heap_life_check NAME: runs one of the ways in which a process lives and ends. Each is correct: under
// libmoat-heap.so it must end with status 0 and without output. With "+bug" behind the name, a block is
// overrun where the error is easiest to miss.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static size_t bug;  // bytes written behind the end
static char *early;
static char *volatile held;  // the last block, where a search for leaks finds it

static __attribute__((constructor)) void before_main(void)
{
    early = malloc(100);
}

static __attribute__((noinline)) char *fill(size_t size)
{
    char *p = malloc(size);
    memset(p, 1, size);
    return p;
}

// Allocates and frees until the thread's window was full several times; leaves nothing allocated.
static void churn(int rounds)
{
    char *blocks[100] = {0};
    unsigned seed = 1;
    for (int i = 0; i < rounds; i++) {
        seed = seed * 1664525 + 1013904223;
        unsigned k = seed >> 16;
        free(blocks[k % 100]);
        blocks[k % 100] = fill(1 + k % 300);
    }
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
}

static __attribute__((noinline)) void overrun(char *p, size_t size)
{
    volatile char *v = p;
    if (bug)
        v[size] ^= 1;
}

static void ends(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid || status)
        abort();
}

static void do_fork(void)
{
    churn(20000);
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            churn(20000);
            char *p = fill(50);
            if (i == 4)
                overrun(p, 50);
            usleep(20000);
            exit(0);
        }
        churn(5000);
        ends(pid);
    }
}

// A child that stays and allocates little is monitored while it runs; it is killed, so there is no check at
// its end.
static void stay(size_t size)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct stat log = {0};
        char *blocks[100];
        usleep(50000);
        for (int i = 0; i < 100; i++)
            blocks[i] = fill(size);
        for (int i = 0; i < 100; i++)
            free(blocks[i]);
        char *p = fill(50);
        overrun(p, 50);
        for (int i = 0; i < (bug ? 2000 : 5) && log.st_size == 0; i++) {
            usleep(10000);
            fstat(STDERR_FILENO, &log);
        }
        kill(getpid(), SIGKILL);
    }
    if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
        exit(1);
}

static void do_fork_stays(void)
{
    stay(2000);
}

static void do_fork_stays_small(void)
{
    stay(40);
}

static atomic_int running;

static void *churn_thread(void *arg)
{
    do
        churn(500);
    while (running);
    return fill(33);  // freed by the thread that joins
}

// Resizes a block that holds the only pointers to others. arg: where a search for leaks finds it.
static void *resize_thread(void *arg)
{
    char **volatile nowhere, **volatile *found = arg ? arg : &nowhere;
    char **p = *found = realloc(realloc(fill(50), 70), 200);
    for (int i = 0; i < 20; i++)
        p[i] = fill(33);
    for (size_t i = 0; running; i++)
        *found = p = realloc(p, 260 + i % 40);  // in place
    for (int i = 0; i < 20; i++)
        free(p[i]);
    return p;
}

// Forks while other threads are at work; the child has one thread, and their blocks.
static void fork_beside(void *(*work)(void *arg), int forks)
{
    pthread_t threads[4];
    running = 1;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < forks; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            churn(3000);
            held = fill(50);
            overrun(held, i == forks - 1 ? 50 : 49);
            exit(0);
        }
        ends(pid);
    }
    running = 0;
    for (int i = 0; i < 4; i++) {
        void *p;
        pthread_join(threads[i], &p);
        free(p);
    }
}

static void do_fork_threads(void)
{
    fork_beside(churn_thread, 20);
}

// In the child, a block that was being resized stays as it is.
static void do_fork_resizes(void)
{
    fork_beside(resize_thread, 50);
}

// A process and a child of it end while other threads resize: nothing is a leak.
static void exit_beside(bool last)
{
    static char **volatile found[2];
    pthread_t threads[2];
    running = 1;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, resize_thread, (void *)&found[i]);
    usleep(10000);
    pid_t pid = fork();
    if (pid == 0)
        exit(0);
    ends(pid);
    held = fill(50);
    overrun(held, last ? 50 : 49);
    exit(0);
}

static void do_exit_resizes(void)
{
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0)
            exit_beside(i == 19);
        ends(pid);
    }
}

static void *leave_pending(void *arg)
{
    char **slot = arg;
    churn(3000);
    *slot = fill(77);
    overrun(*slot, 77);
    return NULL;
}

// Threads end with full windows; more in all than at once.
static void do_threads(void)
{
    char *left[200];
    size_t wanted = bug;
    for (int i = 0; i < 200; i += 10) {
        pthread_t threads[10];
        bug = i < 190 ? 0 : wanted;
        for (int k = 0; k < 10; k++)
            pthread_create(&threads[k], NULL, leave_pending, &left[i + k]);
        for (int k = 0; k < 10; k++)
            pthread_join(threads[k], NULL);
    }
    for (int i = 0; i < 200; i++)
        free(left[i]);
}

static atomic_int signals;

static void on_signal(int number)
{
    int saved = errno;
    signals++;
    free(fill(20));  // not allowed, but programs do it
    errno = saved;
}

// A timer interrupts allocations; handlers allocate where that is allowed: between calls, not inside.
static void do_signals(void)
{
    sigset_t set;
    struct itimerval every = {{0, 500}, {0, 500}};
    signal(SIGALRM, on_signal);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    setitimer(ITIMER_REAL, &every, NULL);
    while (signals < 200) {
        sigprocmask(SIG_BLOCK, &set, NULL);
        churn(300);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    char *p = fill(10);
    overrun(p, 10);
    free(p);
}

static sigjmp_buf back;

static void on_fault(int number)
{
    siglongjmp(back, 1);
}

// The program's own fault handler stays in place while the monitor reads memory that is mapped and unmapped.
static void do_faults(void)
{
    signal(SIGSEGV, on_fault);
    for (volatile int i = 0; i < 300; i++) {
        char *volatile large = fill(300000);  // mapped, and unmapped when freed
        if (!sigsetjmp(back, 1))
            *(volatile char *)(uintptr_t)(i * 16) = 1;
        free(large);
    }
    char *p = fill(10);
    overrun(p, 10);
    free(p);
}

static jmp_buf out;

static int compare(const void *a, const void *b)
{
    static int calls;
    if (++calls == 500)
        longjmp(out, 1);
    return *(const int *)a - *(const int *)b;
}

// qsort may allocate; it never gets to free.
static void do_longjmp(void)
{
    static int numbers[100000];
    char *p = fill(64);
    for (int i = 0; i < 100000; i++)
        numbers[i] = (i * 7919) % 100003;
    if (!setjmp(out))
        qsort(numbers, 100000, sizeof *numbers, compare);
    overrun(p, 64);
    free(p);
}

static char *late;

static void at_exit(void)
{
    churn(2000);
    overrun(late, 40);
    free(late);
}

static void do_exit_order(void)
{
    late = fill(40);
    atexit(at_exit);
}

static void do_exec(void)
{
    char *argv[] = {"/bin/sh", "-c", "exec echo", NULL}, nothing[] = "/tmp/moat-XXXXXX";
    churn(5000);
    // While an execve is under way that then fails, the kernel refuses new threads.
    int fd = mkstemp(nothing);
    bool made = write(fd, "nothing", 7) == 7 && fchmod(fd, 0700) == 0;
    close(fd);
    for (int i = 0; made && i < 5000; i++)
        execv(nothing, argv);
    unlink(nothing);
    pid_t pid;
    posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
    ends(pid);
    pid = vfork();
    if (pid == 0)
        execv("/bin/true", (char *[]){"true", NULL});
    ends(pid);
    char *p = fill(9);
    overrun(p, 9);
    free(p);
}

// Ends without destructors; in the child of a vfork only the child ends.
static void do_exit_now(void)
{
    churn(5000);
    pid_t pid = vfork();
    if (pid == 0)
        _exit(0);
    ends(pid);
    char *p = fill(9);
    overrun(p, 9);
    _exit(0);
}

static void do_quick_exit(void)
{
    char *p = fill(9);
    overrun(p, 9);
    quick_exit(0);
}

static void do_abort(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        char *p = fill(9);
        overrun(p, 9);
        abort();
    }
    if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        exit(1);
}

static void end_in_handler(int number)
{
    _exit(0);
}

// The signal comes anywhere in the process, in the allocator too: the process must end soon.
static void do_exit_in_handler(void)
{
    for (int i = 0; i < 30; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct itimerval once = {{0, 0}, {0, 3000 + 100 * i}};
            signal(SIGALRM, end_in_handler);
            setitimer(ITIMER_REAL, &once, NULL);
            for (;;)
                churn(100);
        }
        ends(pid);
    }
    char *p = fill(9);
    overrun(p, 9);
    signal(SIGTERM, end_in_handler);
    raise(SIGTERM);
}

static void *main_is_gone(void *arg)
{
    usleep(100000);
    churn(5000);
    char *p = fill(9);
    overrun(p, 9);
    free(p);
    exit(0);
}

static void do_main_ends(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, main_is_gone, NULL);
    pthread_exit(NULL);
}

// Ends without a last check, so only the monitor can report. Waits for its report if there is to be one.
static __attribute__((noreturn)) void leave_to_monitor(void)
{
    struct stat s;
    char *p = fill(9);
    overrun(p, 9);
    for (int i = 0; i < 2000 && bug && fstat(STDERR_FILENO, &s) == 0 && !s.st_size; i++)
        usleep(5000);
    usleep(20000);
    syscall(SYS_exit_group, 0);
    abort();
}

// Standard error is another file than it was when the monitor began.
static void do_monitor(void)
{
    int log = dup(STDERR_FILENO), other = open("/dev/null", O_WRONLY);
    dup2(other, STDERR_FILENO);
    usleep(20000);
    dup2(log, STDERR_FILENO);
    leave_to_monitor();
}

static void *main_was_first(void *arg)
{
    usleep(100000);
    leave_to_monitor();
}

// It cannot be seen whether the report has come, so this waits for a fixed time.
static void *main_was_alone(void *arg)
{
    usleep(100000);
    char *p = fill(9);
    overrun(p, 9);
    usleep(bug ? 3000000 : 100000);
    syscall(SYS_exit_group, 0);
    return arg;
}

static void do_monitor_main_ends(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, main_was_first, NULL);
    pthread_exit(NULL);
}

// The main thread ends; standard error is a socket, which no name opens. The other end forwards what comes.
static void do_monitor_socket(void)
{
    int ends_of[2];
    char text[4096];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends_of))
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        dup2(ends_of[1], STDERR_FILENO);
        close(ends_of[0]);
        close(ends_of[1]);
        usleep(50000);
        free(fill(2000));
        pthread_create(&thread, NULL, main_was_alone, NULL);
        pthread_exit(NULL);
    }
    close(ends_of[1]);
    for (ssize_t n; (n = read(ends_of[0], text, sizeof text)) > 0;)
        if (write(STDERR_FILENO, text, (size_t)n) != n)
            abort();
    ends(pid);
}

static void *last_of_all(void *arg)
{
    usleep(50000);
    char *p = fill(9);
    overrun(p, 9);
    return arg;
}

// Only our threads are left: the process must end.
static void do_all_end(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, last_of_all, NULL);
    pthread_exit(NULL);
}

// An idle process costs no CPU time, however many blocks it has, and what it does afterwards is detected.
static void do_idle(void)
{
    struct rusage before, after;
    static char *blocks[100000];
    for (int i = 0; i < 100000; i++)
        memset(blocks[i] = fill(50), 2, 50);
    usleep(600000);
    getrusage(RUSAGE_SELF, &before);
    usleep(1000000);
    getrusage(RUSAGE_SELF, &after);
    int64_t us =
        (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) *
            1000000 +
        after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
    if (us > 30000)
        exit(1);
    leave_to_monitor();
}

// Our threads begin in a child while a pipe is open there, and must not keep its end open.
static void do_holds_nothing(void)
{
    int fds[2];
    char c;
    if (pipe(fds))
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 20; i++) {
            usleep(5000);
            churn(1000);
        }
        close(fds[1]);
        char *p = fill(9);
        overrun(p, 9);
        free(p);
        exit(read(fds[0], &c, 1) != 0);
    }
    close(fds[1]);
    ends(pid);
}

// Daemons close all descriptors.
static void do_close_all(void)
{
    churn(2000);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    churn(2000);
    char *p = fill(9);
    overrun(p, 9);
    free(p);
}

// Blocks of a library that bypasses us; it was loaded to find libc first.
static void do_deepbind(void)
{
    void *library = dlopen(getenv("DEEP_LIBRARY"), RTLD_NOW | RTLD_DEEPBIND);
    if (!library)
        abort();
    char *(*give)(size_t) = (char *(*)(size_t))dlsym(library, "deep_give");
    void (*take)(char *) = (void (*)(char *))dlsym(library, "deep_take");
    for (int i = 1; i < 200; i++) {
        char *p = give((size_t)(i * i));
        memset(p, 1, (size_t)(i * i));
        if (i % 3 == 0)
            p = realloc(p, (size_t)(i * i + 100));
        if (i % 3 == 1)
            take(p);
        else
            free(p);
    }
    dlclose(library);
    char *p = fill(9);
    overrun(p, 9);
    free(p);
}

static void do_api(void)
{
    void *p;
    volatile size_t most = SIZE_MAX;  // compilers know that these fail
    // clang takes an allocation that is only compared with NULL for one that has succeeded.
    void *volatile refused[] = {calloc(most / 2, 3), malloc(most / 2 + 1), malloc(most),
                                reallocarray(NULL, most / 2, 3)};
    if (malloc_usable_size(early) != 100 || posix_memalign(&p, 24, 8) != EINVAL || refused[0] || refused[1] ||
        refused[2] || refused[3])
        abort();
    for (size_t align = 8; align <= 1 << 20; align *= 2)
        for (size_t size = 1; size < 10000; size = size * 5 + 1) {
            if (posix_memalign(&p, align, size) || (uintptr_t)p % align || malloc_usable_size(p) != size)
                abort();
            memset(p, 1, size);
            free(p);
        }
    p = NULL;
    for (size_t size = 1; size < 3000000; size += size / 2 + 1) {
        p = realloc(p, size);
        ((char *)p)[size - 1] = (char)size;
        if (size > 4 && ((char *)p)[0] != 1)
            abort();
    }
    p = realloc(p, 5);
    if (((char *)p)[0] != 1 || malloc_usable_size(p) != 5)
        abort();
    errno = 5;
    free(p);
    free(NULL);
    if (errno != 5)
        abort();
    free(early);
    p = fill(9);
    overrun(p, 9);
    free(p);
}

enum { ANEW = 256 };

static void *anew_thread(void *arg)
{
    char *blocks[ANEW] = {0};
    unsigned seed = 7 + (unsigned)(uintptr_t)arg;
    for (int i = 0; i < 1000000; i++) {
        seed = seed * 1664525 + 1013904223;
        unsigned k = seed >> 16;
        free(blocks[k % ANEW]);
        blocks[k % ANEW] = fill(49 + k / ANEW % 16);
    }
    for (int i = 0; i < ANEW; i++)
        free(blocks[i]);
    return NULL;
}

// A few blocks that are resized all the time, so that the tail of one is a byte of the next: the monitor
// often reads one in the middle of a change.
static void do_anew(void)
{
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, anew_thread, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    char *p = fill(9);
    overrun(p, 9);
    free(p);
}

// Returns the peak resident size: freed memory is reused, so it must not grow.
static long most_resident(void)
{
    struct rusage now;
    getrusage(RUSAGE_SELF, &now);
    return now.ru_maxrss;
}

// Freed blocks are reused, whichever call asks for them.
static void steady_ways(void)
{
    long before = 0;
    for (int i = 0; i < 500000; i++) {
        size_t size = 500 + (size_t)i % 7;
        void *p = NULL;
        if (i == 50000)
            before = most_resident();
        if (i % 5 == 0 && posix_memalign(&p, 16, size))
            abort();
        p = i % 5 == 1   ? aligned_alloc(64, 512)
            : i % 5 == 2 ? calloc(1, size)
            : i % 5 == 3 ? realloc(fill(8), size)
                         : p;
        free(p ? p : fill(size));
    }
    if (most_resident() > before + (16 << 10)) {
        fprintf(stderr, "grew from %ld to %ld KiB\n", before, most_resident());
        exit(1);
    }
}

static void do_steady(void)
{
    struct rusage a, b;
    steady_ways();
    churn(200000);
    getrusage(RUSAGE_SELF, &a);
    churn(3000000);
    for (int i = 0; i < 300; i++)
        free(fill(1 << 20));
    getrusage(RUSAGE_SELF, &b);
    if (b.ru_maxrss > a.ru_maxrss + (60 << 10)) {
        fprintf(stderr, "grew from %ld to %ld KiB\n", a.ru_maxrss, b.ru_maxrss);
        exit(1);
    }
    char *p = fill(9);
    overrun(p, 9);
    free(p);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {{"fork", do_fork},
                {"fork_stays", do_fork_stays},
                {"fork_stays_small", do_fork_stays_small},
                {"fork_threads", do_fork_threads},
                {"fork_resizes", do_fork_resizes},
                {"exit_resizes", do_exit_resizes},
                {"threads", do_threads},
                {"signals", do_signals},
                {"faults", do_faults},
                {"longjmp", do_longjmp},
                {"exit_order", do_exit_order},
                {"exec", do_exec},
                {"exit_now", do_exit_now},
                {"quick_exit", do_quick_exit},
                {"abort", do_abort},
                {"exit_in_handler", do_exit_in_handler},
                {"main_ends", do_main_ends},
                {"monitor", do_monitor},
                {"monitor_main_ends", do_monitor_main_ends},
                {"monitor_socket", do_monitor_socket},
                {"all_end", do_all_end},
                {"idle", do_idle},
                {"holds_nothing", do_holds_nothing},
                {"close_all", do_close_all},
                {"deepbind", do_deepbind},
                {"api", do_api},
                {"anew", do_anew},
                {"steady", do_steady}};
    char name[64] = "";
    if (argc == 2)
        strncpy(name, argv[1], sizeof name - 1);
    if (strstr(name, "+bug")) {
        bug = 1;
        *strchr(name, '+') = 0;
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (argc == 1)
            puts(ways[i].name);
        else if (strcmp(name, ways[i].name) == 0)
            ways[i].run();
    }
    return 0;
}
