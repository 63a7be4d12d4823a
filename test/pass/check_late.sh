#!/bin/bash
# SPDX-License-Identifier: MIT
# Where checks stand, and where they are left out. A gather has one branch to its slow copy, behind loads that
# are made only where no check has failed of those that they depend on. A loop is never entered again from its
# slow copy, which is one of the whole loop. What was compared is not compared again. That random programs
# still ask the judge about the right accesses is check_pass.sh's part.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
same() {  # same WHAT WANTED FOUND
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAIL %s: wanted\n%s\nfound\n%s\n' "$1" "$2" "$3"
    fi
}
head='.version 8.0
.target sm_90
.address_size 64
'
# fast TEXT: statements of the checked kernel before its slow copies
fast() {
    printf '%s%s' "$head" "$1" >"$T/a.ptx"
    "$MOAT" ptx instrument --pass=check "$T/a.ptx" >"$T/b.ptx" || exit 1
    awk '/entry __moat_check_/ { on = 1 } on && /moat_check_call/ { exit } on' "$T/b.ptx"
}
# shape TEXT: loads and stores of global memory and branches of its fast part, in order, without their names
shape() {
    fast "$1" | sed -nE 's/^\t(@!?%[a-z0-9_]+ )?((ld|st)\.global[^ ]*|bra|or\.pred).*/\1\2/p' |
        sed -E 's/@%__moat_[0-9]+_ /@moat /; s/@%p[0-9]+ /@own /'
}
param='(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
.reg .pred %p<2>;
.reg .u32 %r<9>;
.reg .u64 %d<40>;
ld.param.u64 %d1, [a];
ld.param.u64 %d2, [b];
ld.param.u64 %d3, [c];
mov.u32 %r1, %tid.x;
mul.wide.u32 %d4, %r1, 4;
add.s64 %d5, %d1, %d4;
'
gather='ld.global.u32 %r2, [%d5];
mul.wide.u32 %d6, %r2, 4;
add.s64 %d7, %d2, %d6;
ld.global.u32 %r3, [%d7];
ld.global.u32 %r4, [%d5+4];
mul.wide.u32 %d8, %r4, 4;
add.s64 %d9, %d2, %d8;
ld.global.u32 %r5, [%d9];
'
same gather '@moat ld.global.u32
@moat ld.global.u32
@moat ld.global.u32
@moat ld.global.u32
@moat bra
st.global.u32' "$(shape ".visible .entry k$param${gather}add.s32 %r6, %r3, %r5;
st.global.u32 [%d5], %r6;
ret;
}
")"
# A check of the third level contains what was said of the second since another one of the third.
chain() {  # chain FROM MIDDLE TO REGISTERS
    cat <<END
mul.wide.u32 %d${4}0, %r$1, 4;
add.s64 %d${4}1, %d2, %d${4}0;
ld.global.u32 %r$2, [%d${4}1];
mul.wide.u32 %d${4}2, %r$2, 4;
add.s64 %d${4}3, %d3, %d${4}2;
ld.global.u32 %r$3, [%d${4}3];
END
}
same chains '@moat ld.global.u32
@moat ld.global.u32
@moat ld.global.u32
@moat ld.global.u32
@moat ld.global.u32
or.pred
@moat ld.global.u32
@moat bra
st.global.u32' "$(shape ".visible .entry k${param}ld.global.u32 %r2, [%d5];
ld.global.u32 %r3, [%d5+4];
$(chain 2 4 5 1)
$(chain 3 6 7 2)
st.global.u32 [%d5], %r7;
ret;
}
")"
# The slow copy starts anew, and reads the pointer that the load has overwritten.
same overwritten '@moat bra
ld.global.u64
@moat ld.global.u64
ld.global.v2.u64
@moat bra
st.global.u32' "$(shape ".visible .entry k${param}ld.global.u64 %d5, [%d5];
st.global.u32 [%d5], %r1;
ret;
}
")"
loop="mov.u32 %r8, 0;
L:
${gather}add.s64 %d5, %d5, 8;
add.s32 %r8, %r8, 1;
ld.param.u32 %r7, [n];
setp.lt.u32 %p1, %r8, %r7;
@%p1 bra L;
st.global.u32 [%d1], %r5;
ret;
}
"
same 'gather in a loop' '@moat bra
ld.global.u32
@moat ld.global.u32
ld.global.u32
@moat ld.global.u32
@moat bra
@own bra
@moat bra
st.global.u32' "$(shape ".visible .entry k$param$loop")"
# Its slow copy leads back to itself, and to the end of the loop.
same 'ways out of a slow loop' '@%p1 bra A
bra B' "$(awk '/entry __moat_check_/ { on = 1 } on' "$T/b.ptx" | awk '
    /call/ && !on { on = 1 }
    on && /^\t(@%p1 )?bra / { print }' | head -n 2 |
    sed -E 's/^\t//; s/(@%p1 bra ).*;/\1A/; s/^bra .*;/bra B/')"
same 'back edges of the loop itself' 1 "$(awk '
    /entry __moat_check_/ { on = 1 }
    on && /moat_check_call/ { exit }
    on' "$T/b.ptx" | grep -c '@%p1 bra')"
twice='ld.global.u32 %r2, [%d5];
setp.gt.u32 %p1, %r2, %r1;
@%p1 bra M;
st.global.u32 [%d5], %r1;
M:
'
checks() {  # checks TEXT: comparisons of its fast part, and branches to slow copies
    fast "$1" | awk '/setp\.ge/ { n++ } /@%__moat.* bra/ { b++ } END { print n, b }'
}
# What the first comparison said is asked once more, unless control has gone to the copy of a loop.
same 'compared before' '1 2' "$(checks ".visible .entry k$param${twice}ret;
}
")"
same 'compared before in a loop' '1 1' "$(checks ".visible .entry k${param}L:
${twice}add.s64 %d5, %d5, 4;
add.s32 %r1, %r1, 1;
setp.lt.u32 %p0, %r1, 100;
@%p0 bra L;
ret;
}
")"
# A lookup is kept over a call through a pointer that reaches no function which frees memory, as the
# constructor's parameters are others.
kept() {  # kept RESULT [TEXT]: whether it is, where the function that calls malloc has that result
    cat >"$T/a.ptx" <<END
$head
${2:-}
.extern .func (.param .b64 r) malloc (.param .b64 n);
.func (.param .b32 r) look (.param .b64 a)
{
st.param.b32 [r], 1;
ret;
}
.func $1 take (.param .b64 a)
{
.param .b64 n;
.param .b64 p;
st.param.b64 [n], 8;
call (p), malloc, (n);
ret;
}
.global .align 8 .u64 table[2] = {look, take};
.visible .entry k(.param .u64 a)
{
.reg .pred %p<2>;
.reg .u32 %r<3>;
.reg .u64 %d<5>;
ld.param.u64 %d1, [a];
mov.u32 %r1, 0;
L:
ld.global.u64 %d2, [%d1];
ld.global.u64 %d3, [%d2];
{
.param .b64 x;
.param .b32 y;
st.param.b64 [x], %d2;
P: .callprototype (.param .b32 _) _ (.param .b64 _);
call (y), %d3, (x), P;
ld.param.b32 %r2, [y];
}
add.s32 %r1, %r1, %r2;
setp.lt.u32 %p1, %r1, 9;
@%p1 bra L;
ret;
}
END
    "$MOAT" ptx instrument --pass=check "$T/a.ptx" | awk '/entry __moat_check_/ { on = 1 } on' |
        grep -c 'mov\.u64 %__moat_[0-9]*_, -6491724523260038753;'
}
same 'lookup that is kept' 1 "$(kept '')"
same 'lookup that is not' 0 "$(kept '(.param .b32 r)')"
same 'lookup beside a variable of another text' 0 "$(kept '' '.extern .global .align 8 .b64 others[2];')"
same 'lookup beside a function of another text' 0 "$(kept '' '.extern .func others (.param .b64 a);')"
same 'lookup beside functions of the system' 1 "$(kept '' '.extern .func free (.param .b64 a);')"
same 'lookup beside dynamic shared memory' 1 "$(kept '' '.extern .shared .align 8 .b64 others[];')"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
