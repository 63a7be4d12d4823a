// SPDX-License-Identifier: MIT
// moat share limits: what an MPS server cannot do, and the shares that are set.
#include <stdio.h>

#include "cli/cli.h"
#include "cli/mps_limits.h"
#include "cli/mps_share.h"
#include "mps/mps_answer.h"

// Prints what the control daemon answers.
static void print_setting(struct out *o, const char *what, const struct mps_answer *a)
{
    struct str line = mps_answer_last_line(mps_answer_text(a));
    out_fmt(o, "%-38s", what);
    out_clean(o, (struct str){line.ptr, line.len < 60 ? line.len : 60});
    out_char(o, '\n');
}

static int print_settings(struct out *o)
{
    static struct mps_answer a;
    int status = mps_control_ask(&a, MPS_SECONDS, "get_default_active_thread_percentage");
    if (status)
        return status;
    print_setting(o, "share of multiprocessors, percent:", &a);
    for (int i = 0; i < mps_limits_devices(); i++) {
        char what[64];
        status = mps_control_ask(&a, MPS_SECONDS, "get_default_device_pinned_mem_limit %d", i);
        if (status)
            return status;
        snprintf(what, sizeof what, "memory of a client on device %d:", i);
        print_setting(o, what, &a);
    }
    return CLI_OK;
}

int cmd_share_limits(const struct options *options, int argc, char **argv)
{
    struct mps_folder folder;
    struct out o;
    int status = mps_share_open(&folder, options, false, argc, argv);
    if (status)
        return status;
    out_to_file(&o, stdout);
    out_fmt(&o, "%-38s%d (compute capability 7.0 and later)\n",
            "clients of a server:", MPS_CLIENTS_OF_SERVER);
    out_fmt(&o, "%-38s%s\n", "users of a server:", "1, the one who started it");
    status = print_settings(&o);
    out_lit(
        &o,
        "A mistake of a client without a fence ends all clients. A client that is killed while its kernel\n"
        "never ends keeps new ones out, until `moat share restart`.\n");
    return cli_close(&o, status);
}
