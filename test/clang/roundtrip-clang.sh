#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Kernels as clang's NVPTX back end compiles them, for the architectures that both it and ptxas know.
set -u
command -v clang >/dev/null || { echo 'no clang on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
for arch in sm_75 sm_80 sm_86 sm_89 sm_90; do
    clang --print-supported-cpus --target=nvptx64-nvidia-cuda 2>&1 | grep -q "	$arch\$" || continue
    for way in -O0 -O1 -O3 '-O1 -gline-tables-only' '-O0 -g'; do
        name="clang-$arch-${way// /}"
        # shellcheck disable=SC2086
        test/clang/ptx test/clang/kernels.cu "$arch" $way >"$T/$name.ptx" || exit 1
        if command -v ptxas >/dev/null; then
            test/ptx/roundtrip-one "$name" "$T/$name.ptx" && passed=$((passed + 1)) || failed=$((failed + 1))
        elif "$MOAT" ptx verify "$T/$name.ptx" && "$BUILD/tool/flow_check" "$T/$name.ptx"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
    done
done
command -v ptxas >/dev/null || echo 'no ptxas: machine code was not compared'
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
