# SPDX-License-Identifier: MIT
# builds: one
# What it prints depends on the machine; its form does not.

$ moat info | sed -E 's/^(moat|driver|GPU|CPU|cores|libraries|mode|cache)[^:]*: .*/\1/' | sort -u | grep -v GPU
CPU
cache
cores
driver
libraries
moat
mode
$ moat info --cpu-capability=75 --cpu-memory=1G | grep CPU: | grep -oE 'capability [0-9.]+|[0-9.]+ GiB'
capability 7.5
1.0 GiB
$ moat info | grep mode:; MOAT_OPTIONS=mode=api moat info | grep mode:
mode:      auto (check on the CPU device, api on a GPU)
mode:      api
# The cache: how much of it is used, or why there is none.
$ moat info --cache-dir=$T/cache | grep cache:; ls $T
cache:     $T/cache, 0 modules, 0.0 of 1024.0 MiB, not made yet
$ mkdir -m 700 $T/cache; head -c 1572864 /dev/zero > $T/cache/00112233445566778899aabbccddeeff.mod; touch $T/cache/foreign; moat info --cache-dir=$T/cache --cache-size=10M | grep cache:
cache:     $T/cache, 1 module, 1.5 of 10.0 MiB
$ chmod 755 $T/cache; moat info --cache-dir=$T/cache | grep cache:
cache:     none ($T/cache: the folder is not the user's alone)
$ moat info --cache-dir=cache | grep cache:; moat info --no-cache | grep cache:
cache:     none (its name must be a full path)
cache:     none (--no-cache)
