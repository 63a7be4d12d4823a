// SPDX-License-Identifier: MIT
// moat share metrics: what the share does, as text for Prometheus.
#include <stdio.h>

#include "cli/cli.h"
#include "cli/mps_share.h"

static void print_head(struct out *o, const char *name, const char *kind, const char *help)
{
    out_fmt(o, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

// Prints a label's value: its name may have any bytes.
static void print_label(struct out *o, const char *key, const char *value)
{
    out_fmt(o, "%s=\"", key);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            out_char(o, '\\');
        out_clean(o, (struct str){value, 1});
    }
    out_char(o, '"');
}

static void print_process(struct out *o, const char *name, int pid, const char *program, uint64_t value)
{
    out_fmt(o, "%s{pid=\"%d\",", name, pid);
    print_label(o, "program", program);
    out_fmt(o, "} %llu\n", (unsigned long long)value);
}

static void print_clients(struct out *o, const struct mps_clients *c, const struct mps_files *f)
{
    print_head(o, "moat_share_servers", "gauge", "MPS servers that run.");
    out_fmt(o, "moat_share_servers %d\n", c->nservers);
    print_head(o, "moat_share_clients", "gauge", "Clients of all servers.");
    out_fmt(o, "moat_share_clients %zu\n", c->all.len);
    print_head(o, "moat_share_client_fenced", "gauge", "Whether a client runs under --mode=fence.");
    for (size_t i = 0; i < c->all.len; i++)
        print_process(o, "moat_share_client_fenced", c->all.items[i].pid, c->all.items[i].program,
                      mps_files_find(f, c->all.items[i].pid) != NULL);
    print_head(o, "moat_share_client_memory_bytes", "gauge", "Device memory of a client, by nvidia-smi.");
    for (size_t i = 0; i < c->all.len; i++)
        if (c->all.items[i].memory_known)
            print_process(o, "moat_share_client_memory_bytes", c->all.items[i].pid, c->all.items[i].program,
                          c->all.items[i].memory);
}

static void print_value(struct out *o, const struct mps_files *f, int which)
{
    const struct client_value_row *row = &client_value_rows[which];
    char name[80], program[32];
    snprintf(name, sizeof name, "moat_fence_%s%s", row->key, row->counter ? "_total" : "");
    print_head(o, name, row->counter ? "counter" : "gauge", row->help);
    for (size_t i = 0; i < f->live.len; i++) {
        mps_program(f->live.items[i].pid, program, sizeof program);
        print_process(o, name, f->live.items[i].pid, program, f->live.items[i].values[which]);
    }
    // Sums of what runs and what has ended never become less, as those of each process do when it goes.
    uint64_t sum = f->ended.values[which];
    for (size_t i = 0; i < f->live.len; i++)
        if (__builtin_add_overflow(sum, f->live.items[i].values[which], &sum))
            sum = UINT64_MAX;
    snprintf(name, sizeof name, "moat_fence_all_%s%s", row->key, row->counter ? "_total" : "");
    print_head(o, name, row->counter ? "counter" : "gauge",
               row->counter ? "The same for all fenced processes, with those that ended."
                            : "The same for all fenced processes.");
    out_fmt(o, "%s %llu\n", name, (unsigned long long)sum);
}

int cmd_share_metrics(const struct options *options, int argc, char **argv)
{
    static struct mps_answer a;
    struct mps_folder folder;
    struct mps_clients clients = {.nservers = 0};
    struct mps_files files;
    int status = mps_share_open(&folder, options, false, argc, argv);
    if (status)
        return status;
    // A share that is down is a value too, not an error.
    bool up = mps_control_answers(&a);
    status = up ? mps_clients_ask(&clients) : CLI_OK;
    status = status ? status : mps_files_read(&folder, &files);
    if (!status) {
        struct out o;
        out_to_file(&o, stdout);
        print_head(&o, "moat_share_up", "gauge", "Whether the control daemon answers.");
        out_fmt(&o, "moat_share_up %d\n", up);
        print_clients(&o, &clients, &files);
        print_head(&o, "moat_fence_processes", "gauge", "Fenced processes that run.");
        out_fmt(&o, "moat_fence_processes %zu\n", files.live.len);
        for (int i = 0; i < CLIENT_VALUES; i++)
            print_value(&o, &files, i);
        status = cli_close(&o, CLI_OK);
        mps_files_free(&files);
    }
    mps_clients_free(&clients);
    return status;
}
