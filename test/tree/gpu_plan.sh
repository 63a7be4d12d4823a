#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# bench/gpu: the table of its parts is well formed, each script is there, takes the variables that it gets and
# keeps the time that it is given; batches fit into their time. And with parts of this test's own: those of a
# batch run beside each other or alone, one that outlasts its time is ended, the next one gets what is left,
# and the archive has what they wrote.
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
fail() { echo "$*"; exit 1; }

while read -r section seconds batch lane words; do
    [[ $section =~ ^[a-z-]+$ && $seconds =~ ^[0-9]+$ && $batch =~ ^([1-9]|-)$ ]] &&
        [[ $lane =~ ^(beside|alone)$ ]] || fail "not a row: $section $seconds $batch $lane $words"
    [ "$batch/$lane" != -/beside ] || fail "$section: beside what?"
    variables=()
    for word in $words; do
        [[ $word =~ ^[A-Z_]+= ]] || break
        variables+=("${word%%=*}")
    done
    script=${word:-}
    [ -x "$script" ] || fail "$section: no script $script"
    bash -n "$script" || fail "$section: $script"
    sources=("$script")
    for more in bench/kernel_runs "bench/$(basename "$script" .sh | tr - _).py" \
        "test/gpu/$(basename "$script" .sh).py"; do
        ! grep -q "$(basename "$more")" "$script" || sources+=("$more")
    done
    for variable in "${variables[@]}" $([ "$batch" = - ] || echo GPU_SECONDS GPU_ROWS); do
        # Parts of tests are kept and bounded by units.bash.
        [[ $variable != GPU_* ]] || ! grep -q 'units.bash' "$script" || continue
        # What takes less than a minute has no rows.
        [[ $variable == GPU_* && $script =~ ^(bench/launch-cost.sh|test/gpu/share_gpu.sh)$ ]] && continue
        grep -qw "$variable" "${sources[@]}" || fail "$section: $script knows no $variable"
    done
done < <(bench/gpu)
[ -z "$(bench/gpu | cut -d ' ' -f 1 | sort | uniq -d)" ] || fail 'a section occurs twice'

# A call on such a machine takes 600 seconds at most, three of them 30 minutes, and its start is part of that.
whole=0 batches=0
while read -r _ number seconds _ _ most; do
    [ "$seconds" -gt 0 ] && [ "$seconds" -le "$most" ] && [ "$most" -le 560 ] ||
        fail "batch $number takes $seconds s of $most"
    whole=$((whole + seconds)) batches=$((batches + 1))
done < <(bench/gpu --plan | grep '^batch')
read -r _ all _ _ most < <(bench/gpu --plan | grep '^all:')
[ $batches = 3 ] && [ "$all" = $whole ] && [ $whole -le "$most" ] && [ "$most" -le 1680 ] ||
    fail "$batches batches, $whole seconds of $most"

# The same script with a table of our own.
mkdir -p "$T/bench" "$T/bin"
awk -v table='one 15 1 beside bench/late
two 15 1 beside WORD=x bench/quick
three 15 1 alone bench/quick
four 9 - alone bench/quick' '
    /cat <<.END.$/ { print; print table; skip = 1; next }
    /^END$/ { skip = 0 }
    !skip { print }' bench/gpu |
    sed -e 's/^BATCH_SECONDS=.*/BATCH_SECONDS=60 WHOLE_SECONDS=80/' -e 's/^REST=.*/REST=1/' >"$T/bench/gpu"
cat >"$T/bench/late" <<'END'
#!/bin/bash
echo first >"$SECTION"
echo 'as far as this'
sleep 100
END
cat >"$T/bench/quick" <<'END'
#!/bin/bash
[ -n "$GPU_CACHE" ] && [ -d "$GPU_ROWS" ] && [ -e "$GPU_SLOTS/0" ] || exit 1
echo "${WORD:-none} $GPU_SECONDS" | tee "$SECTION"
echo row >>"$GPU_ROWS/rows"
END
printf '#!/bin/sh\necho a GPU\n' >"$T/bin/nvidia-smi"
chmod +x "$T"/bench/* "$T/bin/nvidia-smi"
status=0
(unset NVCC_KEPT BUILD MOAT; PATH=$T/bin:$PATH "$T/bench/gpu" "$T/out" --batch 1 --archive "$T/archive" \
    >"$T/log") || status=$?
[ $status = 1 ] || fail "status $status where a part was ended"
expect() { grep -Eq "^\[.*\] $1\$" "$T/log" || { cat "$T/log"; fail "not said: $1"; }; }
expect 'one: as far as this \(124\)'
expect 'two: x 14 \(0\)'
expect 'three: none (2[0-9]|3[0-9]|4[0-9]) \(0\)'
! grep -q four "$T/log" || fail 'a part of no batch was run'
[ "$(tar -xzOf "$T/archive" out/one.md out/three.md | wc -l)" = 2 ] || fail 'the archive lacks sections'
[ "$(tar -xzOf "$T/archive" out/rows/rows | wc -l)" = 2 ] || fail 'the archive lacks rows'
# What is used up of the whole time is known from the folder.
echo 75 >"$T/out/seconds"
! (unset NVCC_KEPT BUILD MOAT; PATH=$T/bin:$PATH "$T/bench/gpu" "$T/out" --batch 1) >"$T/log" 2>&1 ||
    fail 'the whole time is no limit'
grep -q '75 seconds are used up of 80' "$T/log" || { cat "$T/log"; fail 'the limit is not named'; }
