#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""triton_drive.py [--seconds=110] [--workers=16] [--ways=alone,api,canary,check] [--limit=40] [--sample=FILE]
runs a sample of Triton's tests in each way, and prints a table. `seconds` is for all, `limit` for one test.
MOAT is the command moat, OUT the folder for results: triton.jsonl and triton-table.md, written every 5 s, and
triton-logs.tgz. With `--table FILE...` it prints the table of several triton.jsonl, of a machine each.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = {
    "alone": [],
    "api": ["--mode=api"],
    "canary": ["--mode=canary"],
    "check": ["--mode=check"],
    "cpu": ["--device=cpu", "--mode=check"],
    "cpu-api": ["--device=cpu", "--mode=api"],
}
NAMES = {
    "alone": "GPU alone",
    "api": "GPU, api",
    "canary": "GPU, canary",
    "check": "GPU, check",
    "cpu": "CPU device, check",
    "cpu-api": "CPU device, api",
}
options = {
    "seconds": "110",
    "workers": "16",
    "ways": "alone,api,canary,check",
    "limit": "40",
    "sample": os.path.join(HERE, "sample.txt"),
}
KINDS = ("passed", "failed", "died", "timeout", "missing", "running", "skipped", "xfailed", "not run")
GOOD = ("passed", "skipped", "xfailed")
UNKNOWN = (None, "running")
CUT = 3  # seconds that a process may run on after the deadline


def sample():
    with open(options["sample"]) as file:
        return file.read().splitlines()


def rows_of(path):
    """The rows of a file that may be written at the moment."""
    try:
        with open(path) as file:
            for line in file:
                try:
                    yield json.loads(line)
                except ValueError:
                    pass
    except OSError:
        pass


class Way:
    """Processes that share the tests of one way."""

    def __init__(self, name, folder, workers, deadline):
        self.name, self.folder, self.workers, self.deadline = name, folder, workers, deadline
        self.queue = os.path.join(folder, name + ".queue")
        with open(self.queue, "w") as file:
            file.write("0")
        self.starts, self.lock, self.seconds = 0, threading.Lock(), 0

    def taken(self):
        with open(self.queue) as file:
            return int(file.read() or 0)

    def start(self):
        with self.lock:
            self.starts += 1
            stem = os.path.join(self.folder, "%s.%03d" % (self.name, self.starts))
        environment = dict(
            os.environ,
            PYTHONPATH=os.path.join(HERE, "lib") + ":" + HERE,
            PYTHONUNBUFFERED="1",
            PYTHONDONTWRITEBYTECODE="1",
            PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
            OMP_NUM_THREADS="1",
            OPENBLAS_NUM_THREADS="1",
            TRITON_TESTS_SAMPLE=options["sample"],
            TRITON_TESTS_QUEUE=self.queue,
            TRITON_TESTS_RESULTS=stem + ".jsonl",
            TRITON_TESTS_LOG=stem + ".log",
            TRITON_TESTS_DEADLINE=str(self.deadline),
        )
        words = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "triton_worker",
            "-p",
            "no:cacheprovider",
            "-q",
            "-s",
            "-W",
            "ignore",
            "--tb=short",
            "language",
            "test_tutorials.py",
        ]
        if WAYS[self.name]:
            moat = [os.environ["MOAT"], "--error-exitcode=0", "--print-limit=0"] + WAYS[self.name]
            if "--device=cpu" in moat:
                moat.append("--cpu-threads=%d" % max(1, os.cpu_count() // self.workers))
            words = moat + words
        with open(stem + ".log", "ab") as log:
            process = subprocess.Popen(
                words,
                cwd=os.path.join(HERE, "tests"),
                env=environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return process, stem

    def watch(self, process, stem):
        """Waits for a process, and ends it if a test takes too long. Returns why it was ended, or None."""
        while process.poll() is None:
            time.sleep(0.25)
            last, now, why = {}, time.time(), None
            for last in rows_of(stem + ".jsonl"):
                pass
            if last.get("kind") == "start" and now - last["time"] > float(options["limit"]):
                why = "timeout"
            elif now > self.deadline + CUT:
                why = "running"
            if why:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return why
        return None

    def run_slot(self, count):
        barren = 0  # processes one after the other that have begun no test
        while time.time() < self.deadline and self.taken() < count and barren < 3:
            process, stem = self.start()
            why = self.watch(process, stem)
            rows = list(rows_of(stem + ".jsonl"))
            barren = 0 if rows else barren + 1
            if rows and rows[-1]["kind"] == "start":
                self.add_unfinished(stem, rows[-1], why or "died", process.returncode)

    def add_unfinished(self, stem, start, outcome, status):
        with open(stem + ".log", "rb") as file:
            file.seek(start["log"])
            lines = file.read().decode(errors="replace").split("\n")
        row = dict(
            kind="end",
            test=start["test"],
            outcome=outcome,
            seconds=round(time.time() - start["time"], 2),
            text=last_words(lines, outcome, status),
            moat=[x for x in lines if "ERROR: moat" in x][:6],
        )
        with open(stem + ".jsonl", "a") as file:
            file.write(json.dumps(row) + "\n")

    def run(self, count):
        begin = time.time()
        side_by_side(self.run_slot, [(count,)] * self.workers)
        self.seconds = time.time() - begin


def last_words(lines, outcome, status):
    """What is to be shown of a process that ended in a test."""
    if outcome == "timeout":
        return "no result after %s s" % options["limit"]
    fatal = [i for i, x in enumerate(lines) if x.startswith("Fatal Python error")]
    if fatal:
        lines = [x for x in lines[fatal[-1] :] if x.strip()][:3]
    return "\n".join(["status %d" % status] + [x for x in lines if x.strip()][-3:])


def side_by_side(function, calls):
    threads = [threading.Thread(target=function, args=arguments) for arguments in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def machine():
    """One line on the machine and what is installed."""
    from importlib.metadata import version

    try:
        words = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        gpu = subprocess.run(words, capture_output=True, text=True).stdout.strip().split("\n")[0]
    except OSError:
        gpu = ""
    return "Run on %s: %s, %d cores, Python %s, PyTorch %s, Triton %s" % (
        time.strftime("%Y-%m-%d", time.gmtime()),
        gpu or "no GPU",
        os.cpu_count(),
        sys.version.split()[0],
        version("torch"),
        version("triton"),
    )


def gather(folder, out, first):
    """Puts the results of all processes into one file."""
    path = os.path.join(out, "triton.jsonl")
    with open(path + ".new", "w") as file:
        file.write(json.dumps(first) + "\n")
        for name in sorted(os.listdir(folder)):
            if name.endswith(".jsonl"):
                for row in rows_of(os.path.join(folder, name)):
                    if row.get("kind") == "end":
                        file.write(json.dumps(dict(row, way=name.split(".")[0])) + "\n")
    os.rename(path + ".new", path)
    return path


def load(paths):
    """Returns what the machines are, the names of the sample, and the results: way -> test -> row."""
    machines, names, ways = [], [], {}
    for path in paths:
        for row in rows_of(path):
            if row["kind"] == "machine":
                machines.append(row["text"])
                names = names or row["tests"]
            else:
                ways.setdefault(row["way"], {})[row["test"]] = row
    return machines, names, {way: ways[way] for way in WAYS if way in ways}


def errors_of(row):
    return [x for x in row.get("moat") or [] if "ERROR: moat" in x]


def print_counts(names, ways, out):
    """One row for each way; the last columns compare it with the first way."""
    (first, reference), *_ = ways.items()
    kinds = [
        k
        for k in KINDS
        if any((r.get(n) or {}).get("outcome", "not run") == k for r in ways.values() for n in names)
    ]
    head = ["way"] + kinds + ["of those that pass with " + NAMES[first], "tests with reports of moat's"]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head), file=out)
    passing = [n for n in names if (reference.get(n) or {}).get("outcome") == "passed"]
    for way, results in ways.items():
        outcomes = [(results.get(n) or {}).get("outcome", "not run") for n in names]
        also = sum((results.get(n) or {}).get("outcome") == "passed" for n in passing)
        cells = [NAMES[way]] + [str(outcomes.count(k)) for k in kinds]
        cells += ["%d of %d" % (also, len(passing)), str(sum(bool(errors_of(r)) for r in results.values()))]
        print("| " + " | ".join(cells) + " |", file=out)
    print(file=out)


def print_tests(title, group, ways, out):
    if group:
        print("\n### %s\n" % title, file=out)
    for name, seen in group:
        print("- `%s`: %s" % (name, ", ".join("%s: %s" % (NAMES[w], x) for w, x in seen.items())), file=out)
        shown = set()
        for way, results in ways.items():
            row = results.get(name)
            if row and row["outcome"] not in GOOD + UNKNOWN:
                lines = [x.strip() for x in row["text"].split("\n") if x.strip()][-4:]
                if tuple(lines) not in shown:
                    shown.add(tuple(lines))
                    for line in lines:
                        print("  - %s: `%s`" % (NAMES[way], line[:200]), file=out)


def print_table(paths, out=sys.stdout):
    machines, names, ways = load(paths)
    for text in machines:
        print("%s." % text, file=out)
    print(file=out)
    if not ways:
        return print("No results.", file=out)
    print_counts(names, ways, out)
    different, bad, same = [], [], 0
    for name in names:
        seen = {w: results[name]["outcome"] for w, results in ways.items() if name in results}
        seen = {w: outcome for w, outcome in seen.items() if outcome not in UNKNOWN}
        if len(set(seen.values())) > 1:
            different.append((name, seen))
        elif not set(seen.values()) <= set(GOOD):
            bad.append((name, seen))
        elif len(seen) == len(ways):
            same += 1
    print(
        "%d tests of %d pass, or are skipped, in every way; %d end differently; "
        "%d fail in every way that has a result." % (same, len(names), len(different), len(bad)),
        file=out,
    )
    print_tests("Different results", different, ways, out)
    print_tests("Failures in every way", bad, ways, out)
    found = [
        (way, n, x)
        for way, results in ways.items()
        for n in names
        for x in errors_of(results.get(n) or {})[:1]
    ]
    if found:
        print("\n### Errors that moat reports\n", file=out)
    for way, name, line in found:
        print("- %s, `%s`: %s" % (NAMES[way], name, line.split("ERROR: moat: ")[-1][:150]), file=out)


def count_reports(folder):
    """The reports in all logs of a way, also those that no test's time has."""
    reports = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".log"):
            with open(os.path.join(folder, name), errors="replace") as file:
                way = name.split(".")[0]
                reports[way] = reports.get(way, 0) + file.read().count("==ERROR: moat")
    return ", ".join("%s %d" % x for x in reports.items())


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--table"]:
        return print_table(arguments[1:])
    for word in arguments:
        key, _, value = word.lstrip("-").partition("=")
        if key not in options:
            sys.exit(__doc__)
        options[key] = value
    names, ways, workers = sample(), options["ways"].split(","), int(options["workers"])
    if any(WAYS[way] for way in ways) and not os.access(os.environ.get("MOAT", ""), os.X_OK):
        sys.exit("triton_drive.py: MOAT must be the path of the command moat")
    begin, total = time.time(), float(options["seconds"])
    out, folder = os.path.abspath(os.environ.get("OUT") or "results"), tempfile.mkdtemp(prefix="triton-logs-")
    os.makedirs(out, exist_ok=True)
    os.environ.setdefault("TRITON_CACHE_DIR", os.path.join(tempfile.gettempdir(), "triton-cache"))
    first, lock = {"kind": "machine", "text": machine(), "tests": names}, threading.Lock()
    print("%s; %d tests, %d processes, logs in %s" % (first["text"], len(names), workers, folder), flush=True)

    def save():
        with lock:
            path = gather(folder, out, first)
            with open(os.path.join(out, "triton-table.md"), "w") as file:
                print_table([path], file)
        return path

    def save_always():
        while True:
            time.sleep(5)
            save()

    def stop(*_):
        print_table([os.path.join(out, "triton.jsonl")])
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)
    threading.Thread(target=save_always, daemon=True).start()
    # The first way compiles, alone; the others find the kernels in Triton's cache and run side by side.
    groups = [ways[:1], ways[1:]] if ways[0] == "alone" and ways[1:] else [ways]
    for group in groups:
        deadline = begin + total * (0.55 if group is not groups[-1] else 1)
        each = workers // len(group) + (len(group) > 1)  # a process in three waits for the GPU
        running = [Way(name, folder, each, deadline) for name in group]
        side_by_side(Way.run, [(way, len(names)) for way in running])
        for way in running:
            print(
                "%s: %.1f s, %d processes, %d starts" % (way.name, way.seconds, way.workers, way.starts),
                flush=True,
            )
    print_table([save()])
    print("\nReports in all logs: " + count_reports(folder))
    subprocess.call(
        [
            "tar",
            "-C",
            os.path.dirname(folder),
            "-czf",
            os.path.join(out, "triton-logs.tgz"),
            os.path.basename(folder),
        ]
    )
    os._exit(0)


main()
