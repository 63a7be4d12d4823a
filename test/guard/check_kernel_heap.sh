#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=check knows where memory from malloc in kernels lies, once a kernel that made the heap has ended: the
# accesses of later kernels are not judged one by one, so their number does not depend on how many there are.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
nvcc -gencode arch=compute_80,code=compute_80 -cudart shared -L"$BUILD/lib/moat" -o "$T/program" \
    test/guard/check_kernel_heap.cu >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }

unseen() {  # unseen ROUNDS: accesses of memory whose allocation moat did not see
    timeout 60 "$MOAT" --device=cpu --mode=check --no-cache --log-file="$T/log" "$T/program" "$1" \
        >"$T/out" 2>&1 </dev/null || echo "status $?"
    sed -n 's/^ *accesses of memory whose allocation moat did not see *//p' "$T/log"
}

one=$(unseen 1) many=$(unseen 20)
grep -q '^64 of 64 right' "$T/out" || one='a wrong result'
echo "unseen: $one in one round, $many in twenty"
if [ "$one" = "$many" ] && [ "${one//,/}" -gt 0 ]; then
    echo '1 passed, 0 failed'
else
    cat "$T/log"
    echo '0 passed, 1 failed'
    exit 1
fi
