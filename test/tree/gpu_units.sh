#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# test/gpu/units.bash runs each unit once, keeps what it said, ends it after its seconds, and goes on where it
# was ended; bench/kept/nvcc compiles nothing twice.
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
fail() { echo "$*"; exit 1; }

cat >"$T/script" <<'END'
#!/bin/bash
set -u
. test/gpu/units.bash
units_begin some
unit good.1 60 sh -c 'echo run >>$T/runs; echo 3 passed, 0 failed, 1 skipped'
unit good.2 60 sh -c 'echo 4 passed, 0 failed'
unit bad 60 sh -c 'echo why; echo 1 passed, 2 failed; exit 1'
unit silent 60 sh -c 'echo words; exit 3'
unit long 1 sleep 20
unit not_there 60 sh -c 'exit 77'
unit slow 200 sleep "$1"
units_end
echo "good: $(units_sum good)"
echo "slow: $(units_sum slow)"
echo "$passed passed, $failed failed, $skipped skipped, $left left"
END
export T MOAT=${MOAT:-moat} GPU_ROWS=$T/rows GPU_SLOTS=$T/slots
mkdir "$T/slots"
: >"$T/slots/0"
: >"$T/slots/1"
GPU_SECONDS=15 timeout 90 bash "$T/script" 150 >"$T/log"
expect() { grep -qx "$1" "$T/log" || { cat "$T/log"; fail "not said: $1"; }; }
expect 'good: 7 passed, 0 failed, 1 skipped'
expect 'slow: 0 passed, 0 failed, 1 parts not run'
expect '8 passed, 4 failed, 2 skipped, 1 left'
expect 'FAIL bad: status 1'
expect '    | why'
expect 'FAIL silent: status 3'
expect 'FAIL long: status 124'
GPU_SECONDS=40 timeout 90 bash "$T/script" 0 >"$T/log"
expect 'slow: 1 passed, 0 failed'
expect '9 passed, 4 failed, 2 skipped, 0 left'
[ "$(wc -l <"$T/runs")" = 1 ] || fail 'a unit that had ended was run again'

# Parts of a test's cases are all of them, and no case is in two.
printf '#!/bin/sh\nseq 1 23\n' >"$T/moat"
chmod +x "$T/moat"
for part in 1 2 3 4 5; do
    (
        BUILD=$T MOAT=$T/moat CASES_PART=$part/5
        # shellcheck source=test/guard/check.bash
        . test/guard/check.bash
        list_cases program
        cat "$T/cases"
    ) || exit
done >"$T/listed" 2>"$T/log"
! command -v nvcc >/dev/null || [ "$(sort -n "$T/listed")" = "$(seq 1 23)" ] ||
    { cat "$T/listed"; fail 'parts of a list are not the list'; }

mkdir -p "$T/bin"
cat >"$T/bin/nvcc" <<'END'
#!/bin/bash
[ "$1" != --version ] || exec echo release
echo "$*" >>"$T/calls"
while [ "$1" != -o ]; do shift; done
echo made >"$2"
END
chmod +x "$T/bin/nvcc"
export PATH=$PWD/bench/kept:$T/bin:$PATH NVCC_KEPT=$T/kept
echo 'first' >"$T/a.cu"
nvcc -O3 -Lhere -o "$T/one" "$T/a.cu"
nvcc -O3 -Lthere -o "$T/other" "$T/a.cu"
[ "$(wc -l <"$T/calls")" = 1 ] && cmp -s "$T/one" "$T/other" || fail 'the same was compiled twice'
nvcc -O2 -o "$T/one" "$T/a.cu"
echo 'second' >"$T/a.cu"
nvcc -O2 -o "$T/one" "$T/a.cu"
[ "$(wc -l <"$T/calls")" = 3 ] || fail 'another option or source is not compiled'
[ "$(nvcc --version)" = release ] || fail 'the real nvcc is not asked'
