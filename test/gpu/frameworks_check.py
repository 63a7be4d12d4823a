# SPDX-License-Identifier: MIT
"""Runs the programs of frameworks_cases.py alone and under moat, compares their results, and writes tables:
frameworks_check.py MOAT PYTHON FOLDER [PART-OF-A-CASE'S-NAME...]. DEVICE: gpu or cpu; there, alone is
--mode=off. JOBS: programs at a time. GPU_SECONDS: all is ended by then. FRAMEWORKS_MODE: another mode in
place of check, shadow; then the modes api and canary are left out.

FOLDER/section.md gets the tables, also if this is stopped, and FOLDER/N.log what each program printed. A
program that has ended is not run again into the same FOLDER. What fails is printed with the end of its log;
the last line has the numbers."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frameworks_cases.py")
MODE = os.environ.get("FRAMEWORKS_MODE", "check")
LIMIT = 110  # seconds for one program
CLOSE = 1e-3  # greatest difference of a right result, relative to the largest value of its array

POOL, UNPOOL = "--no-torch-alloc", "--unpool --no-torch-alloc"
TORCH = ("api", "canary", "check", "check " + POOL)
PLAIN = ("api", "canary", "check")
# Package, case, modes with their options
PROGRAMS = (
    ("torch", "torch_cnn", TORCH + ("check " + UNPOOL,)),
    ("torch", "torch_transformer", TORCH),
    ("torch", "torch_compile_cnn", TORCH),
    ("torch", "torch_compile_transformer", TORCH),
    ("triton", "triton_kernels", TORCH + ("check " + UNPOOL,)),
    ("cupy", "cupy_raw", PLAIN + ("check --unpool",)),
    ("cupy", "cupy_arrays", PLAIN + ("check --unpool",)),
    ("jax", "jax_jit", PLAIN),
)
BAD = r"SUMMARY: moat: heap-buffer-overflow.* in {}"
# Package, case, mode and options, status, what the output must contain
ERRORS = (
    ("triton", "triton_bad", "check", 97, BAD.format("add_unmasked")),
    ("triton", "triton_good", "check", 0, "^done"),
    ("triton", "triton_bad", "check " + POOL, 0, "^done"),
    ("torch", "torch_source_bad", "check", 97, BAD.format("scale_past")),
    ("torch", "torch_source_good", "check", 0, "^done"),
    ("cupy", "cupy_bad", "check --unpool", 97, BAD.format("scale_past")),
    ("cupy", "cupy_good", "check --unpool", 0, "^done"),
)


def modes_of(modes):
    """What a program is run under: modes with their options."""
    if MODE == "check":
        return modes
    return [mode.replace("check", MODE, 1) for mode in modes if mode.startswith("check")]


class Run:
    """One program under one mode; `mode` None: alone."""

    def __init__(self, number, case, mode):
        self.number, self.case, self.mode = number, case, mode
        self.status = None  # None: not run


class Session:
    def __init__(self, moat, python, folder):
        self.moat, self.python, self.folder = moat, python, folder
        self.cpu = os.environ.get("DEVICE", "gpu") == "cpu"
        self.begin = time.monotonic()
        # Programs that run then have 25 seconds more.
        whole = os.environ.get("GPU_SECONDS")
        self.seconds = float(whole) - 30 if whole else 170
        self.runs, self.failed = [], []
        self.lock = threading.Lock()
        self.alive, self.stopping = set(), False

    def path(self, run, suffix):
        return os.path.join(self.folder, "{}.{}".format(run.number, suffix))

    def command(self, run, extra):
        device = "--device=cpu" if self.cpu else "--device=gpu"
        watch = [self.moat, device, "--log-file=" + self.path(run, "json"), "--format=json"]
        if run.mode is not None:
            words = run.mode.split()
            watch += ["--mode=" + words[0]] + words[1:]
        elif self.cpu:
            watch += ["--mode=off"]
        else:
            watch = []
        return watch + [self.python, CASES, run.case] + extra

    def before(self, run):
        """Takes the status of the same program from a run into the same folder that was ended."""
        try:
            with open(self.path(run, "status")) as f:
                run.status = int(f.read())
        except (OSError, ValueError):
            return False
        return True

    def start(self, run, extra):
        """Runs a program and keeps its status; 124 if it took too long."""
        with open(self.path(run, "log"), "w") as log:
            child = subprocess.Popen(
                self.command(run, extra), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        with self.lock:
            self.alive.add(child.pid)
        limit = max(5, min(LIMIT, self.left() + 25))
        try:
            run.status = child.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            run.status = 124 if limit == LIMIT else None
        if self.stopping:
            run.status = None
        if run.status is not None:
            with open(self.path(run, "status"), "w") as f:
                f.write(str(run.status))
        with self.lock:
            self.alive.discard(child.pid)

    def left(self):
        return self.seconds - (time.monotonic() - self.begin)

    def go(self, run, extra=()):
        if self.before(run) or self.left() <= 0:
            return
        self.start(run, ["--save", self.path(run, "npz")] + list(extra))

    def printed(self, run):
        """What the program printed."""
        try:
            with open(self.path(run, "log"), errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def text(self, run):
        """What the program printed, and moat's report as text."""
        path = self.path(run, "json")
        if not os.path.exists(path):
            return self.printed(run)
        made = subprocess.run(
            [self.moat, "report", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return self.printed(run) + "\n" + made.stdout.decode(errors="replace")

    def fail(self, run, why):
        name = "{} {}".format(run.case, run.mode or "alone")
        printed = self.printed(run)
        report = self.text(run)[len(printed) :]
        lines = [line for part in (printed, report) for line in part.strip().split("\n")[-15:]]
        with self.lock:
            self.failed.append(name)
            print("FAIL {}: {}".format(name, why))
            for line in lines:
                print("    | " + line[:300])
            sys.stdout.flush()


# --- results ------------------------------------------------------------------------------------------------


def distance(folder, one, other):
    """How far the arrays of two runs are from each other: 0, if their bits are the same."""
    import numpy

    try:
        a, b = (numpy.load(os.path.join(folder, "{}.npz".format(r.number))) for r in (one, other))
    except OSError:
        return float("inf")
    if sorted(a.files) != sorted(b.files):
        return float("inf")
    most = 0.0
    for name in a.files:
        x, y = a[name], b[name]
        if x.shape != y.shape or x.dtype != y.dtype:
            return float("inf")
        if x.tobytes() == y.tobytes():
            continue
        x, y = x.astype("f8"), y.astype("f8")
        step = numpy.abs(x - y).max() / max(numpy.abs(x).max(), 1e-30)
        most = max(most, float(step) if step == step else float("inf"), 1e-30)
    return most


def judge(s, alone, run):
    """The cell of the table for a run, and whether it is right."""
    if run.status is None:
        return "not run", True
    if run.status:
        return "**status {}**".format(run.status), False
    if "ERROR: moat" in s.text(run):
        return "**reported**", False
    if alone.status != 0:
        return "runs", True
    far = distance(s.folder, alone, run)
    if far == 0:
        return "same", True
    return ("within {:.0e}" if far < CLOSE else "**differs by {:.0e}**").format(far), far < CLOSE


def results_table(s, rows):
    modes = {m for _, runs in rows for m in runs if m and m != "again"}
    columns = ["again"] + sorted(modes, key=mode_order)
    if not rows:
        return []
    heads = ["alone, again"] + ["`{}`".format(c) for c in columns[1:]]
    table = ["| program | {} |".format(" | ".join(heads)), "| --- " * (len(columns) + 1) + "|"]
    for (_, case), runs in rows:
        alone = runs[None]
        cells = []
        for column in columns:
            run = runs.get(column)
            cell, right = judge(s, alone, run) if run else ("", True)
            if run and not right:
                s.fail(run, cell)
            cells.append(cell)
        if alone.status:
            s.fail(alone, "status {}".format(alone.status))
        table.append("| {} | {} |".format(case, " | ".join(cells)))
    return table


def mode_order(mode):
    return ("api", "canary", MODE).index(mode.split()[0]), len(mode), mode


# --- what was checked ---------------------------------------------------------------------------------------


def read_report(path):
    """The counts of all processes, and the launches of kernels that ran unchecked."""
    counts, unchecked = {}, {}
    with open(path, errors="replace") as f:
        for line in f:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if event.get("event") == "end":
                for value in event.get("watched", []) + event.get("uncovered", []):
                    counts[value["key"]] = counts.get(value["key"], 0) + value["value"]
            elif event.get("event") == "unchecked":
                for kernel in event.get("kernels", []):
                    name = kernel.get("name", "?")
                    unchecked[name] = unchecked.get(name, 0) + kernel["launches"]
    return counts, unchecked


def demangler():
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        function = library.__cxa_demangle
        function.restype = ctypes.c_void_p
        function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    except (OSError, AttributeError):
        return lambda name: name

    def demangle(name):
        status = ctypes.c_int(0)
        text = function(name.encode(), None, None, ctypes.addressof(status))
        return ctypes.string_at(text).decode(errors="replace") if text and not status.value else name

    return demangle


def whole(name):
    return re.sub(r"\s+", "", name)


def stem(name):
    """A kernel's name without its arguments, for names that two demanglers write differently."""
    return whole(re.sub(r"^void ", "", name)).split("<")[0].split("(")[0]


def share(part, all_of_it):
    return "{:.0f} %".format(100 * part / all_of_it) if all_of_it else "-"


def short(name, most=60):
    name = re.sub(r"^void ", "", name)
    name = re.sub(r"\(anonymous namespace\)::", "", name).split("<")[0].split("(")[0]
    return name[:most]


def covered_row(s, case, alone, run, demangle):
    if run is None or run.status is None or not os.path.exists(s.path(run, "json")):
        return None
    counts, unchecked = read_report(s.path(run, "json"))
    checked = counts.get("check_launches", 0)
    left = counts.get("check_bare", 0) + counts.get("check_unfit", 0)
    names = {demangle(n) for n in unchecked}
    full, stems = {whole(n) for n in names}, {stem(n) for n in names}
    times = {}
    if os.path.exists(s.path(alone, "times")):
        with open(s.path(alone, "times")) as f:
            times = json.load(f)
    bare = {n: t for n, t in times.items() if whole(n) in full or stem(n) in stems}
    all_time, bare_time = (sum(t for _, t in rows.values()) for rows in (times, bare))
    first = sorted(bare, key=lambda n: -bare[n][1])[:3]
    worst = ", ".join("`{}` {}".format(short(n), share(bare[n][1], all_time)) for n in first)
    if not times:
        first = sorted(unchecked, key=lambda n: -unchecked[n])[:3]
        worst = ", ".join("`{}`".format(short(demangle(n))) for n in first)
    return "| {} | {} | {} | {} | {} | {} | {} | {} |".format(
        case, checked + left, share(checked, checked + left), counts.get("check_proved", 0),
        counts.get("check_proved_part", 0), share(all_time - bare_time, all_time), len(unchecked), worst,
    )  # fmt: skip


def coverage_table(s, rows):
    table = [
        "| program | launches | checked | wholly proved | proved in part | kernel time covered "
        "| kernels not covered | those that take most time |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    demangle = demangler()
    for (_, case), runs in rows:
        run = runs.get(MODE + " --unpool") or runs.get(MODE)
        row = covered_row(s, case, runs[None], run, demangle)
        if row:
            table.append(row)
    return table


def errors_table(s, runs):
    table = ["| program | options | result |", "| --- | --- | --- |"]
    for (_, case, mode, status, says), run in runs:
        text = s.text(run) if run.status is not None else ""
        right = run.status == status and re.search(says, text, re.MULTILINE) is not None
        if run.status is None:
            cell = "not run"
        elif right:
            found = re.search(r"SUMMARY: moat: (\S+)", text)
            cell = found.group(1) if found else "silent" if "good" in case else "not found: the pool hides it"
        else:
            cell = "**status {}**".format(run.status)
            s.fail(run, "status {}, expected {} and \"{}\"".format(run.status, status, says))
        table.append("| {} | `{}` | {} |".format(case, mode, cell))
    return table


# --- all of it ----------------------------------------------------------------------------------------------


def versions(python):
    code = (
        "import importlib.metadata as m\n"
        "for n, p in (('torch', 'PyTorch'), ('triton', 'Triton'), ('cupy-cuda13x', 'CuPy'),"
        " ('cupy-cuda12x', 'CuPy'), ('cupy', 'CuPy'), ('jax', 'JAX')):\n"
        "    try: print(p, m.version(n))\n"
        "    except m.PackageNotFoundError: pass\n"
    )
    found = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, check=False)
    return ", ".join(found.stdout.decode().split("\n")[:-1])


def has(python, package):
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('%s') is None)" % package
    return subprocess.call([python, "-c", code], stderr=subprocess.DEVNULL) == 0


def plan(s, wanted, there):
    """All runs: the rows of the first table and of the last."""
    number = iter(range(100, 1000))

    def chosen(package, case):
        return package in there and (not wanted or any(w in case for w in wanted))

    rows, errors = [], []
    for package, case, modes in PROGRAMS:
        if chosen(package, case):
            runs = {None: Run(next(number), case, None), "again": Run(next(number), case, None)}
            for mode in modes_of(modes):
                runs[mode] = Run(next(number), case, mode)
            rows.append(((package, case), runs))
    for package, case, mode, status, says in ERRORS:
        if chosen(package, case):
            mode = modes_of([mode])[0]
            errors.append(((package, case, mode, status, says), Run(next(number), case, mode)))
    return rows, errors


def write(s, rows, errors, missing):
    heading = [
        "{} on {}. Each program runs alone, alone again and under each mode; `same`: its results have the"
        " same bits.".format(versions(s.python), "the CPU device" if s.cpu else "a GPU"),
        "",
    ]
    text = heading + results_table(s, rows)
    covered = coverage_table(s, rows)
    if len(covered) > 2:
        text += [
            "",
            "What `" + MODE + "` covered: launches of the whole process; the share of kernel time is that of"
            " the program alone, by the names of the kernels that ran unchecked.",
            "",
        ] + covered
    if errors:
        text += ["", "Programs with one error, and their twins:", ""] + errors_table(s, errors)
    all_runs = [r for _, runs in rows for r in runs.values()] + [r for _, r in errors]
    skipped = sum(r.status is None for r in all_runs)
    failed = len(s.failed)
    result = "{} passed, {} failed".format(len(all_runs) - skipped - failed, failed)
    if skipped:
        result += ", {} not run".format(skipped)
    if missing:
        result += "; not on this machine: " + " ".join(missing)
    with open(os.path.join(s.folder, "section.md"), "w") as f:
        f.write("\n".join(text + ["", result + "."]) + "\n")
    print(result)
    return failed == 0 and skipped < len(all_runs)


def main():
    s = Session(*sys.argv[1:4])
    packages = ("torch", "triton", "cupy", "jax")
    missing = [p for p in packages if not has(s.python, p)]
    rows, errors = plan(s, sys.argv[4:], [p for p in packages if p not in missing])
    if not rows and not errors:
        print("not on this machine: " + " ".join(missing))
        sys.exit(77)

    def stop(_signal, _frame):
        s.stopping = True
        with s.lock:
            alive = list(s.alive)
        for pid in alive:
            os.killpg(pid, signal.SIGKILL)
        write(s, rows, errors, missing)
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)
    with ThreadPoolExecutor(int(os.environ.get("JOBS", 8))) as pool:
        # The caches of what is compiled are filled first, and the times of kernels taken one after the other.
        list(pool.map(lambda row: s.go(row[1][None], times_of(s, row[1][None])), rows))
        # Moat's cache is filled by one program of each package: others would wait for what it compiles, and
        # after a while compile it themselves.
        first = {}
        for (package, _), runs in rows:
            first.setdefault(package, runs[MODE])
        list(pool.map(s.go, first.values()))
        rest = [r for _, runs in rows for mode, r in runs.items() if mode is not None]
        rest = [r for r in rest if r not in first.values()]
        list(pool.map(s.go, rest + [r for _, r in errors]))
    sys.exit(0 if write(s, rows, errors, missing) else 1)


def times_of(s, run):
    if s.cpu:
        return []
    return ["--times", s.path(run, "times"), "--lock", os.path.join(s.folder, "lock")]


if __name__ == "__main__":
    main()
