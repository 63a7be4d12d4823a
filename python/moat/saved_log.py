# SPDX-License-Identifier: MIT
"""A JSON Lines report of moat's that is still being written (doc/reports.md has its keys), and what the
command `moat report` makes of its lines."""

import json
import os
import re
import subprocess
import tempfile


class Log:
    """Reads the events that have been added since it was last read.

    moat answers a process only when its event is in the file, so after a device has been synchronised every
    error of the work before is there."""

    def __init__(self, path):
        self.path = path
        self.offset = 0

    def read(self, until=None):
        """Returns the new complete lines, those before an offset or all of them, each as (line, event)."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                data = file.read(-1 if until is None else until - self.offset)
        except FileNotFoundError:
            return []
        data = data[: data.rfind(b"\n") + 1]
        self.offset += len(data)
        return [(line, json.loads(line)) for line in data.splitlines() if line.strip()]


def is_error(event):
    return event.get("event") == "error"


def short(event):
    """One line for a list of failures: what, where, in which kernel or call."""
    kernel = event.get("kernel") or {}
    words = [event.get("type", "error")]
    if kernel.get("file"):
        words.append("{}:{}".format(os.path.basename(kernel["file"]), kernel.get("line", 0)))
    name = kernel.get("name") or event.get("call")
    if name:
        words.append("in " + name)
    return " ".join(words)


def _plain_environment():
    """The environment of a process that is not to be watched itself."""
    left_out = ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH")
    return {k: v for k, v in os.environ.items() if k not in left_out and not k.startswith("MOAT_")}


def render(moat, lines, form="text"):
    """Returns what `moat report` prints for lines of JSON, as text. Raises OSError or RuntimeError."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(b"\n".join(lines) + b"\n")
        file.flush()
        done = subprocess.run(
            [
                moat,
                "report",
                "--format=" + form,
                "--color=never",
                "--print-limit=0",
                "--error-exitcode=0",
                file.name,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_plain_environment(),
        )
    if done.returncode:
        raise RuntimeError("moat report: " + done.stderr.decode(errors="replace").strip())
    return done.stdout.decode(errors="replace")


def describe(moat, lines):
    """The text of errors, with a first line for pytest's list of failures; the JSON itself if moat cannot
    render it."""
    events = [json.loads(line) for line in lines]
    first = "moat: " + short(events[0])
    try:
        text = render(moat, lines)
        summary = re.search(r"^SUMMARY: (.*)$", text, re.M)
        if summary and events[0].get("kernel"):
            first = summary.group(1)  # has the kernel's name as it is in the source
    except (OSError, RuntimeError) as why:
        text = "{}\n{}".format(why, b"\n".join(lines).decode(errors="replace"))
    if len(events) > 1:
        first += " and {} more".format(len(events) - 1)
    return first + "\n" + text.rstrip()
