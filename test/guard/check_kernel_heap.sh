#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=check knows where memory from malloc in kernels lies, once a kernel that made the heap has ended: of
# all accesses, only those of the first kernel are counted as accesses of memory that moat did not see.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
nvcc -std=c++14 -gencode arch=compute_80,code=compute_80 -cudart shared -L"$BUILD/lib/moat" -o "$T/program" \
    test/guard/check_kernel_heap.cu >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }

unseen() {  # unseen ROUNDS: accesses of memory whose allocation moat did not see
    timeout 60 "$MOAT" --device=cpu --mode=check --no-cache --log-file="$T/log" "$T/program" "$1" \
        >"$T/out" 2>&1 </dev/null || { cat "$T/out" >&2; echo 999999; return; }
    sed -n 's/^ *accesses of memory whose allocation moat did not see *//p' "$T/log" | tr -d ,
}

# Of the 1,024 accesses of the first kernel some are seen, if moat's thread finds the heap meanwhile.
one=$(unseen 1) many=$(unseen 20)
echo "unseen: ${one:-0} in one round, ${many:-0} in twenty"
if [ "${one:-0}" -le 1024 ] && [ "${many:-0}" -le 1024 ]; then
    echo '1 passed, 0 failed'
else
    cat "$T/log"
    echo '0 passed, 1 failed'
    exit 1
fi
