// SPDX-License-Identifier: MIT
// Supervision, with /bin/sh as the program. Where the supervisor itself must end, stop or take signals it is
// a child of the test.
#include "cli/supervise.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cli/cli_testing.h"

static struct reports r;
static struct collect c;
static int out;

static int setup(void **state)
{
    struct render_setup s = {.format = OPTION_FORMAT_TEXT, .color = OPTION_COLOR_NEVER};
    char why[200];
    s.fd = out = open("/tmp", O_RDWR | O_TMPFILE | O_APPEND, 0600);
    assert_int_equal(reports_init(&r, cli_testing_parse(NULL, NULL), &s), 0);
    assert_int_equal(cli_testing_make_folder(state), 0);
    return collect_open(&c, &r, why, sizeof why);
}

static int teardown(void **state)
{
    collect_close(&c);
    reports_free(&r);
    cli_testing_forget();
    cli_testing_remove_folder(state);
    return close(out);
}

// Returns the status of a supervised script, as waitpid has it. The command supervises one program and leaves
// its own signals as they are then, so they are first set to what a shell would give it.
static int supervise_script(char *script)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    char *argv[] = {"sh", "-c", script, NULL};
    int status = -1;
    assert_int_equal(supervise("/bin/sh", argv, &c, &status), 0);
    return status;
}

// Starts a child of the test that supervises the script and then ends with its exit status, or by its
// signal.
static pid_t start(char *script)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return pid;
    // The kernel ignores SIGTSTP in a group that nobody of its session could continue.
    setpgid(0, 0);
    int status = supervise_script(script);
    if (WIFSIGNALED(status))
        supervise_die_by(WTERMSIG(status));
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

static int await(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

// Waits until a script has written a file.
static void await_file(const char *name)
{
    while (access(cli_testing_path(name), F_OK))
        usleep(1000);
}

// Makes a script of a format in which each %s is the test's folder.
static char *script_of(const char *format)
{
    static char text[4000];
    const char *f = cli_testing_folder;
    snprintf(text, sizeof text, format, f, f, f, f);
    return text;
}

static void good_status(void **state)
{
    int status = supervise_script("exit 7");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    status = supervise_script("true");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    status = supervise_script("kill -TERM $$");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void bad_program(void **state)
{
    char *argv[] = {"x", NULL};
    int status;
    assert_int_equal(supervise("/nowhere/at/all", argv, &c, &status), -ENOENT);
    assert_int_equal(supervise("/", argv, &c, &status), -EACCES);
}

// The program gets the dispositions, the mask and the limit that the command found, not those it uses.
static void good_state_of_the_program(void **state)
{
    struct rlimit old, low;
    getrlimit(RLIMIT_NOFILE, &old);
    low = (struct rlimit){64, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    signal(SIGPIPE, SIG_IGN);
    int status = supervise_script(
        script_of("ulimit -n >%s/files; grep -E '^Sig(Blk|Ign)' /proc/self/status >%s/masks"));
    signal(SIGPIPE, SIG_DFL);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(cli_testing_read(cli_testing_path("files")), "64\n");
    const char *masks = cli_testing_read(cli_testing_path("masks"));
    assert_non_null(strstr(masks, "SigBlk:\t0000000000000000"));
    const char *ignored = strstr(masks, "SigIgn:");
    assert_non_null(ignored);
    assert_int_equal(strtoull(ignored + 8, NULL, 16) >> (SIGPIPE - 1) & 1, 1);
    status = supervise_script(script_of("grep SigIgn /proc/self/status >%s/plain"));
    ignored = cli_testing_read(cli_testing_path("plain"));
    assert_int_equal(strtoull(ignored + 8, NULL, 16) >> (SIGPIPE - 1) & 1, 0);
}

// A signal that somebody sends to the command alone reaches the program, whose handler decides.
static void good_signals_are_forwarded(void **state)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        pid_t pid = start(script_of("trap 'exit 11' HUP INT QUIT TERM USR1 USR2 ALRM; >%s/ready;"
                                    "while :; do sleep 0.01; done"));
        await_file("ready");
        kill(pid, signals[i]);
        int status = await(pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 11);
        unlink(cli_testing_path("ready"));
    }
}

// The command ends as the program did, without a core file of its own.
static void good_same_end(void **state)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGTERM, SIGKILL};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char script[40];
        snprintf(script, sizeof script, "kill -%d $$", signals[i]);
        int status = await(start(script));
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        assert_false(WCOREDUMP(status));
    }
}

// A program that stops stops the command; continuing the command continues the program.
static void good_stops_as_a_whole(void **state)
{
    int status;
    pid_t pid = start(script_of("kill -TSTP $$; >%s/again; exit 5"));
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
    assert_int_not_equal(access(cli_testing_path("again"), F_OK), 0);
    kill(pid, SIGCONT);
    status = await(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    assert_int_equal(access(cli_testing_path("again"), F_OK), 0);
}

// SIGSTOP is for one process: whoever sent it continues that one.
static void good_stop_of_the_program_alone(void **state)
{
    int status;
    pid_t pid = start(script_of("echo $$ >%s/new; mv %s/new %s/pid; kill -STOP $$; exit 6"));
    await_file("pid");
    pid_t program = atoi(cli_testing_read(cli_testing_path("pid")));
    char path[64], text[400] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", program);
    while (!strstr(text, ") T ")) {  // until it has stopped
        const char *now = cli_testing_read(path);
        assert_non_null(now);
        snprintf(text, sizeof text, "%s", now);
        usleep(1000);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED | WNOHANG), 0);
    kill(program, SIGCONT);
    status = await(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 6);
}

// Children that the program leaves behind are neither waited for nor taken for it.
static void good_orphans(void **state)
{
    int status =
        supervise_script(script_of("(while [ ! -e %s/end ]; do sleep 0.01; done; >%s/ended) & exit 3"));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_int_not_equal(access(cli_testing_path("ended"), F_OK), 0);
    cli_testing_write("end", "", 0600);
    await_file("ended");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_status),
        TEST(bad_program),
        TEST(good_state_of_the_program),
        TEST(good_signals_are_forwarded),
        TEST(good_same_end),
        TEST(good_stops_as_a_whole),
        TEST(good_stop_of_the_program_alone),
        TEST(good_orphans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
