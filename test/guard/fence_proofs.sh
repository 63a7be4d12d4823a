#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --mode=fence leaves the fence out of launches that a proof shows to stay in the partition, and of no others:
# not where an access leaves it, is misaligned or is not known, nor where the kernel has what a proof does not
# speak of. Whoever asks for a kernel by its name gets fenced code.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0
program=$(test/guard/compiled 90 fence_proofs 2>"$T/log") || { cat "$T/log"; exit 1; }
cp "$program" "$T/fence_proofs"

# try CASE PROVED ERROR [OPTION]...: how many launches are proved, and the program's error; PART: how many are
# proved in part
try() {
    local name=$1 proved=$2 error=$3 got part
    shift 3
    timeout 60 "$MOAT" --device=cpu --mode=fence --error-exitcode=0 "$@" "$T/fence_proofs" "$name" \
        >"$T/log" 2>&1 </dev/null
    got=$(sed -n 's/^ *of these proved to stay inside, run without a fence *//p' "$T/log")
    part=$(sed -n 's/^ *of these proved in part, with a fence for the others *//p' "$T/log")
    if [ "${got:-0}" = "$proved" ] && [ "${part:-0}" = "${PART:-0}" ] && grep -q "^error $error," "$T/log" &&
        grep -q 'kernel launches fenced' "$T/log" &&
        { if [ "$error" = 0 ]; then ! grep -q ERROR: "$T/log"; else grep -q ERROR: "$T/log"; fi; }; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $name $*: ${got:-0} proved, $proved wanted; ${part:-0} in part, ${PART:-0} wanted;" \
        "error $error wanted"
    tail -n 30 "$T/log" | sed 's/^/    | /'
}

for way in mask check modulo; do
    try right 1 0 --fence=$way
    try twice 1 700 --fence=$way
    try far 0 700 --fence=$way
    try misaligned 0 716 --fence=$way
    try managed 1 0 --fence=$way
    try managed_past 0 700 --fence=$way
    try managed_freed 3 700 --fence=$way
    try pinned 1 0 --fence=$way
    PART=1 try follow 0 0 --fence=$way
    try shared_right 1 0 --fence=$way
    try shared_wrong 0 700 --fence=$way
    PART=1 try stop 0 0 --fence=$way
    try variable_right 1 0 --fence=$way
    try right 0 0 --fence=$way --proofs=off
    PART=1 try gather_right 0 0 --fence=$way
    PART=1 try gather_wrong 0 700 --fence=$way
    try gather_far 0 700 --fence=$way
    try gather_right 0 0 --fence=$way --proofs=off
    PART=1 try together_right 0 0 --fence=$way
    PART=1 try together_wrong 0 700 --fence=$way
    try together_wrong 0 700 --fence=$way --proofs=off
    # Only a cooperative launch has the words.
    try together_alone 0 719 --fence=$way
done
# Behind a variable of the module there may be another one: the fence lets that through, the proof does not.
timeout 60 "$MOAT" --device=cpu --mode=fence --error-exitcode=0 "$T/fence_proofs" variable_wrong \
    >"$T/log" 2>&1
if grep -q 'kernel launches fenced' "$T/log" && ! grep -q 'run without a fence' "$T/log"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo 'FAIL behind a variable'
fi

# The program's own name stands for fenced code; the copy without a fence has another one.
timeout 60 "$MOAT" --device=cpu --mode=fence --dump-rewritten="$T/dump" "$T/fence_proofs" right >"$T/log" 2>&1
text=$(cat "$T"/dump/*.ptx)
body() {  # body NAME: of a kernel
    sed -n "/^\.visible \.entry $1(/,/^}/p;/^\.entry $1(/,/^}/p" <<<"$text"
}
if body _Z4fillPii | grep -q __moat_fence_find && body __moat_bare__Z4fillPii | grep -q st.global &&
    ! body __moat_bare__Z4fillPii | grep -q __moat_fence &&
    ! grep -q '__moat_bare__Z4stopPii' <<<"$text"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo 'FAIL names'
    body _Z4fillPii
fi

# A policy of the cache for a share of all lines names no memory; one for a range does. To wait for another
# grid needs none either.
policy() {  # policy INSTRUCTIONS: how many copies without a fence there are
    cat >"$T/policy.ptx" <<END
.version 8.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 to)
{
    .reg .b64 %rd<5>;
    .reg .f32 %f;
    .reg .b32 %r;
    ld.param.u64 %rd1, [to];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r, %tid.x;
    mul.wide.u32 %rd2, %r, 4;
    add.s64 %rd2, %rd1, %rd2;
    $1
    ld.global.L2::cache_hint.f32 %f, [%rd2], %rd3;
    add.f32 %f, %f, %f;
    st.global.f32 [%rd2], %f;
    ret;
}
END
    "$MOAT" ptx instrument --pass=fence "$T/policy.ptx" | grep -c '__moat_bare_twice('
}
while read -r copies instruction; do
    if [ "$(policy "$instruction")" = "$copies" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL copies without a fence, wanted $copies: $instruction"
    fi
done <<'END'
1 createpolicy.fractional.L2::evict_first.b64 %rd3, 1.0;
1 createpolicy.fractional.L2::evict_last.b64 %rd3;
1 griddepcontrol.wait; createpolicy.fractional.L2::evict_last.b64 %rd3;
1 griddepcontrol.launch_dependents; createpolicy.fractional.L2::evict_last.b64 %rd3;
0 createpolicy.fractional.L2::evict_last.b64 %rd3, %f;
0 createpolicy.range.global.L2::evict_last.b64 %rd3, [%rd1], 0x1000, 0x2000;
END

echo "$passed passed, $failed failed"
[ $failed = 0 ]
