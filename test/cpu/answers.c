// SPDX-License-Identifier: MIT
// answers [--libcuda=FILE] [GROUP...]: makes several hundred calls of a libcuda, most of them odd, and prints
// its answers. answers.expected is what an H200 said. Each group runs in a process of its own, so that a
// crash does not end the others, and none depends on what came before.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answers_graphs.h"
#include "answers_map.h"
#include "answers_memory.h"
#include "answers_pools.h"
#include "answers_shapes.h"
#include "answers_work.h"

#define GROUP(name)         \
    {                       \
#name, group_##name \
    }
static const struct {
    const char *name;
    void (*run)(void);
} groups[] = {
    GROUP(uninitialised),
    GROUP(allocation),
    GROUP(pitch),
    GROUP(address_range),
    GROUP(pointers),
    GROUP(copies),
    GROUP(memsets),
    GROUP(pinned),
    GROUP(registered),
    GROUP(managed),
    GROUP(prefetch),
    GROUP(advice),
    GROUP(default_pool),
    GROUP(create_pool),
    GROUP(own_pool),
    GROUP(create),
    GROUP(reserve),
    GROUP(map),
    GROUP(access),
    GROUP(handles),
    GROUP(unmap),
    GROUP(made_up_map),
    GROUP(made_up_properties),
    GROUP(made_up_release),
    GROUP(rectangles),
    GROUP(boxes),
    GROUP(batches),
    GROUP(peers),
    GROUP(devices),
    GROUP(no_context),
    GROUP(contexts),
    GROUP(limits),
    GROUP(streams),
    GROUP(stream_values),
    GROUP(events),
    GROUP(modules),
    GROUP(libraries),
    GROUP(links),
    GROUP(functions),
    GROUP(launches),
    GROUP(after_a_fault),
    GROUP(a_fault_elsewhere),
    GROUP(captures),
    GROUP(captures_rest),
    GROUP(capture_joins),
    GROUP(capture_events),
    GROUP(capture_unsafe),
    GROUP(capture_more),
    GROUP(capture_legacy),
    GROUP(graph_edges),
    GROUP(graph_params),
    GROUP(graph_updates),
    GROUP(graph_memory),
    GROUP(user_objects),
};

static const char *library;

static void open_library(void)
{
    char why[300];
    if (driver_open(&cu, library, why, sizeof why)) {
        fprintf(stderr, "answers: %s\n", why);
        exit(2);
    }
}

static void say_which(void)
{
    char name[100] = "no device";
    int version = 0;
    open_library();
    cu.cuInit(0);
    cu.cuDriverGetVersion(&version);
    cu.cuDeviceGetName(name, sizeof name, 0);
    printf("# Recorded with test/cpu/answers.c on: %s, CUDA %d.%d\n", name, version / 1000,
           version % 1000 / 10);
}

// Returns 0, or the status that the process ended with.
static int apart(void (*run)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        alarm(250);
        run();
        exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return status;
}

static void (*run_this)(void);

static void run_group(void)
{
    open_library();
    run_this();
}

static int wanted(const char *name, int argc, char **argv)
{
    int any = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], name))
            return 1;
        any |= argv[i][0] != '-';
    }
    return !any;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--libcuda=", 10))
            library = argv[i] + 10;
    }
    int status = apart(say_which);
    if (status)
        return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
    for (unsigned i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (!wanted(groups[i].name, argc, argv))
            continue;
        printf("== %s\n", groups[i].name);
        run_this = groups[i].run;
        status = apart(run_group);
        if (WIFSIGNALED(status))
            printf("ends the process: %s\n", strsignal(WTERMSIG(status)));
        else if (status)
            printf("does not go on\n");
    }
    return 0;
}
