// SPDX-License-Identifier: MIT
// Whether other threads compete for the cores that the program may use. The kernel reports for how long some
// thread waited for a core: in the program's own cgroup if there are cgroups (cpu.pressure), else on the
// whole machine. Where the kernel does not report that, the number of runnable threads of the machine is used
// (/proc/loadavg), but only if the program may use all cores: in a container, other cores' threads are not
// our competition.
#ifndef MOAT_HEAP_CPU_PRESSURE_H
#define MOAT_HEAP_CPU_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_pressure {
    int fd;            // the open source of pressure data; -1: none
    bool pressure;     // whether fd is a pressure file, not /proc/loadavg
    long cores;        // cores that the program may use
    int64_t asked_ns;  // time of the last reading, 0: none
    int64_t waited_us;
};

// Opens the source and keeps it open, so the calling thread must have its own descriptors (own_fds.h); if it
// does not, no source is used.
void cpu_pressure_open(struct cpu_pressure *c);
// Returns whether other threads waited much for cores since the last call, or want all of them now; false if
// unknown.
bool cpu_pressure_is_high(struct cpu_pressure *c, int64_t now_ns);

// Parsers of the files' texts; both return -1 if the text lacks the value. From a cpu.pressure: the
// microseconds for which some thread waited.
int64_t cpu_pressure_waited(const char *text, size_t len);
// From /proc/loadavg: the number of runnable threads other than the calling one.
long cpu_pressure_wanted(const char *text, size_t len);
// Writes the name of the cgroup's pressure file: `mount` and the path from /proc/self/cgroup. Returns 0, or
// -ENOENT if there is no cgroup.
int cpu_pressure_name(const char *text, size_t len, const char *mount, char *name, size_t size);
// Returns whether so much waiting within that time counts as competition for the cores.
bool cpu_pressure_is_long(int64_t waited_us, int64_t within_ns);

#endif
