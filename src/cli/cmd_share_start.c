// SPDX-License-Identifier: MIT
// moat share start: starts an MPS server for the calling user.
#include "cli/cli.h"
#include "cli/mps_limits.h"
#include "cli/mps_share.h"

int cmd_share_start(const struct options *options, int argc, char **argv)
{
    static struct mps_answer a;
    struct mps_folder folder;
    int status = mps_share_open(&folder, options, true, argc, argv);
    bool running = !status && mps_control_answers(&a);
    if (!status && !running)
        status = mps_share_start();
    if (!status)
        status = mps_limits_set(options);
    if (status)
        return status;
    struct out o;
    out_to_file(&o, stdout);
    out_fmt(&o, "%s in %s\n", running ? "already running" : "started", folder.path);
    out_lit(&o, "`moat share run -- PROGRAM` runs a program there with a fence; without one it joins by\n");
    out_fmt(&o, "  export CUDA_MPS_PIPE_DIRECTORY=%s CUDA_MPS_LOG_DIRECTORY=%s\n", folder.pipe, folder.log);
    return cli_close(&o, CLI_OK);
}
