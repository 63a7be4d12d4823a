// SPDX-License-Identifier: MIT
#include "cli/mps_share.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "cli/cli.h"
#include "mps/mps_answer.h"

enum { TRIES = 100, PAUSE_MS = 100 };

int mps_share_open(struct mps_folder *f, const struct options *options, bool make, int argc, char **argv)
{
    if (argc != 1)
        return cli_error("`moat share %s` takes no operand, but \"%.60s\" was given", argv[0], argv[1]);
    int status = mps_folder_open(f, options, make), err = status ? 0 : mps_folder_export(f);
    return err ? cli_error("cannot set the environment: %s", strerror(-err)) : status;
}

// Waits until the daemon answers, or until it does not.
static bool wait_until(bool answers, struct mps_answer *a)
{
    for (int i = 0; i < TRIES; i++) {
        if (mps_control_answers(a) == answers)
            return true;
        poll(NULL, 0, PAUSE_MS);
    }
    return false;
}

int mps_share_start(void)
{
    static struct mps_answer a;
    static char name[] = "nvidia-cuda-mps-control", daemon[] = "-d";
    char *const argv[] = {name, daemon, NULL};
    int err = mps_control_run(argv, NULL, MPS_SECONDS, &a);
    if (err == -ENOENT)
        return cli_error("there is no nvidia-cuda-mps-control in PATH: it comes with NVIDIA's driver");
    if (err)
        return cli_error("cannot start nvidia-cuda-mps-control: %s", strerror(-err));
    if (a.status)
        return cli_error("nvidia-cuda-mps-control -d fails with status %d; its log is in the share's folder",
                         a.status);
    return wait_until(true, &a)
               ? CLI_OK
               : cli_error("nvidia-cuda-mps-control was started and does not answer; its log is "
                           "in the share's folder");
}

int mps_share_quit(int seconds)
{
    static struct mps_answer a;
    int status = mps_control_ask(&a, seconds + MPS_SECONDS, "quit -t %d", seconds);
    if (status)
        return status;
    return wait_until(false, &a) ? CLI_OK : cli_error("nvidia-cuda-mps-control still answers after `quit`");
}

size_t mps_share_running(const struct mps_clients *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->all.len; i++)
        n += client_file_started(c->all.items[i].pid) != 0;
    return n;
}
