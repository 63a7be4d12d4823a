# SPDX-License-Identifier: MIT
"""moat for Python: where its command is. `python -m moat` and the script `moat` run it; `pytest --moat` runs
tests under it (pytest_plugin.py)."""

import os
import shutil

_HERE = os.path.dirname(os.path.abspath(__file__))
# A build folder of a checkout (it has bin/moat) goes before everything else.
VARIABLE = "MOAT_BUILD"


class NotFound(Exception):
    """There is no moat command; the text says where it was looked for."""


def _is_program(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_python(path):
    """Returns whether a file is a script, as the one that pip makes from this package's entry point."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def find_binary():
    """Returns the path of the moat command: that of the folder in MOAT_BUILD, else the wheel's, else the
    first on PATH that is not this package's own script. Raises NotFound."""
    build = os.environ.get(VARIABLE)
    if build:
        path = os.path.join(build, "bin", "moat")
        if not _is_program(path):
            raise NotFound("{}={}: {} is no program".format(VARIABLE, build, path))
        return os.path.abspath(path)
    path = os.path.join(_HERE, "native", "bin", "moat")
    if _is_program(path):
        return path
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("moat", path=folder)
        if found and not _is_python(found):
            return os.path.abspath(found)
    raise NotFound(
        "no moat command in this package or on PATH. Install the wheel that `make wheel` makes, or"
        " moat itself, or set {} to a build folder".format(VARIABLE)
    )
