#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Kernels that launch kernels and graphs, tensor maps, wgmma and mma.sp, as nvcc compiles them, with our
# shared runtime and with the static one, alone and watched by moat.
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
failed=0
for program in nested tensors warpgroup sparse; do
    case $program in
    nested) flags='-rdc=true -gencode arch=compute_90,code=compute_90' ;;
    tensors | sparse) flags='-gencode arch=compute_90,code=compute_90' ;;
    warpgroup) flags='-gencode arch=compute_90a,code=compute_90a' ;;
    esac
    flags="-std=c++14 $flags"
    # shellcheck disable=SC2086
    nvcc $flags -c test/cpu/$program.cu -o "$T/$program.o" || exit 1
    # shellcheck disable=SC2086
    nvcc $flags -cudart shared -L"$BUILD/lib/moat" "$T/$program.o" -o "$T/$program-shared" || exit 1
    # shellcheck disable=SC2086
    (eval "$("$MOAT" link-flags)" && nvcc $flags "$T/$program.o" -o "$T/$program-static") || exit 1
    for way in shared-off static-off shared-pages shared-canary; do
        if timeout 120 "$MOAT" --device=cpu --mode="${way#*-}" "$T/$program-${way%-*}" \
            >"$T/log" 2>&1 </dev/null &&
            grep -qx 'all right' "$T/log" && ! grep -q 'sets nothing' "$T/log"; then
            echo "ok   $program, $way"
        else
            echo "FAIL $program, $way"
            tail -n 20 "$T/log" | sed 's/^/    | /'
            failed=1
        fi
    done
done
exit $failed
