# SPDX-License-Identifier: MIT
"""What Python calls in moat's libraries: src/driver/driver_ptx.h and src/guard/torch_alloc.h."""

import ctypes
import os
import re
import sys

_driver = None
torch_allocates = False  # whether moat is PyTorch's allocator


def driver():
    """The library that stands in for the driver; without moat, the driver."""
    global _driver
    if _driver is None:
        _driver = ctypes.CDLL("libcuda.so.1")
    return _driver


def is_moat():
    """Whether the driver is one of moat's libraries."""
    try:
        return hasattr(driver(), "moat_driver_ptx")
    except OSError:
        return False


def say(text):
    """Adds a sentence to the report, or writes it where there is none."""
    try:
        driver().moat_tell_note(text.encode())
    except (OSError, AttributeError):
        sys.stderr.write("moat: " + text + "\n")


_INLINE = re.compile(rb"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOC = re.compile(rb"^[ \t]*\.loc[ \t].*$", re.MULTILINE)


def _true_lines(ptx):
    """PTX in which inline assembly has the line of its source.

    LLVM counts on by one for each line of the assembly: only the first .loc of a piece is right. The others
    become empty lines."""

    def first_only(piece):
        text = piece.group(0)
        first = _LOC.search(text)
        return text if first is None else text[: first.end()] + _LOC.sub(b"", text[first.end() :])

    return _INLINE.sub(first_only, ptx)


def keep_ptx(code, ptx):
    """Tells from which PTX machine code was made. Returns whether moat has kept it."""
    try:
        function = driver().moat_driver_ptx
    except (OSError, AttributeError):
        return False
    if isinstance(ptx, str):
        ptx = ptx.encode()
    ptx = _true_lines(ptx)
    function.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    return function(code, len(code), ptx, len(ptx)) == 0


def keep_ptx_beside(path):
    """The same for a file with machine code, whose PTX has the same name with the suffix .ptx."""
    text = os.path.splitext(path)[0] + ".ptx"
    try:
        with open(path, "rb") as code, open(text, "rb") as ptx:
            return keep_ptx(code.read(), ptx.read())
    except OSError:
        return False
