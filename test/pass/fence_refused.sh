#!/bin/bash
# SPDX-License-Identifier: MIT
# Instructions that --mode=fence cannot fence end the thread that executes them: none is left in the fenced
# text. Those that it can fence stay. Modules with unknown instructions are refused.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
failed=0
text() {  # text STATEMENT
    cat <<END
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 a)
{
.reg .pred %p;
.reg .b32 %r<9>;
.reg .b64 %d<9>;
ld.param.u64 %d0, [a];
$1
ret;
}
END
}
try() {  # try STAYS WORD STATEMENT
    text "$3" >"$T/k.ptx"
    "$MOAT" ptx instrument --pass=fence "$T/k.ptx" >"$T/out.ptx" 2>"$T/log" ||
        { echo "FAIL $3"; sed 's/^/    | /' "$T/log"; failed=1; return; }
    sed -n '/entry k(/,$p' "$T/out.ptx" >"$T/kernel"
    grep -q "$2" "$T/kernel" && stays=yes || stays=no
    if [ $stays != "$1" ] || { [ "$1" = no ] && ! grep -q 'exit;' "$T/kernel"; }; then
        echo "FAIL $3: stays: $stays, $1 wanted"
        failed=1
    fi
}
try no multimem 'multimem.ld_reduce.relaxed.sys.global.add.u32 %r0, [%d0];'
try no multimem 'multimem.st.relaxed.sys.global.u32 [%d0], %r0;'
try no multimem 'multimem.red.relaxed.sys.global.add.u32 [%d0], %r0;'
try no tensormap 'tensormap.replace.tile.global_address.global.b1024.b64 [%d0], %d1;'
try no multimem '@%p multimem.red.relaxed.sys.global.add.u32 [%d0], %r0;'
try no '^ *trap' 'trap;'
try no '^ *brkpt' 'brkpt;'
try yes 'red.global' 'red.global.add.u32 [%d0], %r0;'
try yes 'suld' 'suld.b.1d.b32.trap %r0, [%d0, {%r1}];'
text 'frobnicate.global.u32 [%d0], %r0;' >"$T/k.ptx"
if "$MOAT" ptx instrument --pass=fence "$T/k.ptx" >"$T/out.ptx" 2>&1; then
    echo 'FAIL an unknown instruction is not refused'
    failed=1
fi
exit $failed
