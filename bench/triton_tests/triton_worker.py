# SPDX-License-Identifier: MIT
"""A plugin of pytest for triton_drive.py: runs tests of the sample from a queue that several processes share,
and writes each result as it comes. A process ends when the device no longer works, since a fault leaves a
CUDA context unusable; triton_drive.py then starts another. --collect-only prints the names for a sample."""

import fcntl
import json
import os
import sys
import time

import pytest

SAMPLE, QUEUE, RESULTS, LOG = (
    os.environ.get("TRITON_TESTS_" + x) for x in ("SAMPLE", "QUEUE", "RESULTS", "LOG")
)
DEADLINE = float(os.environ.get("TRITON_TESTS_DEADLINE", "inf"))
KEPT_TEXT = 1500
# Reports are written by another process: one that takes longer than this is counted for the next test.
REPORT_DELAY = 0.02


def take(count):
    """Returns the index of the next test, or None if all are taken."""
    with open(QUEUE, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        at = int(file.read())
        if at >= count:
            return None
        file.seek(0)
        file.write(str(at + 1))
        return at


def write(**row):
    with open(RESULTS, "a") as file:
        file.write(json.dumps(row) + "\n")


class Result:
    """What has come of the test that runs."""

    outcome = None
    text = ""


def pytest_runtest_logreport(report):
    if report.failed:
        if Result.outcome != "failed":
            Result.text = str(report.longreprtext)
        Result.outcome = "failed"
    elif report.skipped and Result.outcome is None:
        Result.outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
        Result.text = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
    elif report.when == "call" and Result.outcome is None:
        Result.outcome = "passed"


def device_works():
    import torch

    try:
        torch.cuda.synchronize()
        return True
    except Exception as why:
        Result.text += "\nthe device no longer works: " + str(why).split("\n")[0]
        return False


def errors_since(start):
    """Returns what moat has reported in the log since `start`."""
    with open(LOG, "rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").split("\n")
    return [x for x in lines if "ERROR: moat" in x or "SUMMARY: moat" in x][:6]


def run(item):
    Result.outcome, Result.text = None, ""
    start, begin = os.path.getsize(LOG), time.time()
    write(kind="start", test=item.nodeid, time=begin, log=start)
    # Without a next test all fixtures end, so that each test stands alone.
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    works = device_works()
    if not works and Result.outcome == "passed":
        Result.outcome = "failed"
    sys.stdout.flush()
    time.sleep(REPORT_DELAY)
    seconds = round(time.time() - begin, 2)
    write(
        kind="end",
        test=item.nodeid,
        outcome=Result.outcome,
        text=Result.text[-KEPT_TEXT:],
        seconds=seconds,
        moat=errors_since(start),
    )
    if not works:
        os._exit(77)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if session.config.option.collectonly:
        return None
    with open(SAMPLE) as file:
        names = file.read().splitlines()
    items = {item.nodeid: item for item in session.items}
    while time.time() < DEADLINE:
        at = take(len(names))
        if at is None:
            break
        if names[at] in items:
            run(items[names[at]])
        else:
            write(kind="end", test=names[at], outcome="missing", text="not collected", seconds=0)
    return True
