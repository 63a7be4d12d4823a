#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# tier: all
# The part of test/gpu/fence_gpu.sh that makes many mistakes beside neighbours, on the CPU device and over a
# pretended MPS server: with the fence all rows pass and the section counts them, without it they fail.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
fail() { echo "$*"; tail -n 30 "$T/log"; exit 1; }
mkdir "$T/bin"
printf '#!/bin/bash\n[ "${1:-}" = -d ] || exec cat >/dev/null\n' >"$T/bin/nvidia-cuda-mps-control"
chmod +x "$T/bin/nvidia-cuda-mps-control"
export PATH=$T/bin:$PATH DEVICE=cpu FENCE_WAYS=mask FENCE_RANDOM=20 FENCE_WRITTEN=80 FENCE_JOBS=2
export XDG_CACHE_HOME=$T/cache
BUILD=$(realpath "$BUILD")
export BUILD

run() {  # run NAME: with rows of its own
    GPU_ROWS=$T/$1
    units=$GPU_ROWS/units-fence-$(bench/rows-key)
    mkdir -p "$units"
    for program in fence_tenant fence_mistakes; do
        cp "$(test/guard/compiled 90 $program -O2 2>"$T/log")" "$units/$program" || fail "$program"
    done
    GPU_ROWS=$GPU_ROWS SECTION=$T/$1.md timeout 300 test/gpu/fence_gpu.sh many >"$T/log" 2>&1 </dev/null
}

run fence || fail "with the fence: status $?"
grep -q '^| mask | 120 | 160 | 8 | 0 | 0 |$' "$T/fence.md" || { cat "$T/fence.md"; fail 'the section'; }
grep -q 'No neighbour failed' "$T/fence.md" || { cat "$T/fence.md"; fail 'neighbours'; }

! FENCE_MODE=off run off || fail 'without the fence it passes'
grep -q '^| mask | 0 | 0 | 8 | 8 | 0 |$' "$T/off.md" || { cat "$T/off.md"; fail 'the other section'; }
