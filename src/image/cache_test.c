// SPDX-License-Identifier: MIT
// An entry that was put is read back or is missing, never wrong: with damage of every kind, several
// processes, no room, and folders and files that somebody else prepared for us.
#include "image/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

static char folder[64];  // of the current test; does not exist when it starts

static int make_folder(void **state)
{
    strcpy(folder, "/tmp/moat-cache-XXXXXX");
    return mkdtemp(folder) && !rmdir(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static struct cache *open_cache(uint64_t size)
{
    struct cache *c;
    assert_int_equal(cache_open(folder, size, &c), 0);
    return c;
}

static const struct cache_key key = {
    .content = {"a module", 8}, .pass = "count.1", .arch = 90, .driver = 13000};

static void gets(struct cache *c, const struct cache_key *k, struct str image, struct str about)
{
    struct cache_entry e;
    assert_int_equal(cache_get(c, k, &e), 0);
    assert_true(str_eq(e.image, image));
    assert_true(str_eq(e.about, about));
    assert_int_equal((uintptr_t)e.image.ptr % 16, 0);
    cache_entry_free(&e);
}

static void misses(struct cache *c, const struct cache_key *k)
{
    struct cache_entry e;
    assert_int_equal(cache_get(c, k, &e), -ENOENT);
    assert_null(e.map);
    cache_entry_free(&e);
}

// Returns the number of files in the folder; name receives the last one's.
static unsigned files(char name[256])
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));)
        if (strcmp(f->d_name, ".") && strcmp(f->d_name, "..")) {
            n++;
            if (name)
                snprintf(name, 256, "%s", f->d_name);
        }
    closedir(d);
    return n;
}

static char *entry_path(void)
{
    static char path[400];
    char name[256];
    assert_int_equal(files(name), 1);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

// --- good days ---------------------------------------------------------------------------------------------

static void good_entries(void **state)
{
    struct cache *c = open_cache(0);
    misses(c, &key);
    assert_int_equal(cache_put(c, &key, STR("machine code"), STR("about it")), 0);
    gets(c, &key, STR("machine code"), STR("about it"));
    struct cache_key other[] = {key, key, key, key};
    other[0].content = STR("a Module");
    other[1].pass = "count.2";
    other[2].arch = 89;
    other[3].driver = 12080;
    for (unsigned i = 0; i < 4; i++)
        misses(c, &other[i]);
    assert_int_equal(cache_put(c, &key, STR("again"), STR("")), 0);
    gets(c, &key, STR("again"), STR(""));
    assert_int_equal(cache_put(c, &other[1], STR(""), STR("")), 0);
    gets(c, &other[1], STR(""), STR(""));
    struct cache_counts n = cache_counts(c);
    assert_int_equal(n.hits, 3);
    assert_int_equal(n.misses, 5);
    assert_int_equal(n.stored, 3);
    assert_int_equal(n.broken + n.evicted, 0);
    assert_int_equal(files(NULL), 2);
    cache_close(c);
    c = open_cache(0);
    gets(c, &key, STR("again"), STR(""));
    cache_close(c);
}

static void good_places(void **state)
{
    char expected[200], home[100];
    struct cache *c;
    struct stat st;
    snprintf(home, sizeof home, "%s/user", folder);
    snprintf(expected, sizeof expected, "%s/user/.cache/moat", folder);
    assert_int_equal(mkdir(folder, 0700) | mkdir(home, 0755), 0);
    setenv("HOME", home, 1);
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    assert_int_equal(cache_open(NULL, 0, &c), 0);
    assert_string_equal(cache_folder(c), expected);
    assert_int_equal(stat(expected, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    cache_close(c);
    setenv("XDG_CACHE_HOME", home, 1);
    assert_int_equal(cache_open(NULL, 0, &c), 0);
    snprintf(expected, sizeof expected, "%s/user/moat", folder);
    assert_string_equal(cache_folder(c), expected);
    cache_close(c);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_int_equal(cache_open(NULL, 0, &c), -EDESTADDRREQ);
    assert_null(c);
    assert_int_equal(cache_open("moat", 0, &c), -EINVAL);
}

static void use_at(const char *name, time_t when)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){{when, 0}, {when, 0}}, 0), 0);
}

static struct cache_key numbered(unsigned *n)
{
    struct cache_key k = key;
    k.content = (struct str){(const char *)n, sizeof *n};
    return k;
}

static void good_eviction(void **state)
{
    enum { SIZE = 10000, COUNT = 9 };
    static char image[SIZE - sizeof(struct cache_header)];
    struct cache *c = open_cache(10 * SIZE);
    for (unsigned i = 0; i < COUNT; i++) {
        struct cache_key k = numbered(&i);
        struct cache_header h;
        char name[CACHE_NAME + 1];
        assert_int_equal(cache_put(c, &k, (struct str){image, sizeof image}, STR("")), 0);
        cache_format_header(&k, STR(""), STR(""), &h);
        cache_format_name(&h, name);
        use_at(name, 1000 + (time_t)i);
    }
    unsigned first = 0, last = 100;
    struct cache_key used = numbered(&first), k = numbered(&last);
    gets(c, &used, (struct str){image, sizeof image}, STR(""));
    // Files that others leave, and files that are not ours.
    char path[400];
    snprintf(path, sizeof path, "%s/.new-1", folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    use_at(".new-1", 1000);
    snprintf(path, sizeof path, "%s/notes", folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(cache_put(c, &k, (struct str){image, sizeof image}, STR("x")), 0);
    // 100,001 bytes are more than 100,000: two entries are evicted, so that a tenth is free.
    assert_int_equal(cache_counts(c).evicted, 2);
    assert_int_equal(files(NULL), COUNT - 1 + 1);
    for (unsigned i = 0; i < COUNT; i++) {
        k = numbered(&i);
        if (i == 1 || i == 2)
            misses(c, &k);
        else
            gets(c, &k, (struct str){image, sizeof image}, STR(""));
    }
    k = numbered(&last);
    gets(c, &k, (struct str){image, sizeof image}, STR("x"));
    cache_close(c);
}

// --- damage ------------------------------------------------------------------------------------------------

static char *slurp(const char *path, size_t *len)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *bytes = malloc(4096);
    *len = fread(bytes, 1, 4096, f);
    fclose(f);
    return bytes;
}

static void spill(const char *path, const char *bytes, size_t len)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void bad_bytes(void **state)
{
    struct cache *c = open_cache(0);
    assert_int_equal(cache_put(c, &key, STR("machine code"), STR("about it")), 0);
    char *path = strdup(entry_path());
    size_t len;
    char *bytes = slurp(path, &len);
    assert_int_equal(len, sizeof(struct cache_header) + 20);
    unsigned broken = 0;
    for (size_t i = 0; i < len; i++) {
        bytes[i] ^= (char)(1 << i % 8);
        spill(path, bytes, len);
        bytes[i] ^= (char)(1 << i % 8);
        misses(c, &key);
        assert_int_equal(cache_counts(c).broken, ++broken);
        assert_int_equal(files(NULL), 0);
    }
    for (size_t i = 0; i < len; i++) {
        spill(path, bytes, i);
        misses(c, &key);
        assert_int_equal(cache_counts(c).broken, ++broken);
    }
    bytes[len] = 0;
    spill(path, bytes, len + 1);
    misses(c, &key);
    spill(path, bytes, len);
    gets(c, &key, STR("machine code"), STR("about it"));
    free(bytes);
    free(path);
    cache_close(c);
}

// An entry under another entry's name.
static void bad_name(void **state)
{
    struct cache *c = open_cache(0);
    struct cache_key other = key;
    struct cache_header h;
    char name[CACHE_NAME + 1], path[400];
    assert_int_equal(cache_put(c, &key, STR("machine code"), STR("")), 0);
    other.arch = 80;
    cache_format_header(&other, STR(""), STR(""), &h);
    cache_format_name(&h, name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(rename(entry_path(), path), 0);
    misses(c, &other);
    assert_int_equal(files(NULL), 0);
    cache_close(c);
}

static void bad_key(void **state)
{
    struct cache *c = open_cache(4096);
    struct cache_key k = key;
    struct cache_entry e;
    char pass[CACHE_MOST_PASS + 2];
    static char image[4096];
    memset(pass, 'p', sizeof pass - 1);
    pass[CACHE_MOST_PASS + 1] = 0;
    k.pass = pass;
    assert_int_equal(cache_put(c, &k, STR("x"), STR("")), -EINVAL);
    assert_int_equal(cache_get(c, &k, &e), -EINVAL);
    pass[CACHE_MOST_PASS] = 0;
    assert_int_equal(cache_put(c, &k, STR("x"), STR("")), 0);
    gets(c, &k, STR("x"), STR(""));
    assert_int_equal(cache_put(c, &key, (struct str){image, sizeof image}, STR("")), -EFBIG);
    assert_int_equal(files(NULL), 1);
    cache_close(c);
}

// --- traps -------------------------------------------------------------------------------------------------

static void bad_links(void **state)
{
    struct cache *c = open_cache(0);
    char target[100], real[100];
    assert_int_equal(cache_put(c, &key, STR("machine code"), STR("")), 0);
    char *path = strdup(entry_path());
    snprintf(target, sizeof target, "%s.target", folder);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    misses(c, &key);  // a good entry, but through a link
    assert_int_equal(files(NULL), 0);
    // The entry replaces the link and is not written through it.
    assert_int_equal(unlink(target), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(cache_put(c, &key, STR("new"), STR("")), 0);
    gets(c, &key, STR("new"), STR(""));
    assert_int_equal(access(target, F_OK), -1);
    // A folder, a pipe.
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    misses(c, &key);
    assert_int_equal(mkdir(path, 0700), 0);
    struct cache_entry e;
    assert_int_not_equal(cache_get(c, &key, &e), 0);
    assert_int_not_equal(cache_put(c, &key, STR("new"), STR("")), 0);
    assert_int_equal(files(NULL), 1);
    assert_int_equal(rmdir(path), 0);
    free(path);
    // The folder becomes a link while the cache is open.
    snprintf(real, sizeof real, "%s.real", folder);
    assert_int_equal(rename(folder, real) | symlink(real, folder), 0);
    assert_int_equal(cache_get(c, &key, &e), -EPERM);
    assert_int_equal(cache_put(c, &key, STR("new"), STR("")), -EPERM);
    cache_close(c);
    assert_int_equal(cache_open(folder, 0, &c), -EPERM);
    assert_int_equal(unlink(folder) | rename(real, folder), 0);
    c = open_cache(0);
    cache_close(c);
}

static void bad_folders(void **state)
{
    struct cache *c = open_cache(0);
    struct cache_entry e;
    assert_int_equal(chmod(folder, 0750), 0);
    assert_int_equal(cache_get(c, &key, &e), -EPERM);
    assert_int_equal(cache_put(c, &key, STR("new"), STR("")), -EPERM);
    cache_close(c);
    assert_int_equal(cache_open(folder, 0, &c), -EPERM);
    assert_null(c);
    if (!geteuid()) {
        assert_int_equal(chmod(folder, 0700) | chown(folder, 12345, 12345), 0);
        assert_int_equal(cache_open(folder, 0, &c), -EPERM);
    }
    assert_int_equal(rmdir(folder), 0);
    spill(folder, "", 0);
    assert_int_equal(cache_open(folder, 0, &c), -EPERM);
    char below[100];
    snprintf(below, sizeof below, "%s/a/b/c", folder);
    assert_int_equal(unlink(folder), 0);
    assert_int_equal(cache_open(below, 0, &c), -ENOENT);
    // A file of another user in our folder.
    c = open_cache(0);
    assert_int_equal(cache_put(c, &key, STR("new"), STR("")), 0);
    if (!geteuid()) {
        assert_int_equal(chown(entry_path(), 12345, 12345), 0);
        misses(c, &key);
    }
    cache_close(c);
}

// --- bad days ----------------------------------------------------------------------------------------------

// Runs in a process of its own. Status 0, or 77 for a skip.
static int in_child(int (*run)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        _exit(run());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int with_a_limit(void)
{
    static char image[8192];
    struct cache *c;
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096});
    if (cache_open(folder, 0, &c) || cache_put(c, &key, (struct str){image, sizeof image}, STR("")) != -EFBIG)
        return 1;
    return cache_put(c, &key, (struct str){image, 100}, STR("")) ? 2 : 0;
}

static int on_a_full_disk(void)
{
    static char image[1 << 20];
    struct cache *c;
    struct cache_entry e;
    uid_t uid = geteuid();
    mkdir(folder, 0700);
    if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", folder, "tmpfs", 0, "size=256k,mode=0700"))
        return 77;
    if (cache_open(folder, 0, &c))
        return 77;
    if (cache_put(c, &key, STR("fits"), STR("")))
        return 1;
    struct cache_key k = key;
    k.arch = 100;
    if (cache_put(c, &k, (struct str){image, sizeof image}, STR("")) != -ENOSPC)
        return 2;
    if (files(NULL) != 1 || cache_get(c, &key, &e))
        return 3;
    return 0;
}

static void bad_limit(void **state)
{
    assert_int_equal(in_child(with_a_limit), 0);
    assert_int_equal(files(NULL), 1);
}

static void bad_full_disk(void **state)
{
    int status = in_child(on_a_full_disk);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void good_without_memory(void **state)
{
    struct cache *c;
    mem_fail_after(0);
    assert_int_equal(cache_open(folder, 0, &c), -ENOMEM);
    mem_fail_after(-1);
    c = open_cache(0);
    mem_fail_after(0);
    assert_int_equal(cache_put(c, &key, STR("x"), STR("")), 0);  // the folder is only not measured
    gets(c, &key, STR("x"), STR(""));
    mem_fail_after(-1);
    cache_close(c);
}

// --- many at once ------------------------------------------------------------------------------------------

enum { KEYS = 5, ROUNDS = 200 };

// The content of an entry follows from its number, so it can be checked whoever wrote it. The cache is so
// small that entries are evicted while others read them.
static int use_it(struct cache *c, unsigned seed)
{
    char image[6000];
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned n = (seed + i * 7) % KEYS;
        struct cache_key k = numbered(&n);
        struct cache_entry e;
        int err = cache_get(c, &k, &e);
        memset(image, (int)('a' + n), sizeof image);
        struct str right = {image, 1000 * (n + 1)};
        if (!err) {
            bool same = str_eq(e.image, right) && str_eq(e.about, STR("about"));
            cache_entry_free(&e);
            if (!same)
                return 1;
        } else if (err != -ENOENT || cache_put(c, &k, right, STR("about"))) {
            return 2;
        }
    }
    return cache_counts(c).broken ? 3 : 0;
}

static int process(void)
{
    struct cache *c;
    return cache_open(folder, 9000, &c) ? 4 : use_it(c, (unsigned)getpid());
}

static void good_processes(void **state)
{
    enum { PROCESSES = 4 };
    pid_t pids[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (!pids[i])
            _exit(process());
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_true(files(NULL) <= KEYS);
}

static void *thread(void *c)
{
    return (void *)(intptr_t)use_it(c, (unsigned)(uintptr_t)&c / 64);
}

static void good_threads(void **state)
{
    struct cache *c = open_cache(9000);
    pthread_t threads[3];
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, thread, c), 0);
    for (unsigned i = 0; i < 3; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    cache_close(c);
}

static void good_measured(void **state)
{
    struct cache_size size;
    assert_int_equal(cache_measure(folder, &size), 0);
    assert_false(size.there);
    assert_string_equal(size.folder, folder);
    assert_int_equal(access(folder, F_OK), -1);  // measuring does not create it
    struct cache *c = open_cache(0);
    assert_int_equal(cache_writable(c), 0);
    assert_int_equal(cache_put(c, &key, STR("image"), STR("about")), 0);
    assert_int_equal(cache_measure(folder, &size), 0);
    assert_true(size.there);
    assert_int_equal(size.entries, 1);
    assert_int_equal(size.bytes, sizeof(struct cache_header) + 10);
    cache_close(c);
}

static void bad_measured(void **state)
{
    struct cache_size size;
    assert_int_equal(cache_measure("relative", &size), -EINVAL);
    assert_int_equal(size.folder[0], 0);
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(cache_measure(folder, &size), -EPERM);
    for (long n = 0; n < 2; n++) {
        mem_fail_after(n);
        int err = cache_measure(folder, &size);
        mem_fail_after(-1);
        assert_true(err == -ENOMEM || err == -EPERM);
    }
    static const int errors[] = {-EPERM, -EINVAL, -ENOENT, -EDESTADDRREQ, -ENOSPC};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        assert_true(strlen(cache_why(errors[i])) > 5);
}

static void good_claim(void **state)
{
    struct cache *c = open_cache(0);
    struct cache_claim first, second;
    char name[256];
    cache_claim(c, &key, 0, &first);
    assert_true(first.fd >= 0);
    assert_int_equal(files(name), 1);
    cache_claim(c, &key, 20, &second);
    assert_true(second.fd < 0);
    cache_unclaim(c, &second);
    assert_int_equal(files(name), 1);
    cache_unclaim(c, &first);
    assert_int_equal(files(name), 0);
    cache_claim(c, &key, 0, &second);
    assert_true(second.fd >= 0);
    // The program may close descriptors that it does not know, and get the number for a file of its own.
    int null = open("/dev/null", O_RDONLY), own = second.fd;
    assert_int_equal(dup2(null, own), own);
    cache_unclaim(c, &second);
    assert_int_equal(close(own), 0);
    close(null);
    cache_close(c);
}

static void bad_claim_of_a_killed_process(void **state)
{
    struct cache *c = open_cache(0);
    struct cache_claim claim;
    int pipes[2];
    char byte = 1;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (!pid) {
        cache_claim(c, &key, 0, &claim);
        _exit(write(pipes[1], &byte, 1) != 1 || pause());
    }
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    cache_claim(c, &key, 0, &claim);
    assert_true(claim.fd < 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    cache_claim(c, &key, 0, &claim);
    assert_true(claim.fd >= 0);
    cache_unclaim(c, &claim);
    close(pipes[0]);
    close(pipes[1]);
    cache_close(c);
}

enum { PROCESSES = 8 };

// Makes the entry unless it is there, when all processes have begun. Returns whether it did.
static bool makes(struct cache *c, _Atomic int *begun)
{
    struct cache_claim claim;
    struct cache_entry e;
    (*begun)++;
    cache_claim(c, &key, 60000, &claim);
    bool there = !cache_get(c, &key, &e);
    while (*begun < PROCESSES)
        sched_yield();
    if (there)
        cache_entry_free(&e);
    else if (cache_put(c, &key, STR("image"), STR("about")))
        _exit(2);
    cache_unclaim(c, &claim);
    return !there;
}

static void good_one_of_several_makes(void **state)
{
    int makers = 0, status;
    pid_t pids[PROCESSES];
    struct cache *c = open_cache(0);
    _Atomic int *begun = mmap(NULL, sizeof *begun, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(begun, MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (!pids[i])
            _exit(makes(c, begun));
    }
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        makers += WEXITSTATUS(status);
    }
    assert_int_equal(makers, 1);
    munmap(begun, sizeof *begun);
    cache_close(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_measured),
        TEST(bad_measured),
        TEST(good_entries),
        TEST(good_places),
        TEST(good_eviction),
        TEST(bad_bytes),
        TEST(bad_name),
        TEST(bad_key),
        TEST(bad_links),
        TEST(bad_folders),
        TEST(bad_limit),
        TEST(bad_full_disk),
        TEST(good_threads),
        TEST(good_processes),
        TEST(good_without_memory),
        TEST(good_claim),
        TEST(bad_claim_of_a_killed_process),
        TEST(good_one_of_several_makes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
