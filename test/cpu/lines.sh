#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Reports of faults on the CPU device name source lines, also for inlined functions: with PTX as nvcc writes
# it, with PTX from clang, and where there is an nvcc with -lineinfo, with -G, and in modes that rewrite the
# PTX.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0
cc -g -Isrc -o "$T/pipeline" demo/pipeline.c -L"$BUILD/lib/moat" -lcuda || exit 1

# expect WHAT MODE COMMAND...: standard input has the lines that must be adjacent in the report
expect() {
    local what=$1 mode=$2 want
    want=$(cat)
    shift 2
    timeout 120 "$MOAT" --device=cpu --mode="$mode" "$@" >"$T/log" 2>&1 </dev/null
    sed -nE 's/^.* in kernel (.*)$/\1/p; /^in the kernel at:/,/^noticed/p; s/^SUMMARY: //p' "$T/log" |
        sed -E '/^noticed/d; s| [^ ]*/([a-z]*\.[a-z]+:)| \1|' >"$T/got"
    if [ "$want" = "$(cat "$T/got")" ]; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        diff <(echo "$want") "$T/got"
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}

for mode in api pages canary; do
    expect "PTX, $mode" $mode "$T/pipeline" test/cpu/lines.ptx <<'END'
smooth(float*) put.h:7
in the kernel at:
    #0 put(float*, int) put.h:7
    #1 both(float*, int) lines.cu:14
    #2 smooth(float*) lines.cu:23
moat: wild-access put.h:7 in smooth(float*)
END
done

# clang 14 emits lines, but not inlining information.
if command -v clang >/dev/null && test/clang/ptx test/cpu/lines.cu sm_75 -O2 -gline-tables-only \
    >"$T/clang.ptx" 2>"$T/log"; then
    expect 'PTX of clang' pages "$T/pipeline" "$T/clang.ptx" < <(
        echo 'smooth(float*) lines.cu:6'
        ! grep -q inlined_at "$T/clang.ptx" ||
            printf '%s\n' 'in the kernel at:' '    #0 put(float*, long) lines.cu:6' \
                '    #1 both(float*, long) lines.cu:10' \
                '    #2 smooth(float*) lines.cu:14'
        echo 'moat: wild-access lines.cu:6 in smooth(float*)')
else
    echo 'skip PTX of clang'
fi

for flag in -lineinfo -G; do
    command -v nvcc >/dev/null || { echo "skip nvcc $flag"; continue; }
    nvcc -std=c++14 "$flag" -cudart shared -gencode arch=compute_90,code=compute_90 -o "$T/lines" \
        test/cpu/lines.cu || exit 1
    expect "nvcc $flag, inlined" pages "$T/lines" <<'END'
smooth(float*) lines.cu:6
in the kernel at:
    #0 put(float*, long) lines.cu:6
    #1 both(float*, long) lines.cu:10
    #2 smooth(float*) lines.cu:14
moat: wild-access lines.cu:6 in smooth(float*)
END
    expect "nvcc $flag, called" canary "$T/lines" called <<'END'
called(float*, long) lines.cu:21
in the kernel at:
    #0 get(float const*, long) lines.cu:21
    #1 called(float*, long) lines.cu:25
moat: wild-access lines.cu:21 in called(float*, long)
END
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 2 ]
