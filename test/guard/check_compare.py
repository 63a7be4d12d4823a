#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_compare.py PLAN JSON [all|missed]: compares what check_classes planned (its output) with what moat
reported.

Every bad line has exactly one report with the right type, kind, bytes, thread and buffer, and every good line
has none; bytes or a thread of - are not compared. Prints the lines that differ, at most 20 unless all are
wanted, and "CASES compared, N wrong". missed: a bad line may have no report, and its kernel may have changed
memory; ", N of M missed" is added.
"""
import collections
import json
import sys

reports = collections.defaultdict(list)
for line in open(sys.argv[2]):
    event = json.loads(line)
    if event["event"] == "error":
        reports[event.get("kernel", {}).get("line", 0)].append(event)

how = sys.argv[3] if len(sys.argv) > 3 else ""
wrong, compared, done = [], 0, False
bad, missed, effects = 0, set(), []  # lines; what kernels did, which the program notices


def differences(words, event):
    type_, kind, base = words[2], words[3], words[6]
    size, thread, bytes_ = words[4], words[5], int(words[7])
    buffers = event.get("buffers", [])
    access, kernel = event.get("access", {}), event["kernel"]
    yield "type", type_, event["type"]
    yield "kind", kind, access.get("kind")
    if size != "-":
        yield "bytes", int(size), access.get("bytes")
    if type_ != "heap-use-after-free" and thread != "-":
        yield "thread", [int(thread), 0, 0], kernel.get("thread")
    if base != "0x0":
        yield "buffer", (base, bytes_), (buffers[0]["base"], buffers[0]["size"]) if buffers else None


for line in open(sys.argv[1]):
    words = line.split()
    if words and words[0] in ("good", "bad"):
        compared += 1
        found = reports.pop(int(words[1]), [])
        bad += words[0] == "bad"
        if how == "missed" and words[0] == "bad" and not found:
            missed.add(words[1])
        elif len(found) != (words[0] == "bad"):
            wrong.append(f"{line.strip()}: {len(found)} reports {[e['type'] for e in found]}")
        elif found:
            different = [(what, b) for what, a, b in differences(words, found[0]) if a != b]
            wrong += [f"{line.strip()}: {what} {b!r}" for what, b in different]
    elif words and words[0] == "done":
        done = True
    elif words:
        effects.append(line.strip())
wrong += [text for text in effects
          if text.split()[0] not in ("changed", "result") or text.split()[1].rstrip(":") not in missed]
if not done:
    wrong.append("the program did not end")
for line, events in reports.items():
    wrong.append(f"{len(events)} reports at line {line}: {events[0]['type']}")
for text in wrong[:100000 if how == "all" else 20]:
    print(text)
counted = f", {len(missed)} of {bad} missed" if how == "missed" else ""
print(f"{compared} compared, {len(wrong)} wrong{counted}")
sys.exit(bool(wrong) or not compared)
