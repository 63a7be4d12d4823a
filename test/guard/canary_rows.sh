#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# bench/canary-*.sh keep results as they come, continue where an earlier run ended, and respect their time
# limit; with programs, a driver tool and a moat that are fakes.
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || { echo 'no python3 on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
failed=0
export BUILD=$T/build MOAT=$T/bin/moat PATH=$T/bin:$PATH CANARY_ROWS=$T/kept SECTION=$T/section.md RAN=$T/ran
mkdir -p "$T/bin" "$T/lib" "$BUILD/cache/gpu-suite"

put() {  # put FILE: a program, from standard input
    { echo '#!/bin/bash'; cat; } >"$1"
    chmod +x "$1"
}
put "$T/bin/nvidia-smi" <<<'echo 90'
echo one >"$T/lib/libmoat.so"
put "$MOAT" <<'END'
while [[ ${1:-} == --* ]]; do shift; done
[ "${1:-options}" = options ] || exec "$@"
END
for name in bfs fft; do
    put "$BUILD/cache/gpu-suite/$name" <<'END'
echo "${0##*/}" >>"$RAN"
if [ -n "${PROGRAM_GATE:-}" ]; then
    : >"$PROGRAM_GATE/$$"
    until [ -e "$PROGRAM_GATE/go" ]; do sleep 0.01; done
fi
echo 'seconds: 0.01'
END
done
put "$BUILD/cache/gpu-suite/long" <<'END'
: >"$PROGRAM_GATE/$$"
exec sleep 300
END

check() {  # check WHAT: of the command before
    if [ $? = 0 ]; then
        echo "ok   $1"
    else
        echo "FAIL $1"
        sed 's/^/    | /' "$T/log"
        failed=1
    fi
}

ran() {  # ran TIMES: the programs did, since the last time
    local n=0
    [ ! -e "$RAN" ] || n=$(wc -l <"$RAN")
    rm -f "$RAN"
    [ "$n" = "$1" ] || { echo "programs ran $n times, not $1" >>"$T/log"; return 1; }
}

export CANARY_PAIRS_PROGRAMS='bfs fft' CANARY_SUITE_PROGRAMS='bfs fft' CANARY_SUITE_STEPS=turns
for script in pairs:6 suite:5; do
    more=${script#*:} script=${script%:*}
    export CANARY_PAIRS_RUNS=1 CANARY_SUITE_RUNS=1
    timeout 60 bench/canary-$script.sh >"$T/log" 2>&1 && ran 4 && grep -q '| bfs' "$SECTION"
    check "canary-$script.sh measures"
    timeout 60 bench/canary-$script.sh >"$T/log" 2>&1 && ran 0 && grep -q '| bfs' "$SECTION"
    check "canary-$script.sh measures nothing again"
    export CANARY_PAIRS_RUNS=2 CANARY_SUITE_RUNS=2
    # As if it had been stopped between the two of a pair.
    sed -i '$d' "$CANARY_ROWS"/canary-$script-*.tsv
    timeout 60 bench/canary-$script.sh >"$T/log" 2>&1 && ran "$more"
    check "canary-$script.sh goes on"
done

# Rows of another build or another GPU are not used.
export CANARY_SUITE_RUNS=1
echo two >"$T/lib/libmoat.so"
timeout 60 bench/canary-suite.sh >"$T/log" 2>&1 && ran 4
check 'another build is measured anew'
put "$T/bin/nvidia-smi" <<<'echo 80'
timeout 60 bench/canary-suite.sh >"$T/log" 2>&1 && ran 4
check 'another GPU is measured anew'
put "$T/bin/nvidia-smi" <<<'echo 90'
echo one >"$T/lib/libmoat.so"
timeout 60 bench/canary-suite.sh >"$T/log" 2>&1 && ran 0
check 'the first one is remembered'

# Both programs are stopped at the time limit, not only the second.
CANARY_PAIRS_PROGRAMS='long bfs' CANARY_SECONDS=2 CANARY_ROWS=$T/other timeout 60 \
    bench/canary-pairs.sh >"$T/log" 2>&1
[ $? != 124 ]
check 'canary-pairs.sh ends its first program'

# Models: fake processes that answer at once, and record their requests.
mkdir "$T/torch"
cp bench/torch_compare.py bench/turns.py "$T/torch"
cat >"$T/torch/torch_step.py" <<'END'
import os, sys
print('ready', flush=True)
for order in sys.stdin:
    if order[0] == 'm':
        with open(os.environ['RAN'], 'a') as f:
            print(order.split()[0], file=f)
    print('done 0.001', flush=True)
END
export TORCH_COMPARE_ROWS=$T/torch.json
compare() {  # compare SETS
    timeout 60 python3 "$T/torch/torch_compare.py" "$MOAT" m-one-1,m-two-1 "$1" 3 0 - \
        'copy:--mode=canary' >"$T/log" 2>&1
}
models() { [ ! -e "$RAN" ] || sort -u "$RAN" | paste -sd ' '; rm -f "$RAN"; }
rm -f "$RAN"
compare 1 && [ "$(models)" = 'm-one-1 m-two-1' ] && grep -q '| m-two-1 |' "$T/log"
check 'torch_compare.py measures'
sed -i '$d' "$TORCH_COMPARE_ROWS"
echo -n '[[["--mode=canary"], "m-two-1", [[0.1' >>"$TORCH_COMPARE_ROWS"
compare 1 && [ "$(models)" = m-two-1 ] && grep -q '| m-one-1 |' "$T/log"
check 'torch_compare.py goes on'
exit $failed
