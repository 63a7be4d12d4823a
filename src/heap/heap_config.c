// SPDX-License-Identifier: MIT
#include "heap/heap_config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/option_variable.h"

static void complain(void *ctx, const char *line)
{
    size_t len = strlen(line);
    if (write(STDERR_FILENO, line, len) == (ssize_t)len && write(STDERR_FILENO, "\n", 1) == 1)
        return;
}

static void take(struct heap_config *c, const struct options *o)
{
    static const enum site_depth depths[] = {
        [OPTION_HEAP_STACKS_AUTO] = SITE_RATIONED,
        [OPTION_HEAP_STACKS_CALLER] = SITE_CALLER_ONLY,
        [OPTION_HEAP_STACKS_FULL] = SITE_ALWAYS,
    };
    *c = (struct heap_config){
        .lazy = o->heap_free == OPTION_HEAP_FREE_LAZY,
        .leaks = o->leak_check,
        .halt = o->halt_on_error,
        .signals = o->heap_signals,
        .exitcode = o->error_exitcode ? (int)o->error_exitcode : 1,
        .quarantine_bytes = o->heap_wait,
        .share = (unsigned)o->heap_monitor_share,
        .monitors = (unsigned)o->heap_monitors,
        .depth = depths[o->heap_stacks],
    };
    if (o->log_file && strlen(o->log_file) < sizeof c->log_file)
        memcpy(c->log_file, o->log_file, strlen(o->log_file) + 1);
}

void heap_config_read(struct heap_config *c)
{
    // Never freed: that would leave a hole in the program's heap, in which blocks could not grow.
    static struct option_set set;
    struct options options;
    if (option_read_variable(&set, &options, getenv(OPTION_VARIABLE), complain, NULL)) {
        *c = (struct heap_config){.quarantine_bytes = 256 << 10, .share = 25, .monitors = 1};
        return;
    }
    take(c, &options);
}
