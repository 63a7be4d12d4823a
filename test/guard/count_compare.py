#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""count_compare.py JSON STATS PLAIN: compares what --mode=count counted in a program with what the CPU
device's --stats counted in the same run, and in one without moat's counters.

The device counts instructions of warps, the pass accesses of threads: 1 to 32 of these for each. An atomic is
a store to the device, a load and a store to the pass. The device adds what functions do to the kernel, so
accesses of programs with functions are not compared.

In the same run the device counts the pass's own stores to global memory too. The program's are those of the
other run, if both did the same: a kernel that waits for others reads memory as often as it has to.
"""
import json
import sys

counted, functions, wrong, compared, unsteady = {}, False, 0, 0, 0
for line in open(sys.argv[1]):
    event = json.loads(line)
    for kernel in event.get("kernels", []) if event["event"] == "counts" else []:
        counted[kernel["name"]] = kernel
        functions |= kernel.get("device_function", False)


def read_stats(path):
    executed, heading = {}, []
    for line in open(path, errors="replace"):
        words = line.split()[2:] if line.startswith("moat: kernels:") else []
        if words and words[0] == "launches":
            heading = words
        elif words:
            sums = executed.setdefault(words[-1], {})
            for key, value in zip(heading[:-1], words):
                sums[key] = sums.get(key, 0) + float(value)
    if not executed:
        sys.exit(f"{path}: --stats told nothing")
    return executed


def accesses(sums):
    return {key: n for key, n in sums.items() if key[:3] in ("ld-", "st-") and key != "st-global" and n}


same, plain = read_stats(sys.argv[2]), read_stats(sys.argv[3])
for name, sums in plain.items():
    kernel, seen = counted.get(name), same.get(name, {"launches": 0})
    if not kernel or not kernel["launches"] == seen["launches"] == sums["launches"]:
        print(f"{name}: launched {sums['launches']} and {seen['launches']} times, "
              f"counted {kernel and kernel['launches']}")
        wrong += 1
        continue
    steady = accesses(sums) == accesses(seen)
    for space in [] if functions else ["generic", "global", "shared", "local"]:
        of = [s for s in kernel.get("spaces", []) if s["name"] == space]
        loads, stores = sum(s["loads"] for s in of), sum(s["stores"] for s in of)
        ld, st = seen.get("ld-" + space, 0), seen.get("st-" + space, 0)
        least = st
        if space == "global":
            least = sums.get("st-global", 0) if steady else 0
            st = least if steady else st
        compared += 1
        if not (ld <= loads <= 32 * (ld + st) and least <= stores <= 32 * st):
            print(f"{name}: {space}: {loads} loads, {stores} stores by threads; "
                  f"{ld}, {least} to {st} by warps")
            wrong += 1
    unsteady += not steady
print(f"{compared} compared" + (f"; kernels that did not do the same twice: {unsteady}" if unsteady else ""))
sys.exit(wrong > 0)
