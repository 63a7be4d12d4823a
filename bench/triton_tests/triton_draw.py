# SPDX-License-Identifier: MIT
"""Reads the names of Triton's tests, as `pytest --collect-only -q` prints them, and writes a sample: one of
each test function, 50 more, and all of the tutorials, in a random order that is always the same."""

import random
import sys

MORE, SEED = 50, 30
names = [line for line in sys.stdin.read().splitlines() if "::" in line]
functions = {}
for name in names:
    functions.setdefault(name.split("[")[0], []).append(name)
random.seed(SEED)
drawn = []
for function, tests in functions.items():
    drawn += tests if "tutorials" in function else [random.choice(tests)]
taken = set(drawn)
drawn += random.sample([x for x in names if x not in taken and "tutorials" not in x], MORE)
random.shuffle(drawn)
print("\n".join(drawn))
