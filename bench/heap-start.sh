#!/bin/bash
# SPDX-License-Identifier: MIT
# What --heap adds to an exec, and to a program that does little but allocate: Python that puts 300,000 keys
# into a dictionary, with PYTHONMALLOC=malloc. Runs with and without it take turns: section heap-start of
# doc/results.md. HEAP_START_RUNS: how many of each, 40. SECTION=FILE: the table goes there.
set -eu
here=$(dirname "$0")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
{
    echo '## What --heap adds to an exec, and to Python with malloc'
    echo
    "$here/machine"
    python3 - "$(realpath "$BUILD/lib/libmoat-heap.so")" "${HEAP_START_RUNS:-40}" <<'END'
import os, statistics, sys, time

library, runs = sys.argv[1], int(sys.argv[2])
keys = "d = {}\nfor i in range(300000): d['k%d' % i] = i"
execs = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done"
programs = {  # label, command, environment, how many of the thing one run has
    "an exec of `/bin/true` by a shell": (["/bin/sh", "-c", execs], {}, 10),
    "Python, 300,000 keys": ([sys.executable, "-c", keys], {"PYTHONMALLOC": "malloc"}, 1),
}


def seconds(command, environment):
    """Wall time, and processor time of the process and its children, moat's threads included."""
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, {**os.environ, **environment})
    status, used = os.wait4(pid, 0)[1:]
    if status:
        sys.exit(f"{command[:3]} failed: status {status}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


print(f"{runs} pairs of runs; milliseconds, and times of a pair: the median and the middle half.\n")
print("| program | alone, median | alone, least | --heap, median | least | times | processor time, times |")
print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
for label, (command, environment, many) in programs.items():
    alone, heap = [], []
    for _ in range(runs):
        alone.append(seconds(command, environment))
        heap.append(seconds(command, {**environment, "LD_PRELOAD": library}))
    walls = [[1e3 * wall / many for wall, _ in of] for of in (alone, heap)]
    print(f"| {label} | " + " | ".join(f"{statistics.median(w):.2f} | {min(w):.2f}" for w in walls),
          quartiles([h[0] / a[0] for a, h in zip(alone, heap)]),
          quartiles([h[1] / a[1] for a, h in zip(alone, heap)]), sep=" | ", end=" |\n")
END
} >"$T/section"
cat "$T/section"
"$here/finish" heap-start "$T/section"
