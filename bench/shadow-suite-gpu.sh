#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=shadow costs kernels on a GPU, by the time that CUPTI gives for each launch (kernel_runs): the
# programs of the suite as they are, from PTX that the driver has compiled, and under --mode=shadow with
# proofs, and without by encoding, with the load of the shadow and without; in turns, SHADOW_SUITE_RUNS times.
# First all programs with proofs and without, then the encodings, program by program, so that all encodings
# have the same programs when time is over; last, for SHADOW_SUITE_SANITIZER seconds at most, those under
# compute-sanitizer that have no row of bench/check-gpu.sh. With SECTION, the plot by encoding lies beside it.
# SHADOW_SUITE_PROGRAMS=FILE: other programs than the suite's (kernel_runs_programs). Their section is
# SHADOW_SUITE_SECTION; without that variable none is written. SHADOW_SUITE_WARM=no: the caches are filled
# already, by a call with SHADOW_SUITE_RUNS=0. GPU_SECONDS ends the measurement, GPU_ROWS keeps its rows.
set -eu
here=$(dirname "$0")
nvidia-smi -L >/dev/null 2>&1 || { echo 'shadow-suite-gpu.sh: no GPU on this machine' >&2; exit 0; }
RUNS=${SHADOW_SUITE_RUNS:-1}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# shellcheck source=bench/kernel_runs
. "$here/kernel_runs"
list='' about=/dev/null section=shadow-suite-gpu title='The suite under --mode=shadow on a GPU'
if [ -n "${SHADOW_SUITE_PROGRAMS:-}" ]; then
    kernel_runs_programs "$SHADOW_SUITE_PROGRAMS" || exit 0
    section=${SHADOW_SUITE_SECTION:-} title='Programs of others under --mode=shadow on a GPU'
fi
kernel_runs_begin || exit 0
loaded='shadow-256 shadow-128 shadow-8' unloaded='shadow-256-unloaded shadow-128-unloaded shadow-8-unloaded'
# shellcheck disable=SC2086
[ "${SHADOW_SUITE_WARM:-yes}" = no ] || kernel_runs_warm shadow shadow-noproofs $loaded $unloaded
[ "$RUNS" != 0 ] || exit 0
rows=$(kernel_runs_rows)
kernel_runs_turns 1 native ptx shadow shadow-noproofs
kernel_runs_turns 1 native shadow-256
# shellcheck disable=SC2086
kernel_runs_turns "$RUNS" native ptx shadow shadow-noproofs $loaded $unloaded
[ -n "${SHADOW_SUITE_PROGRAMS:-}" ] || kernel_runs_sanitizer "${SHADOW_SUITE_SANITIZER:-100000}"
[ -s "$rows" ] || { echo 'shadow-suite-gpu.sh: nothing was measured' >&2; exit 1; }
{
    echo "## $title"
    echo
    "$here/machine"
    cat "$about"
    python3 "$here/kernel_runs.py" shadow "$rows" "$list"
    echo
    echo 'For comparison: the simulation in the GASan paper has 1.31 on average and 1.88 at worst. Wanted' \
        'with proofs: 1.10 in the geometric mean, and 1.40 at worst.'
} >"$T/section"
python3 "$here/kernel_runs.py" plot "$rows" "$list" >"$T/plot"
if [ -s "$T/plot" ]; then
    svg=${SECTION:+$(dirname "$SECTION")}
    svg=${svg:-${SHADOW_SUITE_PROGRAMS:+$T}}
    svg=${svg:-$here/../doc}/${section:-shadow}.svg
    python3 "$here/canary_plot.py" "${title% on a GPU} without proofs" \
        'bytes of memory for a byte of the shadow' 'times native' <"$T/plot" >"$svg"
    printf '\n![time by encoding](%s.svg)\n' "${section:-shadow}" >>"$T/section"
fi
cat "$T/section"
[ -z "$section" ] || "$here/finish" "$section" "$T/section"
