#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# What a new user tries first, on a real GPU: each of the five bugs of doc/using.md is found by
# --mode=check and named (test/report/bugs.sh), and a reset of the device beside threads that allocate leaves
# the program running in every mode (test/guard/reset_race.sh). Many commands side by side (units.bash). The
# tables go to the file SECTION names, if any: bench/section mistakes-gpu <FILE puts them into doc/results.md.
# DEVICE=cpu: on the CPU device, to test this script.
set -u
cd "$(dirname "$0")/../.." || exit 1
device=${DEVICE:-gpu}
[ "$device" = cpu ] || nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
# shellcheck source=test/gpu/units.bash
. test/gpu/units.bash
export GUARD_DEVICE=$device TEST_ALL=1
[ -z "${GPU_CACHE:-}" ] || export CHECK_CACHE=$GPU_CACHE
modes='api canary pages count check shadow'
units_begin mistakes
unit bugs 120 env SECTION="$units/bugs.md" test/report/bugs.sh
for mode in $modes; do
    unit "reset.$mode" 150 env SECTION= test/guard/reset_race.sh "$mode"
done
units_end
if [ -n "${SECTION:-}" ]; then
    {
        echo '## Five bugs, and resets beside other threads, on a GPU'
        echo
        bench/machine
        echo
        echo 'The commands of [using.md](using.md#five-bugs), with `--mode=check`.'
        echo
        echo '| command | status | report |'
        echo '| --- | ---: | --- |'
        cat "$units/bugs.md" 2>/dev/null
        echo
        echo 'Four threads allocate, launch and free, while another one resets the device (`reset_race.sh`).'
        echo 'Each of three runs of a mode comes behind one without moat.'
        echo
        echo '| mode | runs |'
        echo '| --- | --- |'
        for mode in $modes; do
            echo "| $mode | $(units_sum "reset.$mode") |"
        done
    } >"$SECTION"
fi
[ $left = 0 ] || echo "parts that have not been run to their end: $left"
echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
[ $failed = 0 ] && [ $passed -gt 0 ]
