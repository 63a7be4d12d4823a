#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The place of an error is the program's: not libc's start code, not a CUDA runtime, not a header of the
# toolkit; and its type does not hang on how the memory was reached. On the CPU device.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0

# summary WHAT WANTED OPTION PROGRAM...: what the report's last line says behind "SUMMARY: moat: "
summary() {
    local what=$1 want=$2
    shift 2
    timeout 120 "$MOAT" --device=cpu "$@" >"$T/log" 2>&1 </dev/null
    local got
    got=$(sed -n "s|^SUMMARY: moat: ||p" "$T/log" | sed "s|$T/||" | head -n1)
    # shellcheck disable=SC2053
    if [[ $got == $want ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what: got \"$got\", expected \"$want\""
        sed 's/^/    | /' "$T/log" | head -n 20
    fi
}

cat >"$T/copy.c" <<'C'
typedef unsigned long size_t;
int cudaMalloc(void **, size_t), cudaMemcpy(void *, const void *, size_t, int), cudaFree(void *);
__attribute__((noinline)) static void copy_it(void *d)
{
    static char h[400];
    cudaMemcpy(d, h, 400, 1);
    __asm__ volatile("");
}
int main(void)
{
    void *d;
    cudaMalloc(&d, 256);
    copy_it(d);
    __asm__ volatile("");
    return 0;
}
C
runtimes=("shared $BUILD/lib/libcudart.so.13" "static $BUILD/lib/libcudart_static.a -ldl -lpthread -lm")
for row in "${runtimes[@]}"; do
    read -r name libs <<<"$row"
    # shellcheck disable=SC2086
    cc -O1 -o "$T/copy_$name" "$T/copy.c" $libs || exit 1
    summary "$name runtime, no -g" 'heap-buffer-overflow in copy_it' "$T/copy_$name"
    ! grep -q 'rt_copy\|__libc_start' "$T/log" ||
        { echo "FAIL $name: frames of the runtime"; failed=$((failed + 1)); }
    # shellcheck disable=SC2086
    cc -g -O1 -o "$T/copy_lines_$name" "$T/copy.c" $libs || exit 1
    summary "$name runtime, -g" 'heap-buffer-overflow copy.c:6 in copy_it' "$T/copy_lines_$name"
done
strip -o "$T/bare" "$T/copy_shared"
summary 'stripped' 'heap-buffer-overflow bare+0x*' "$T/bare"
timeout 120 "$MOAT" --device=cpu --format=sarif --log-file="$T/sarif" "$T/copy_static" >/dev/null 2>&1
if grep -q '"fullyQualifiedName": "copy_it"' "$T/sarif" && ! grep -A30 '"locations"' "$T/sarif" |
    grep -q libc_start; then
    passed=$((passed + 1))
else
    echo 'FAIL SARIF does not name copy_it'
    failed=$((failed + 1))
fi

# A path with a byte that is not UTF-8.
folder=$T/$(printf 'n\351e')
mkdir "$folder" && cp "$T/copy_lines_static" "$folder/app"
summary 'a path that is not UTF-8' 'heap-buffer-overflow copy.c:6 in copy_it' "$folder/app"

# Kernels.
cc -g -Isrc -o "$T/pipeline" demo/pipeline.c -L"$BUILD/lib/moat" -lcuda || exit 1
kernel() {  # kernel NAME: standard input is the body of smooth(float*), whose pointer is %rd1
    {
        printf '.version 9.0\n.target sm_75\n.address_size 64\n'
        printf '.extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n'
        printf '.visible .entry _Z6smoothPf(.param .u64 p)\n{\n.reg .pred %%q<4>;\n.reg .b32 %%r<9>;\n'
        printf '.reg .b64 %%rd<9>;\n.shared .align 4 .b8 s[64];\nld.param.u64 %%rd1, [p];\n'
        printf 'mov.u32 %%r1, %%tid.x;\nsetp.ne.u32 %%q1, %%r1, 0;\n'
        printf '@%%q1 bra DONE;\n'
        sed '/^\.file/,$d' "$T/body"
        printf 'DONE:\nret;\n}\n'
        sed -n '/^\.file/,$p' "$T/body"
    } >"$T/$1.ptx"
}
cat >"$T/body" <<'P'
mov.u64 %rd2, s;
cvta.shared.u64 %rd3, %rd2;
ld.u32 %r2, [%rd3+4096];
st.global.u32 [%rd1], %r2;
P
kernel generic
sed -i '/cvta/d; s/ld.u32 %r2, .%rd3/ld.shared.u32 %r2, [%rd2/' "$T/body"
kernel direct
for way in generic direct; do
    for mode in api pages; do
        summary "read past shared memory, $way, $mode" 'shared-buffer-overflow in smooth(float\*)' \
            --mode=$mode "$T/pipeline" "$T/$way.ptx"
    done
done
take='mov.u64 %rd2, 16;
{ .param .b64 n; .param .b64 r; st.param.b64 [n], %rd2; call.uni (r), malloc, (n); ld.param.b64 %rd3, [r]; }'
give='{ .param .b64 p1; st.param.b64 [p1], %rd3; call.uni free, (p1); }'
printf '%s\n' "$take" "$give" "$give" >"$T/body"
kernel twice
printf '%s\n' "$take" 'add.u64 %rd3, %rd3, 4;' "$give" >"$T/body"
kernel inside
printf '%s\n' 'mov.u64 %rd3, 4096;' "$give" >"$T/body"
kernel nowhere
for mode in api pages; do
    summary "free twice, $mode" 'double-free in smooth(float\*)' --mode=$mode "$T/pipeline" "$T/twice.ptx"
    summary "free inside a block, $mode" 'bad-free in smooth(float\*)' --mode=$mode "$T/pipeline" \
        "$T/inside.ptx"
    summary "free of no block, $mode" 'bad-free in smooth(float\*)' --mode=$mode "$T/pipeline" \
        "$T/nowhere.ptx"
done
cat >"$T/body" <<'P'
.loc 1 20 1
add.u64 %rd2, %rd1, 1073741824;
.loc 2 134 5, function_name $L_name, inlined_at 1 20 1
ld.global.nc.u32 %r2, [%rd2];
st.global.u32 [%rd1], %r2;
.file 1 "/src/own.cu"
.file 2 "/opt/cuda-13.0/bin/../targets/x86_64-linux/include/sm_32_intrinsics.hpp"
.section .debug_str
{
$L_name:
.b8 95,95,108,100,103,0
}
P
kernel inlined
for row in 'api wild-access' 'check heap-buffer-overflow'; do
    summary "a header of the toolkit, ${row% *}" "${row#* } /src/own.cu:20 in smooth(float\*)" \
        --mode="${row% *}" "$T/pipeline" "$T/inlined.ptx"
    grep -q '#0 __ldg /opt/cuda.*sm_32_intrinsics.hpp:134' "$T/log" ||
        { echo 'FAIL the inlined chain is gone'; failed=$((failed + 1)); }
done
printf 'mov.u32 %%r2, 7;\nst.global.u32 [%%rd1+1024], %%r2;\n' >"$T/body"
kernel over
summary 'canaries' 'heap-buffer-overflow in smooth(float\*)' --mode=canary "$T/pipeline" "$T/over.ptx"

# Python: the interpreter's frames are left out for those of Python code, and not the place.
python=$(command -v /usr/bin/python3 || command -v python3)
if [ -n "$python" ]; then
    cc -O1 -shared -fPIC -Dmain=run_it -o "$T/libcopy.so" "$T/copy.c" "$BUILD/lib/libcudart.so.13" || exit 1
    echo "import ctypes; ctypes.CDLL('$T/libcopy.so').run_it()" >"$T/copy.py"
    summary 'Python' 'heap-buffer-overflow in copy_it' "$python" "$T/copy.py"
    if grep -q 'frames of the interpreter\|libffi\|_ctypes' "$T/log" ||
        ! grep -q '#3 <module> .*/copy.py:1$' "$T/log"; then
        echo 'FAIL frames of the interpreter'
        failed=$((failed + 1))
    fi
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 10 ]
