# SPDX-License-Identifier: MIT
# What it prints depends on the machine; its form does not.

$ moat info | sed -E 's/^(moat|driver|GPU|CPU)[^:]*: .*/\1/' | sort -u | grep -v GPU
CPU
driver
moat
