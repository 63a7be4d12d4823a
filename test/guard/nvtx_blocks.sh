#!/bin/bash
# SPDX-License-Identifier: MIT
# Pieces of pools that are announced through NVTX, test/guard/nvtx_blocks.c: with moat's declarations of
# NVTX's protocol, and built with NVTX's own headers where they are installed. A tool that was there before
# moat keeps NVTX.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
unset NVTX_INJECTION64_PATH

check() {  # check STATUS PATTERN WHAT: of the program that just ran
    if [ "$status" = "$1" ] && grep -Eq -- "$2" "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $3: status $status, expected $1 and \"$2\""
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}

watch() {
    timeout 60 "$MOAT" --device="$device" "$@" >"$T/log" 2>&1 </dev/null
    status=$?
}

both() {  # both PROGRAM NAME BUFFER
    watch "$1" good "$2"
    check 0 "$2: result 0" "$1 good $2"
    watch "$1" bad "$2"
    check 97 'ERROR: moat: heap-buffer-overflow' "$1 bad $2"
    check 97 "$3" "$1 bad $2: the buffer's name"
    check 97 'nvtxMemRegionsRegister' "$1 bad $2: who announced it"
    check 97 '#0 take[. ]' "$1 bad $2: where it was announced"
}

programs=("$BUILD/tool/nvtx_blocks")
said='without NVTX'\''s headers'
nvcc=$(command -v nvcc || true)
for dir in "${CUDA_HOME:-}" "${nvcc:+$(dirname "$(dirname "$(readlink -f "$nvcc")")")}" /usr/local/cuda; do
    if [ -n "$dir" ] && [ -f "$dir/include/nvtx3/nvToolsExtMem.h" ]; then
        # NVTX's own inline functions may have unused arguments.
        if gcc -std=gnu11 -O1 -DREAL_NVTX -isystem "$dir/include" -o "$T/real" \
            test/guard/nvtx_blocks.c -ldl; then
            programs+=("$T/real")
            said='with NVTX'\''s headers too'
        else
            failed=$((failed + 1))
        fi
        break
    fi
done

for program in "${programs[@]}"; do
    while read -r name buffer; do
        both "$program" "$name" "$buffer"
    done < <("$program" list)
    # Another tool has NVTX: moat leaves it there, and sees no announcements.
    export NVTX_INJECTION64_PATH=/nonexistent/tool.so
    watch "$program" bad layout
    check 1 'layout: result 0' "$program: NVTX was another's"
    unset NVTX_INJECTION64_PATH
done

echo "covered: $said"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
