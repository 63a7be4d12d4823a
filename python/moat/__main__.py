# SPDX-License-Identifier: MIT
"""The moat command, from Python: this process becomes it."""

import os
import sys

import moat


def main():
    try:
        path = moat.find_binary()
    except moat.NotFound as why:
        sys.stderr.write("moat: error: {}\n".format(why))
        sys.exit(2)
    os.execv(path, [path] + sys.argv[1:])


if __name__ == "__main__":
    main()
