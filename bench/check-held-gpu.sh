#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=check costs the kernels of programs on which nothing here was tuned: check-gpu.sh, with a
# section of its own, for the programs of the folder HELD ($BUILD/held), already built: programs.tsv and
# about, as CHECK_GPU_PROGRAMS has it. They take turns on the GPU as KERNEL_RUNS_BESIDE wants it. HELD_RUNS:
# how often each is measured, if there is time (4).
set -eu
held=${HELD:-$BUILD/held}
[ -e "$held/programs.tsv" ] || { echo "check-held-gpu.sh: no programs in $held" >&2; exit 0; }
export CHECK_GPU_PROGRAMS=$held/programs.tsv CHECK_GPU_SECTION=check-held-gpu CHECK_GPU_NOPROOFS=no
export CHECK_GPU_RUNS=${HELD_RUNS:-4}
export KERNEL_RUNS_BESIDE=${KERNEL_RUNS_BESIDE:-4} KERNEL_RUNS_LIMIT=${KERNEL_RUNS_LIMIT:-10}
exec "$(dirname "$0")/check-gpu.sh"
