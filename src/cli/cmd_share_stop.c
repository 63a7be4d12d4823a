// SPDX-License-Identifier: MIT
// moat share stop: ends the MPS server, its control daemon, and with --share-force its clients.
#include "cli/cli.h"
#include "cli/mps_share.h"

enum { FORCED_SECONDS = 1, SECONDS = 10 };

int cmd_share_stop(const struct options *options, int argc, char **argv)
{
    static struct mps_answer a;
    struct mps_folder folder;
    struct mps_clients clients;
    int status = mps_share_open(&folder, options, false, argc, argv);
    if (status)
        return status;
    if (!mps_control_answers(&a))
        return cli_error("no control daemon answers in %s", folder.path);
    status = mps_clients_ask(&clients);
    size_t running = status ? 0 : mps_share_running(&clients);
    if (!status)
        mps_clients_free(&clients);
    if (status && !options->share_force)
        return status;
    if (running && !options->share_force)
        return cli_error("%zu client%s would be ended; --share-force ends them", running,
                         running == 1 ? "" : "s");
    return mps_share_quit(options->share_force ? FORCED_SECONDS : SECONDS);
}
