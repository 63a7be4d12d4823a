// SPDX-License-Identifier: MIT
// Whether others want the cores that the program may use. The kernel says for how long somebody waited for one: of the program's
// own group of processes, if there are groups (cpu.pressure), else of the machine. Where it does not say, by how many threads of the
// machine want one now (/proc/loadavg); but that is somebody else's affair where the program may use only some of the cores, as in a
// container.
#ifndef MOAT_HEAP_CPU_PRESSURE_H
#define MOAT_HEAP_CPU_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_pressure {
    int fd;            // of the file that says it; -1: nobody does
    bool pressure;     // of what kind it is
    long cores;        // that the program may use
    int64_t asked_ns;  // when it was last asked, 0: never, and how long somebody had waited by then
    int64_t waited_us;
};

// Keeps a file open, so the calling thread must have its own descriptors (own_fds.h); else nobody is asked.
void cpu_pressure_open(struct cpu_pressure *c);
bool cpu_pressure_is_there(struct cpu_pressure *c, int64_t now_ns);

// The texts of those files, -1: they do not say. For how many microseconds somebody waited, of a cpu.pressure.
int64_t cpu_pressure_waited(const char *text, size_t len);
// How many threads but the calling one want a core, of /proc/loadavg.
long cpu_pressure_wanted(const char *text, size_t len);
// The name of the group's file, from /proc/self/cgroup: `mount` and the group's path. 0, or -ENOENT: there is no group.
int cpu_pressure_name(const char *text, size_t len, const char *mount, char *name, size_t size);
// Whether so much waiting within that time means that others are in the way.
bool cpu_pressure_is_long(int64_t waited_us, int64_t within_ns);

#endif
