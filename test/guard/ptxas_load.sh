#!/bin/bash
# SPDX-License-Identifier: MIT
# Machine code that ptxas made as a program of its own, started by a watched process, is executed and checked
# by the PTX behind it, also when a later process finds that on disk. Without the cache, or with --no-jit-ptx,
# it is not.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v ptxas >/dev/null || { echo 'no ptxas on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0
cat >"$T/twice.ptx" <<'END'
.version 8.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 x, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd0, [x];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r1, %r0;
    @%p bra END;
    cvta.to.global.u64 %rd1, %rd0;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f0, [%rd3];
    add.f32 %f1, %f0, %f0;
    st.global.f32 [%rd3], %f1;
END:
    ret;
}
END
sed 's/add.f32 %f1, %f0, %f0/mul.f32 %f1, %f0, 0f40000000/' "$T/twice.ptx" >"$T/other.ptx"

run() {  # run STATUS PATTERN WHAT OPTION... -- CUBIN N [COMMAND]
    local wanted=$1 says=$2 what=$3 options=() status
    shift 3
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    timeout 60 "$MOAT" --device=cpu "${options[@]}" "$BUILD/tool/ptxas_load" "$@" >"$T/log" 2>&1 </dev/null
    status=$?
    if [ $status = "$wanted" ] && grep -Eq -- "$says" "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what: status $status, expected $wanted and \"$says\""
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}

compile="ptxas -arch=sm_90 -o $T/twice.cubin $T/twice.ptx"
run 0 '^right' 'check' -- "$T/twice.cubin" 100 "$compile"
run 0 'kernel launches checked +1$' 'a later process' -- "$T/twice.cubin" 100
run 97 'heap-buffer-overflow.* in kernel twice' 'a wrong access' -- "$T/twice.cubin" 101
run 0 '^right' 'without a mode that rewrites' --mode=api -- "$T/twice.cubin" 100
run 2 'gives 209' '--no-jit-ptx' --no-jit-ptx -- "$T/twice.cubin" 100
run 2 'gives 209' '--no-cache' --no-cache -- "$T/twice.cubin" 100
run 0 '^right' 'compiled under api' --mode=api -- "$T/other.cubin" 100 \
    "ptxas -arch sm_90 $T/other.ptx --output-file $T/other.cubin"
rm -rf "$T/cache"
run 2 'gives 209' 'nobody saw ptxas' -- "$T/twice.cubin" 100
ptxas -arch=sm_90 -o "$T/twice.cubin" "$T/twice.ptx"
run 2 'gives 209' 'ptxas alone' -- "$T/twice.cubin" 100
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
