#!/bin/bash
# SPDX-License-Identifier: MIT
# check-size.sh [FILE]: the memory that the table of --mode=check takes on a device, and the host's time to
# change it, as a section of FILE (doc/results.md).
set -eu
here=$(dirname "$0")
{
    echo '## The table of --mode=check'
    echo
    "$here/machine"
    echo
    echo 'Memory on the device, and the time of the host without the copies to the device:'
    echo
    "$BUILD/bench/check_size"
} | tee >("$here/section" check-size "$@")
wait
