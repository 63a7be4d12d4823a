#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""count_compare.py JSON STATS: what --mode=count told of a program against what the CPU device's --stats counted.

The device counts instructions of warps, the pass accesses of threads: of these there are 1 to 32 for each. An atomic
is a store to the device, a load and a store to the pass. Only global and shared memory can be compared: the device
keeps arguments of calls in local memory, and it adds what functions do to the kernel.
"""
import json
import sys

counted, functions, wrong, compared = {}, False, 0, 0
for line in open(sys.argv[1]):
    event = json.loads(line)
    for kernel in event.get("kernels", []) if event["event"] == "counts" else []:
        counted[kernel["name"]] = kernel
        functions |= kernel.get("device_function", False)

executed, heading = {}, []
for line in open(sys.argv[2]):
    words = line.split()[2:] if line.startswith("moat: kernels:") else []
    if words and words[0] == "launches":
        heading = words
    elif words:
        sums = executed.setdefault(words[-1], dict.fromkeys(heading[:-1], 0))
        for key, value in zip(heading[:-1], words):
            sums[key] = sums.get(key, 0) + float(value)

if not executed:
    sys.exit("--stats told nothing")
for name, sums in executed.items():
    kernel = counted.get(name)
    if not kernel or kernel["launches"] != sums["launches"]:
        print(f"{name}: launched {sums['launches']} times, counted {kernel and kernel['launches']}")
        wrong += 1
        continue
    for space in [] if functions else ["global", "shared"]:
        of = [s for s in kernel.get("spaces", []) if s["name"] == space]
        loads, stores = sum(s["loads"] for s in of), sum(s["stores"] for s in of)
        ld, st = sums.get("ld-" + space, 0), sums.get("st-" + space, 0)
        compared += 1
        if not (ld <= loads <= 32 * (ld + st) and st <= stores <= 32 * st):
            print(f"{name}: {space}: {loads} loads, {stores} stores by threads; {ld}, {st} by warps")
            wrong += 1
print(f"{compared} compared")
sys.exit(wrong > 0)
