#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# --check-variants=apart: the program's own module is loaded as it is, a launch that is proved needs no
# compiler, and the first one that is not gets its variant, with the program's variables; errors are found as
# with --check-variants=together. The former is the default.
# GUARD_DEVICE=gpu: on a GPU. CASES_PART=K/N: every N-th of the cases below, from the K-th on; the last part
# has what comes behind them.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
# shellcheck source=test/guard/found.bash
. test/guard/found.bash
export XDG_CACHE_HOME=$T/cache
part=${CASES_PART:-1/1}
passed=0 failed=0 device=("--device=${GUARD_DEVICE:-cpu}")

# run good|bad CASE OPTION...: status in $status, what was reported in $found, how many modules were loaded
# unchanged in $apart, how many variants were made in $made
run() {
    timeout "${CHECK_LIMIT:-60}" "$MOAT" "${device[@]}" --mode=check "${@:3}" \
        "$BUILD/tool/apart_cases" "$2" "$1" "$T/file.ptx" >"$T/log" 2>&1 </dev/null
    status=$?
    find_types "$T/log"
    apart=$(sed -n 's/^ *modules loaded unchanged, with checked variants apart from them *//p' "$T/log")
    made=$(sed -n 's/^ *checked variants compiled when a launch first needed them *//p' "$T/log")
    apart=${apart:-0} made=${made:-0}
}
verdict() {  # verdict STATUS WHAT
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $2: status $status, reported: ${found:-nothing}, $apart modules apart, $made variants"
    tail -n 40 "$T/log" | sed 's/^/    | /'
}

# A case, modules that are loaded unchanged, variants, and the error of its bad twin.
while read -r name modules variants error; do
    run good "$name" --check-variants=apart
    [ "$status $found $apart $made" = "0  $modules $variants" ]
    verdict $? "good $name"
    [ "$error" != - ] || continue
    run bad "$name" --check-variants=apart
    [ "$status $found" = "97 $error" ]
    verdict $? "bad $name"
    run bad "$name" --check-variants=together
    [ "$status $found $apart $made" = "97 $error 0 0" ]
    verdict $? "bad $name, together"
done < <(awk -v k="${part%/*}" -v n="${part#*/}" '(NR - k) % n == 0' <<'CASES'
regular 1 0 -
unproved 1 1 heap-buffer-overflow
indirect 0 0 heap-buffer-overflow
newer 2 2 heap-buffer-overflow
file 1 1 heap-buffer-overflow
variables 1 1 global-buffer-overflow
library 1 1 global-buffer-overflow
again 10 10 -
unloaded 400 400 heap-buffer-overflow
attributes 1 1 heap-buffer-overflow
captured 1 2 heap-buffer-overflow
beside 1 2 heap-buffer-overflow
threads 1 1 heap-buffer-overflow
later 12 12 heap-buffer-overflow
clusters 1 1 heap-buffer-overflow
elsewhere 4 4 heap-buffer-overflow
early 0 0 heap-buffer-overflow
reset 4 4 heap-buffer-overflow
CASES
)
# Whether a kernel's other variant was there when one was made: only where a graph has needed that one before.
while read -r name beside; do
    run good "$name" --check-variants=apart
    other=$(sed -n "s/^ *of these where the kernel's other checked variant was there *//p" "$T/log")
    [ "$status $found ${other:-0}" = "0  $beside" ] &&
        grep -q '^ *nanoseconds for which launches waited for such variants *[1-9]' "$T/log"
    verdict $? "good $name, ${other:-0} variants beside the other one"
done < <([ "${part%/*}" != 1 ] || printf 'unproved 0\ncaptured 1\nlater 0\n')
if [ "${part%/*}" != "${part#*/}" ]; then
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
    exit
fi
# On all devices there are. A variant of a module is of one, that of a library of all.
[ "${GUARD_DEVICE:-cpu}" = gpu ] || device+=(--cpu-devices=2)
run good devices --check-variants=apart
[ "$status $found" = '0 ' ] && { [ "${GUARD_DEVICE:-cpu}" = gpu ] || [ "$apart $made" = '4 4' ]; }
verdict $? 'good devices'
run bad devices --check-variants=apart
apart_found=$found
[ $status = 97 ] && [[ $found == *heap-buffer-overflow*global-buffer-overflow* ]] &&
    { [ "${GUARD_DEVICE:-cpu}" = gpu ] || grep -q 'report 1 was seen 2 times' "$T/log"; }
verdict $? 'bad devices'
run bad devices --check-variants=together
[ "$status $found" = "97 $apart_found" ]
verdict $? 'bad devices, together'
device=("--device=${GUARD_DEVICE:-cpu}")
# Blocks that have to run at once: if the variant uses too many registers for that, another one is made, which
# uses fewer. The CPU device's variant does, by its estimate.
unchecked() { grep -q '^ *kernel launches not checked' "$T/log"; }
for proofs in on off; do
    run good together --check-variants=apart --proofs=$proofs
    [ "$status $found $apart" = '0  1' ] && ! unchecked &&
        { [ "${GUARD_DEVICE:-cpu}" = gpu ] || [ "$made" = 2 ]; }
    verdict $? "good together, proofs $proofs"
    run bad together --check-variants=apart --proofs=$proofs
    [ "$status $found" = '97 heap-buffer-overflow' ] && ! unchecked
    verdict $? "bad together, proofs $proofs"
done
run bad together --check-variants=together
[ "$status $found $apart $made" = '97 heap-buffer-overflow 0 0' ] && ! unchecked
verdict $? 'bad together, variants together'
# A driver whose compiler does not heed the limit: the kernel runs unchecked, and a note says so once.
if [ "${GUARD_DEVICE:-cpu}" != gpu ]; then
    LC_ALL=C sed 's/\.maxnreg/.maxnrex/g' "$BUILD/lib/moat/libcuda.so.1" >"$T/libcuda.so.1"
    device=("--driver=$T/libcuda.so.1")
    run bad together --check-variants=apart --no-cache
    device=(--device=cpu)
    [ "$status $found" = '0 ' ] && grep -q '^ *kernel launches not checked.* 2$' "$T/log" &&
        [ "$(grep -c 'cooperative launch of kernel wide cannot all run at once' "$T/log")" = 1 ]
    verdict $? 'a limit that is not heeded'
fi
# By default, whatever the environment says here for other cases.
unset MOAT_OPTIONS
run bad unproved
[ "$status $found $apart $made" = '97 heap-buffer-overflow 1 1' ]
verdict $? 'bad unproved, by default'
run bad unproved --check-variants=auto
[ "$status $found $apart $made" = '97 heap-buffer-overflow 1 1' ]
verdict $? 'bad unproved, auto'
# Without proofs every launch needs a variant.
run good regular --check-variants=apart --proofs=off
[ "$status $found $apart $made" = '0  1 1' ]
verdict $? 'regular without proofs'
# The second time all comes from the cache; without one, nothing does.
run good unproved --check-variants=apart
[ "$status $apart $made" = '0 1 1' ] && grep -q 'from the cache *2$' "$T/log" &&
    ! grep -q 'stored in the cache' "$T/log"
verdict $? 'from the cache'
run bad unproved --check-variants=apart --no-cache
[ "$status $found $apart $made" = '97 heap-buffer-overflow 1 1' ] && ! grep -q 'the cache' "$T/log"
verdict $? 'without a cache'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
