#!/bin/bash
# SPDX-License-Identifier: MIT
# gpu.sh FOLDER [SECTION...]: all that is measured and tested on a GPU, or these sections of doc/results.md, one after the other,
# from a packed build (make dist) or a checkout. FOLDER gets SECTION.md and SECTION.log; each part is stopped when its seconds
# are over, which are printed without arguments. Back home:
#
#   for f in FOLDER/*.md; do bench/section "$(basename "$f" .md)" <"$f"; done
set -u
cd "$(dirname "$0")/.." || exit 1

# section, seconds, script
parts() {
    cat <<'END'
suite-gpu           90 test/gpu/programs.sh
guard-errors-gpu   150 test/gpu/guard.sh
guard-frameworks   200 test/gpu/frameworks.sh
guard-torch        240 bench/guard-torch.sh
guard-suite-gpu    300 bench/guard-suite.sh
count-start-gpu    300 bench/count_start.sh
canary-errors-gpu  150 test/gpu/canary_gpu.sh
canary-suite-gpu   250 bench/canary-suite.sh
canary-torch-gpu   200 bench/canary-torch.sh
canary-pairs-gpu   120 bench/canary-pairs.sh
canary-buffers-gpu  60 bench/canary-buffers.sh
canary-latency-gpu  60 bench/canary-latency.sh
canary-memory-gpu   60 bench/canary-memory.sh
kheap-errors-gpu   120 test/gpu/kheap_gpu.sh
kheap-gpu          120 bench/kheap.sh
END
}

[ $# -gt 0 ] || { parts; exit 0; }
nvidia-smi -L >/dev/null 2>&1 || { echo 'gpu.sh: no GPU on this machine' >&2; exit 77; }
export BUILD=${BUILD:-$PWD}
export MOAT=${MOAT:-$BUILD/bin/moat}
mkdir -p "$1" || exit 1
folder=$(realpath "$1")
shift
for name; do
    parts | grep -q "^$name " || { echo "gpu.sh: there is no section $name" >&2; exit 2; }
done

status=0 begin=$SECONDS
while read -r section seconds script; do
    [ $# = 0 ] || [[ " $* " == *" $section "* ]] || continue
    # Scripts that can end early get time to write what they have.
    CANARY_SECONDS=$((seconds * 4 / 5)) GUARD_TORCH_SECONDS=$((seconds / 2)) SECTION=$folder/$section.md \
        timeout -k 15 "$seconds" "$script" >"$folder/$section.log" 2>&1 </dev/null
    result=$?
    [ $result = 0 ] || [ $result = 77 ] || status=1
    echo "[$((SECONDS - begin)) s] $section: $(tail -n 1 "$folder/$section.log") ($result)"
done < <(parts)
# What a script measures beside its own section.
for pair in guard-torch.md.calls:guard-gpu count-start-gpu.md.torch:count-start-torch-gpu; do
    [ ! -s "$folder/${pair%:*}" ] || mv "$folder/${pair%:*}" "$folder/${pair#*:}.md"
done
exit $status
