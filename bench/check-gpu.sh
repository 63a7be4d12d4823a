#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=check costs kernels on a GPU, by the time that CUPTI gives for each launch (kernel_runs): the
# programs of the suite as they are, from PTX that the driver has compiled, and under --mode=check with
# proofs and without, in turns, CHECK_GPU_RUNS times. After the first turn, for CHECK_GPU_SANITIZER seconds at
# most, under compute-sanitizer. CHECK_GPU_TOGETHER=yes: also with --check-variants=together.
# CHECK_GPU_PROGRAMS=FILE: other programs than the suite's (kernel_runs_programs). Their section is
# CHECK_GPU_SECTION; without that variable none is written. CHECK_GPU_NOPROOFS=no: only with proofs.
# CHECK_GPU_WARM=no: the caches are filled already, by a call with CHECK_GPU_RUNS=0. GPU_SECONDS ends the
# measurement, GPU_ROWS keeps its rows.
set -eu
here=$(dirname "$0")
nvidia-smi -L >/dev/null 2>&1 || { echo 'check-gpu.sh: no GPU on this machine' >&2; exit 0; }
RUNS=${CHECK_GPU_RUNS:-3}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/kernel_runs
. "$here/kernel_runs"
list='' about=/dev/null section=check-gpu title='Kernels under --mode=check on a GPU'
if [ -n "${CHECK_GPU_PROGRAMS:-}" ]; then
    kernel_runs_programs "$CHECK_GPU_PROGRAMS" || exit 0
    section=${CHECK_GPU_SECTION:-} title='Programs of others under --mode=check, by the time of their kernels'
fi
kernel_runs_begin || exit 0
checked=check
[ "${CHECK_GPU_NOPROOFS:-yes}" = no ] || checked+=' check-noproofs'
[ "${CHECK_GPU_TOGETHER:-no}" = no ] || checked+=' check-together'
# shellcheck disable=SC2086
[ "${CHECK_GPU_WARM:-yes}" = no ] || kernel_runs_warm ptx $checked
[ "$RUNS" != 0 ] || exit 0
rows=$(kernel_runs_rows)
# shellcheck disable=SC2086
kernel_runs_turns 1 native ptx $checked

[ -n "${CHECK_GPU_PROGRAMS:-}" ] || kernel_runs_sanitizer "${CHECK_GPU_SANITIZER:-100000}"
# shellcheck disable=SC2086
kernel_runs_turns "$RUNS" native ptx $checked
[ -s "$rows" ] || { echo 'check-gpu.sh: nothing was measured' >&2; exit 1; }
[ -z "${CHECK_GPU_ROWS:-}" ] || cp "$rows" "$CHECK_GPU_ROWS"
{
    echo "## $title"
    echo
    "$here/machine"
    cat "$about"
    python3 "$here/kernel_runs.py" check "$rows" "$list"
} >"$T/section"
cat "$T/section"
[ -z "$section" ] || "$here/finish" "$section" "$T/section"
