// SPDX-License-Identifier: MIT
// moat share clients: who shares the GPU, with how much memory, and whether each is fenced.
#include <stdio.h>

#include "cli/cli.h"
#include "cli/mps_limits.h"
#include "cli/mps_share.h"

static void print_memory(struct out *o, bool known, uint64_t bytes)
{
    char text[32] = "-";
    if (known)
        snprintf(text, sizeof text, "%.1f MiB", (double)bytes / (1 << 20));
    out_fmt(o, "%-14s", text);
}

static void print_name(struct out *o, const char *name)
{
    out_clean(o, str_from(*name ? name : "-"));
    out_char(o, '\n');
}

static void print_client(struct out *o, const struct mps_client *client, const struct client_file *file)
{
    out_fmt(o, "%-9d%-9d", client->server, client->pid);
    // What the process says of itself is less than what the driver takes for it.
    print_memory(o, client->memory_known || file,
                 client->memory_known ? client->memory
                 : file               ? file->values[CLIENT_HELD]
                                      : 0);
    if (file)
        out_fmt(o, "%-8s%-11llu", "yes", (unsigned long long)file->values[CLIENT_CONTAINED]);
    else
        out_fmt(o, "%-8s%-11s", "no", "-");
    print_name(o, client->program);
}

static void print_all(struct out *o, const struct mps_clients *c, const struct mps_files *f)
{
    size_t unfenced = 0;
    out_lit(o, "SERVER   PID      MEMORY        FENCED  CONTAINED  PROGRAM\n");
    for (size_t i = 0; i < c->all.len; i++) {
        const struct client_file *file = mps_files_find(f, c->all.items[i].pid);
        print_client(o, &c->all.items[i], file);
        unfenced += !file;
    }
    for (size_t i = 0; i < f->live.len; i++) {
        const struct client_file *file = &f->live.items[i];
        char program[32];
        if (mps_clients_find(c, file->pid))
            continue;
        out_fmt(o, "%-9s%-9d", "-", file->pid);
        print_memory(o, true, file->values[CLIENT_HELD]);
        out_fmt(o, "%-8s%-11llu", "yes", (unsigned long long)file->values[CLIENT_CONTAINED]);
        mps_program(file->pid, program, sizeof program);
        print_name(o, program);
    }
    out_fmt(o, "%zu client%s on %d server%s, which take%s %d each; %zu not fenced\n", c->all.len,
            c->all.len == 1 ? "" : "s", c->nservers, c->nservers == 1 ? "" : "s", c->nservers == 1 ? "s" : "",
            MPS_CLIENTS_OF_SERVER, unfenced);
    if (f->bad)
        out_fmt(o, "%u file%s in the share's folder cannot be read\n", f->bad, f->bad == 1 ? "" : "s");
}

int cmd_share_clients(const struct options *options, int argc, char **argv)
{
    struct mps_folder folder;
    struct mps_clients clients;
    struct mps_files files;
    int status = mps_share_open(&folder, options, false, argc, argv);
    if (status)
        return status;
    status = mps_clients_ask(&clients);
    if (status)
        return status;
    status = mps_files_read(&folder, &files);
    if (!status) {
        struct out o;
        out_to_file(&o, stdout);
        print_all(&o, &clients, &files);
        status = cli_close(&o, CLI_OK);
        mps_files_free(&files);
    }
    mps_clients_free(&clients);
    return status;
}
