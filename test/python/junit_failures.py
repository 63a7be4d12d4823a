# SPDX-License-Identifier: MIT
"""junit_failures.py JUNIT EXPECTED: prints those lines of EXPECTED, each a test and a text, whose test has
failed with that text according to a JUnit file, and the names of failed tests that EXPECTED does not have."""

import sys
import xml.etree.ElementTree

found = {}
for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"):
    for kind in ("failure", "error"):
        for element in case.iter(kind):
            found[case.get("name")] = element.get("message", "") + (element.text or "")
with open(sys.argv[2], encoding="utf-8") as file:
    for line in file:
        name, _, text = line.rstrip("\n").partition(" ")
        if text in found.pop(name, "absent"):
            print(line, end="")
for name in found:
    print("not expected:", name)
