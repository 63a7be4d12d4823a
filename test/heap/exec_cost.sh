#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# What an exec costs under --heap. The kernel takes 10 ms to enlarge a table of descriptors that threads
# share, so that it must have its size before our threads begin: that is checked by the table itself, because
# times depend on the machine. The time of an exec is printed.
set -u
bash=$(command -v bash) || exit 77
[ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -gt 901 ] || exit 77
size=$("$MOAT" --heap grep -a FDSize /proc/self/status 2>/dev/null | tr -dc 0-9)
if [ "${size:-0}" -le 900 ]; then
    echo "the table of descriptors has ${size:-no} places when the program runs: the connection will need 901"
    echo "0 passed, 1 failed"
    exit 1
fi
microseconds() {  # for one exec, with what is to be run before it
    "$@" "$bash" -c 's=$EPOCHREALTIME; for ((i = 0; i < 50; i++)); do /bin/true; done; e=$EPOCHREALTIME
        echo $(((${e/[.,]/} - ${s/[.,]/}) / 50))' 2>/dev/null
}
echo "covered: an exec takes $(microseconds env) us, under --heap $(microseconds "$MOAT" --heap) us"
echo "1 passed, 0 failed"
