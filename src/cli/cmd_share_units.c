// SPDX-License-Identifier: MIT
// moat share units: prints units for systemd's user manager that start a share and run programs in it.
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

// In a text, @MOAT@ stands for the command's own path.
static const struct unit {
    const char *name, *text;
} units[] = {
    {"moat-share.service", "[Unit]\n"
                           "Description=CUDA MPS server for fenced programs\n"
                           "\n"
                           "[Service]\n"
                           "Type=forking\n"
                           "PIDFile=%t/moat-share/pipe/nvidia-cuda-mps-control.pid\n"
                           "ExecStart=@MOAT@ share start\n"
                           "ExecStop=@MOAT@ share stop --share-force\n"
                           "Restart=on-failure\n"
                           "\n"
                           "[Install]\n"
                           "WantedBy=default.target\n"},
    {"moat-tenant@.service", "[Unit]\n"
                             "Description=Fenced program %i\n"
                             "Requires=moat-share.service\n"
                             "After=moat-share.service\n"
                             "\n"
                             "[Service]\n"
                             "Environment=MOAT_TENANT_OPTIONS=\n"
                             "EnvironmentFile=-%h/.config/moat/%i.conf\n"
                             "ExecStart=@MOAT@ share run $MOAT_TENANT_OPTIONS -- %h/.config/moat/%i\n"
                             "Restart=on-failure\n"
                             "\n"
                             "[Install]\n"
                             "WantedBy=default.target\n"},
    {"moat-share-restart.service", "[Unit]\n"
                                   "Description=Restart of an MPS server that refuses new clients\n"
                                   "Requires=moat-share.service\n"
                                   "After=moat-share.service\n"
                                   "\n"
                                   "[Service]\n"
                                   "Type=oneshot\n"
                                   "ExecStart=@MOAT@ share restart\n"},
    {"moat-share-restart.timer", "[Unit]\n"
                                 "Description=Looks whether the MPS server takes new clients\n"
                                 "\n"
                                 "[Timer]\n"
                                 "OnActiveSec=60\n"
                                 "OnUnitActiveSec=60\n"
                                 "\n"
                                 "[Install]\n"
                                 "WantedBy=timers.target\n"},
    {"moat-share-metrics.service", "[Unit]\n"
                                   "Description=Metrics of the share for Prometheus\n"
                                   "\n"
                                   "[Service]\n"
                                   "Type=oneshot\n"
                                   "ExecStart=/bin/sh -c '@MOAT@ share metrics >%t/moat-share/moat.prom.new "
                                   "&& mv %t/moat-share/moat.prom.new %t/moat-share/moat.prom'\n"},
    {"moat-share-metrics.timer", "[Unit]\n"
                                 "Description=Metrics of the share for Prometheus\n"
                                 "\n"
                                 "[Timer]\n"
                                 "OnActiveSec=15\n"
                                 "OnUnitActiveSec=15\n"
                                 "\n"
                                 "[Install]\n"
                                 "WantedBy=timers.target\n"},
};
enum { UNITS = sizeof units / sizeof *units };

// Prints a text with the command's path where it says @MOAT@.
static void print_text(struct out *o, const char *text, const char *moat)
{
    const char *mark;
    for (; (mark = strstr(text, "@MOAT@")); text = mark + 6) {
        out_bytes(o, text, (size_t)(mark - text));
        out_cstr(o, moat);
    }
    out_cstr(o, text);
}

int cmd_share_units(const struct options *options, int argc, char **argv)
{
    char moat[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", moat, sizeof moat - 1);
    if (n <= 0)
        return cli_error("the path of moat itself is not known");
    moat[n] = 0;
    if (strpbrk(moat, " \t\n\"'\\%$"))
        return cli_error("moat lies in a path with characters that units would need in another form: %.200s",
                         moat);
    if (argc > 2)
        return cli_error("`moat share units` takes the name of one unit, but \"%.60s\" was given too",
                         argv[2]);
    bool found = false;
    struct out o;
    out_to_file(&o, stdout);
    for (int i = 0; i < UNITS; i++) {
        if (argc == 2 && strcmp(argv[1], units[i].name))
            continue;
        if (argc == 1)
            out_fmt(&o, "%s# ~/.config/systemd/user/%s\n", found ? "\n" : "", units[i].name);
        print_text(&o, units[i].text, moat);
        found = true;
    }
    int status = cli_close(&o, CLI_OK);
    return found ? status : cli_error("there is no unit \"%.60s\"; `moat share units` prints all", argv[1]);
}
