// SPDX-License-Identifier: MIT
#include "cli/mps_clients.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "mps/mps_answer.h"

void mps_program(int pid, char *name, size_t size)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *f = fopen(path, "re");
    if (!f || !fgets(name, (int)size, f))
        *name = 0;
    if (f)
        fclose(f);
    name[strcspn(name, "\n")] = 0;
}

// Reads the numbers in an answer. Returns how many, or a negative number after a message.
static int take_pids(const struct mps_answer *a, const char *command, int *pids, int most)
{
    int n = mps_answer_pids(mps_answer_text(a), pids, most);
    if (n == -E2BIG)
        cli_error("nvidia-cuda-mps-control answers \"%s\" with more than %d processes", command, most);
    else if (n < 0)
        cli_error("nvidia-cuda-mps-control answers \"%s\" with something else than numbers of processes",
                  command);
    return n;
}

static int ask_server(struct mps_clients *c, int server, struct mps_answer *a)
{
    static int pids[MPS_CLIENTS_MOST];
    int status = mps_control_ask(a, MPS_SECONDS, "get_client_list %d", server);
    int n = status ? 0 : take_pids(a, "get_client_list", pids, MPS_CLIENTS_MOST);
    if (status || n < 0)
        return CLI_BAD;
    for (int i = 0; i < n; i++) {
        struct mps_client client = {.pid = pids[i], .server = server};
        mps_program(pids[i], client.program, sizeof client.program);
        if (vec_push(&c->all, client))
            return cli_error("out of memory");
    }
    return CLI_OK;
}

// nvidia-smi knows how much memory each process has. Without it, or under it, the list has no sizes.
static void ask_memory(struct mps_clients *c, struct mps_answer *a)
{
    static char name[] = "nvidia-smi", query[] = "--query-compute-apps=pid,used_gpu_memory",
                format[] = "--format=csv,noheader,nounits";
    char *const argv[] = {name, query, format, NULL};
    if (mps_control_run(argv, NULL, MPS_SECONDS, a) || a->status)
        return;
    for (size_t i = 0; i < c->all.len; i++) {
        struct mps_client *client = &c->all.items[i];
        client->memory_known = mps_answer_memory(mps_answer_text(a), client->pid, &client->memory);
    }
}

int mps_clients_ask(struct mps_clients *c)
{
    static struct mps_answer a;
    *c = (struct mps_clients){.nservers = 0};
    int status = mps_control_ask(&a, MPS_SECONDS, "get_server_list");
    c->nservers = status ? 0 : take_pids(&a, "get_server_list", c->servers, MPS_SERVERS_MOST);
    if (status || c->nservers < 0)
        return CLI_BAD;
    for (int i = 0; i < c->nservers && !status; i++)
        status = ask_server(c, c->servers[i], &a);
    if (!status && c->all.len)
        ask_memory(c, &a);
    if (status)
        mps_clients_free(c);
    return status;
}

const struct mps_client *mps_clients_find(const struct mps_clients *c, int pid)
{
    for (size_t i = 0; i < c->all.len; i++)
        if (c->all.items[i].pid == pid)
            return &c->all.items[i];
    return NULL;
}

void mps_clients_free(struct mps_clients *c)
{
    vec_free(&c->all);
}
