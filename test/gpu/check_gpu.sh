#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=check on a real GPU: random kernels of every class (test/guard/check_classes.sh), programs with
# errors and their twins (the scripts below), and random kernels whose reports and results must be those of
# the CPU device. The table goes to the file SECTION names, if any:
# bench/section check-errors-gpu <FILE puts it into doc/results.md.
scripts="check_mode check_spaces check_proofs check_certain check_kheap check_memory check_races"
scripts+=" check_linked check_graphs check_strays check_children check_apart check_collective"
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
note() {  # note STATUS TEXT
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $2"; fi
}
run() {  # run DEVICE SEED: source lines of errors in $T/DEVICE.lines, the program's output in $T/DEVICE.out
    timeout 300 "$MOAT" --device="$1" --mode=check --on-error=skip --format=json --log-file="$T/$1.json" \
        --print-limit=0 "$BUILD/tool/check_differential" "$2" 500 >"$T/$1.out" 2>"$T/$1.err" </dev/null
    grep -o '"line":[0-9]*' "$T/$1.json" | sort -u >"$T/$1.lines"
}
TEST_ALL=1 GUARD_DEVICE=gpu test/guard/check_classes.sh >"$T/random" 2>&1
note $? "check_classes: $(tail -n 20 "$T/random")"
for script in $scripts; do
    GUARD_DEVICE=gpu test/guard/$script.sh >"$T/$script" 2>&1
    note $? "$script: $(tail -n 20 "$T/$script")"
    echo "$script: $(tail -n 1 "$T/$script")"
done
for seed in 1 2 3 4; do
    run cpu $seed
    run gpu $seed
    cmp -s "$T/cpu.out" "$T/gpu.out" && cmp -s "$T/cpu.lines" "$T/gpu.lines" && [ -s "$T/cpu.lines" ]
    note $? "seed $seed: $(diff "$T/cpu.lines" "$T/gpu.lines" | head -n 5) $(tail -n 3 "$T/gpu.err")"
done
if [ -n "${SECTION:-}" ]; then
    {
        echo '## Random kernels under --mode=check on a GPU'
        echo
        bench/machine
        echo
        echo "1,000 random kernels for each class, with proofs and without: $(tail -n 1 "$T/random")."
        for script in $scripts; do
            echo "Programs of \`$script.sh\`: $(tail -n 1 "$T/$script")."
        done
        echo "All classes, and 4 rounds of 500 kernels compared with the CPU device: $failed failed."
    } >"$SECTION"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
