// SPDX-License-Identifier: MIT
// moat share end: ends what a client does on the GPU. Its process goes on, and gets error 810.
#include <errno.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/mps_share.h"
#include "mps/mps_answer.h"

enum { END_SECONDS = 120 };  // the server waits until the client's work has ended

static int end(const struct mps_client *client)
{
    static struct mps_answer a;
    int status = mps_control_ask(&a, END_SECONDS, "terminate_client %d %d", client->server, client->pid);
    if (status)
        return status;
    if (!mps_answer_is_success(mps_answer_text(&a))) {
        struct str line = mps_answer_last_line(mps_answer_text(&a));
        struct out text;
        out_to_memory(&text);
        out_clean(&text, (struct str){line.ptr, line.len < 200 ? line.len : 200});
        out_char(&text, 0);
        status = cli_error("client %d could not be ended: %s", client->pid, text.error ? "" : text.buf);
        out_close(&text);
        return status;
    }
    struct out o;
    out_to_file(&o, stdout);
    out_fmt(&o, "client %d of server %d has ended its work; its process gets error 810 from now on\n",
            client->pid, client->server);
    return cli_close(&o, CLI_OK);
}

int cmd_share_end(const struct options *options, int argc, char **argv)
{
    struct mps_folder folder;
    struct mps_clients clients;
    char *rest;
    errno = 0;
    long pid = argc == 2 ? strtol(argv[1], &rest, 10) : 0;
    if (argc != 2 || errno || *rest || pid < 1 || pid > MPS_LARGEST_PID)
        return cli_error("`moat share end` needs the number of a client; `moat share clients` lists them");
    int status = mps_share_open(&folder, options, false, 1, argv);
    status = status ? status : mps_clients_ask(&clients);
    if (status)
        return status;
    const struct mps_client *client = mps_clients_find(&clients, (int)pid);
    status = client ? end(client) : cli_error("%ld is no client of this share", pid);
    mps_clients_free(&clients);
    return status;
}
