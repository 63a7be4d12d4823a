#!/bin/bash
# SPDX-License-Identifier: MIT
# Machine code that a C program had from NVRTC or nvJitLink is executed and checked by the PTX behind it,
# whether the program is linked with these libraries or opens them, and whether it compiles before or after
# the driver's start, from one part or several. If a part has machine code only, the report says so.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
nvcc=$(command -v nvcc || true)
for dir in "${CUDA_HOME:-}" "${nvcc:+$(dirname "$(dirname "$(readlink -f "$nvcc")")")}" /usr/local/cuda; do
    [ -z "$dir" ] || [ ! -e "$dir/lib64/libnvJitLink.so.13" ] || [ ! -e "$dir/lib64/libnvrtc.so.13" ] || break
    dir=
done
[ -n "$dir" ] ||
    { echo 'no libnvrtc.so.13 and libnvJitLink.so.13 (CUDA_HOME, nvcc, /usr/local/cuda)'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
gcc -std=gnu11 -O1 -DLINKED -o "$T/linked" test/guard/jit_compile.c -L"$dir/lib64" -lnvrtc -lnvJitLink \
    -Wl,-rpath,"$dir/lib64" -ldl || exit 1
gcc -std=gnu11 -O1 -DNVRTC_NAME="\"$dir/lib64/libnvrtc.so.13\"" -o "$T/opened" test/guard/jit_compile.c \
    -DNVJITLINK_NAME="\"$dir/lib64/libnvJitLink.so.13\"" -ldl || exit 1

echo '__device__ float of(int i) { return 2.0f * i; }' >"$T/of.cu"
arch='-gencode arch=compute_90,code=sm_90'
for how in "-fatbin -o $T/of.fatbin $arch -gencode arch=compute_90,code=compute_90" \
    "-c -o $T/of.o $arch -gencode arch=compute_90,code=compute_90" "-cubin -o $T/of.cubin -arch=sm_90"; do
    # shellcheck disable=SC2086
    "$dir/bin/nvcc" -rdc=true $how "$T/of.cu" || exit 1
done

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
    timeout 120 "$MOAT" --device=cpu "$@" >"$T/log" 2>&1 </dev/null
    status=$?
}

for program in linked opened; do
    for way in nvrtc link-ptx link-cubin link-lto link-parts link-parts-ptx link-file:"$T/of.fatbin" \
        link-file:"$T/of.o"; do
        watch "$T/$program" $way
        check 0 '^right' "$program $way"
    done
    watch --mode=api "$T/$program" link-parts
    check 0 '^right' "$program link-parts, executed as it is"
    watch "$T/$program" nvrtc early
    check 0 '^right' "$program nvrtc early"
    watch "$T/$program" link-lto early
    check 0 '^right' "$program link-lto early"
    watch --mode=check "$T/$program" nvrtc bad
    check 97 'heap-buffer-overflow.* in kernel twice .*twice\.cu:5' "$program: a wrong store, NVRTC"
    watch --mode=check "$T/$program" link-lto bad
    check 97 'heap-buffer-overflow.* in kernel twice .*twice\.cu:6' "$program: a wrong store, nvJitLink"
    watch --mode=check "$T/$program" link-parts bad
    check 97 'heap-buffer-overflow.* in kernel twice .*twice\.cu:6' "$program: a wrong store, two parts"
    watch --no-jit-ptx "$T/$program" nvrtc
    check 2 'cuModuleLoadData gives 209' "$program --no-jit-ptx"
    watch "$T/$program" link-file:"$T/of.cubin"
    check 2 'the PTX of what nvJitLink has made could not be had' "$program: a part of machine code only"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
