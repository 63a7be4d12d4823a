// SPDX-License-Identifier: MIT
// moat share run: runs a program as a client of the share's MPS server, with --mode=fence.
#include <string.h>

#include "base/modes.h"
#include "cli/cli.h"
#include "cli/mps_limits.h"
#include "cli/mps_share.h"
#include "cli/run_watched.h"

// The CPU device has no MPS: a program on it only has its file in the folder.
static int join(const struct mps_folder *folder, const struct options *options)
{
    static struct mps_answer a;
    struct mps_files files;
    if (options->device != OPTION_DEVICE_CPU && !mps_control_answers(&a))
        return run_refuse("no control daemon answers in %s: `moat share start` starts one", folder->path);
    // What earlier processes have left is counted before one of theirs numbers comes again.
    int status = mps_files_read(folder, &files);
    if (!status)
        mps_files_free(&files);
    return status;
}

int cmd_share_run(const struct options *options, int argc, char **argv)
{
    struct mps_folder folder;
    if (argc < 2)
        return cli_error("no program given; `moat help share run` says more");
    if (!(options->mode >> OPTION_MODE_FENCE & 1))
        return cli_error(
            "`moat share run` runs programs with --mode=fence, with other modes beside it at most");
    int status = mps_share_open(&folder, options, options->device == OPTION_DEVICE_CPU, 1, argv);
    status = status ? status : join(&folder, options);
    if (status)
        return status;
    int err = mps_limits_export(options);
    if (err)
        return run_refuse("cannot set the environment: %s", strerror(-err));
    char word[MPS_FOLDER_MOST + 16] = "--share-dir=", *words[] = {word};
    int left;
    strcat(word, folder.path);
    if (option_parse_args((struct option_set *)options->set, 1, words, false, &left))
        return CLI_BAD;
    return cmd_run(options, argc - 1, argv + 1);
}
