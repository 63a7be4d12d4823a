#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The guard on a real GPU: every class of error and its correct twin, the ways to the driver, pages and count
# mode. The tables go to the file SECTION names, if any: bench/section guard-errors-gpu <FILE puts them into
# doc/results.md.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export GUARD_DEVICE=gpu
status=0
for script in errors attach refusals pages share count_mode announced; do
    SECTION=$T/$script.md "test/guard/$script.sh" >"$T/$script" 2>&1
    case $? in
    0 | 77) ;;
    *) status=1 ;;
    esac
    sed "s/^/$script: /" "$T/$script"
done
if [ -n "${SECTION:-}" ]; then
    {
        echo '## Errors found on a GPU'
        echo
        bench/machine
        echo
        echo "Ways to the driver on which the guard was: $(tail -n 1 "$T/attach")." \
            "Count mode: $(tail -n 1 "$T/count_mode")." \
            "Announced blocks: $(tail -n 1 "$T/announced")." \
            "Memory shared by processes: $(tail -n 1 "$T/share")."
        cat "$T/errors.md"
        printf '\nWith --mode=pages. A fault on a GPU carries no address: %s\n' \
            'it is reported as wild-access, with candidates.'
        cat "$T/pages.md"
    } >"$SECTION"
fi
sum() {  # sum WORD: over all
    sed -nE "s/.*(^|[ ,])([0-9]+) $1.*/\\2/p" \
        <(tail -qn 1 "$T"/{errors,attach,refusals,pages,share,count_mode,announced}) |
        awk '{ n += $1 } END { print n + 0 }'
}
echo "$(sum passed) passed, $(sum failed) failed, $(sum skipped) skipped"
exit $status
