# SPDX-License-Identifier: MIT
# builds: one
# What it prints depends on the machine; its form does not.

$ moat info | sed -E 's/^(moat|driver|GPU|CPU|cores|libraries)[^:]*: .*/\1/' | sort -u | grep -v GPU
CPU
cores
driver
libraries
moat
$ moat info --cpu-capability=75 --cpu-memory=1G | grep CPU: | grep -oE 'capability [0-9.]+|[0-9.]+ GiB'
capability 7.5
1.0 GiB
