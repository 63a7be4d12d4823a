// SPDX-License-Identifier: MIT
// moat share restart: restarts the MPS server if it refuses new clients, as it does after a client was killed
// while its kernel never ended.
#include <poll.h>

#include "cli/cli.h"
#include "cli/mps_probe.h"
#include "cli/mps_share.h"

enum { TRIES = 100, PAUSE_MS = 100, FULL_SECONDS = 1 };

// Shuts the servers down at once. The daemon starts another one when a client comes.
static int shut_down(const struct mps_clients *c)
{
    static struct mps_answer a;
    int status = CLI_OK;
    for (int i = 0; i < c->nservers && !status; i++)
        status = mps_control_ask(&a, MPS_SECONDS, "shutdown_server %d -f", c->servers[i]);
    return status;
}

// Waits until none of these servers is left. Returns false if one stays.
static bool are_gone(const struct mps_clients *before)
{
    for (int i = 0; i < TRIES; i++) {
        struct mps_clients now;
        bool left = false;
        if (mps_clients_ask(&now))
            return false;
        for (int k = 0; k < now.nservers; k++)
            for (int n = 0; n < before->nservers; n++)
                left |= now.servers[k] == before->servers[n];
        mps_clients_free(&now);
        if (!left)
            return true;
        poll(NULL, 0, PAUSE_MS);
    }
    return false;
}

static int restart(const struct mps_clients *c, const struct options *options)
{
    char why[200];
    // If the servers do not go alone, the daemon ends with them, and another one is started.
    if (shut_down(c) || !are_gone(c)) {
        int status = mps_share_quit(FULL_SECONDS);
        status = status ? status : mps_share_start();
        if (status)
            return status;
    }
    enum mps_probe now = mps_probe(options->driver, why, sizeof why);
    if (now == MPS_ACCEPTS)
        return CLI_OK;
    return cli_error("the server was restarted, and still accepts no client%s%s",
                     now == MPS_UNKNOWN ? ": " : "", now == MPS_UNKNOWN ? why : "");
}

static int say(const char *text)
{
    struct out o;
    out_to_file(&o, stdout);
    out_fmt(&o, "%s\n", text);
    return cli_close(&o, CLI_OK);
}

static int restart_if_allowed(const struct options *options)
{
    struct mps_clients clients;
    int status = mps_clients_ask(&clients);
    if (status)
        return status;
    size_t running = mps_share_running(&clients);
    if (running && !options->share_force)
        status = cli_error(
            "the server refuses new clients, but %zu client%s still run%s on it; --share-force ends "
            "them",
            running, running == 1 ? "" : "s", running == 1 ? "s" : "");
    else
        status = restart(&clients, options);
    mps_clients_free(&clients);
    return status ? status : say("restarted: the server accepts clients again");
}

int cmd_share_restart(const struct options *options, int argc, char **argv)
{
    struct mps_folder folder;
    static struct mps_answer a;
    char why[200];
    int status = mps_share_open(&folder, options, false, argc, argv);
    if (status)
        return status;
    if (!mps_control_answers(&a))
        return cli_error("no control daemon answers in %s", folder.path);
    switch (mps_probe(options->driver, why, sizeof why)) {
    case MPS_ACCEPTS: return say("the server accepts clients: nothing to do");
    case MPS_FULL: return say("the server has all the clients that it takes: nothing to do");
    case MPS_REFUSES: return restart_if_allowed(options);
    default: return cli_error("cannot say whether the server accepts clients: %s", why);
    }
}
