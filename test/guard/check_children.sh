#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Kernels that kernels launch, under --mode=check: each wrong program of test/guard/check_children.cu has one
# report, which names the kernel and the line; correct twins are silent, and all compute what they should.
# GUARD_DEVICE=gpu: on a GPU.
set -u
. test/guard/check.bash
compile 80 check_children -rdc=true

list_cases "$T/check_children"
while IFS=$'\t ' read -r name type kernel; do
    for proofs in on off; do
        run --proofs=$proofs "$T/check_children" good "$name"
        [ "$status $found" = '0 ' ] &&
            ! grep -q 'not checked: no PTX\|refused\|did not see' "$T/log"
        verdict $? "good $name, proofs $proofs"
        run --proofs=$proofs "$T/check_children" bad "$name"
        [ "$status $found" = "97 $type" ] && [ "$(grep -c 'ERROR: moat' "$T/log")" = 1 ] &&
            grep -q "in kernel $kernel(.*check_children.cu:" "$T/log"
        verdict $? "bad $name, proofs $proofs"
    done
done <"$T/cases"
enough_cases 30

# --mode=fence links no machine code with what it has fenced: the module's kernels are refused.
run --mode=fence "$T/check_children" good parameter
[ "$status" != 0 ] && grep -q 'a module launches kernels on the device and runs unchanged' "$T/log" &&
    grep -q 'is refused: it has no PTX, or could not be fenced' "$T/log"
verdict $? 'with a fence'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
