#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_compare.py PLAN JSON: compares what check_classes planned (its output) with what moat reported.

Every bad line has exactly one report with the right type, kind, bytes, thread and buffer, and every good line
has none; bytes or a thread of - are not compared. Prints the lines that differ, at most 20 without a third
argument, and "CASES compared, N wrong".
"""
import collections
import json
import sys

reports = collections.defaultdict(list)
for line in open(sys.argv[2]):
    event = json.loads(line)
    if event["event"] == "error":
        reports[event.get("kernel", {}).get("line", 0)].append(event)

wrong, compared, done = [], 0, False


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
        if len(found) != (words[0] == "bad"):
            wrong.append(f"{line.strip()}: {len(found)} reports {[e['type'] for e in found]}")
        elif found:
            different = [(what, b) for what, a, b in differences(words, found[0]) if a != b]
            wrong += [f"{line.strip()}: {what} {b!r}" for what, b in different]
    elif words and words[0] == "done":
        done = True
    elif words:
        wrong.append(line.strip())
if not done:
    wrong.append("the program did not end")
for line, events in reports.items():
    wrong.append(f"{len(events)} reports at line {line}: {events[0]['type']}")
for text in wrong[:20 if len(sys.argv) < 4 else 100000]:
    print(text)
print(f"{compared} compared, {len(wrong)} wrong")
sys.exit(bool(wrong) or not compared)
