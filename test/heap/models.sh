#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# Checks the lock-free structures of src/heap in all interleavings, with spin; and that each model, broken on
# purpose, fails: all such ways with TEST_ALL=1 (alone, in check-all), else the first for each model.
set -u
command -v spin >/dev/null || { echo 'no spin here'; exit 77; }
here=$(realpath "$(dirname "$0")")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T" || exit 1
passed=0 states=()
check() {  # check MODEL [OPTION]: status 0 if spin finds no error; its number of states in $found
    rm -f pan* ./*.trail
    spin -a "$1" >log 2>&1 &&
        gcc "${2:--O2}" -w -DSAFETY -DCOLLAPSE -DVECTORSZ=4096 -o pan pan.c >>log 2>&1 ||
        { cat log; exit 1; }
    ./pan -m200000 -w22 >log 2>&1
    found=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' log)
    grep -q 'errors: 0' log && ! grep -q 'max search depth too small' log
}
good() {
    check "$here/$1.pml" || { grep -E 'pan:|error|depth' log; echo "$1: an interleaving goes wrong"; exit 1; }
    states+=("$1 $found")
    passed=$((passed + 1))
}
bad() {  # bad MODEL WHAT SED-SCRIPT: must be noticed
    [ "${TEST_ALL:-1}" = 1 ] || [ "$1" != "${broken:-}" ] || return 0
    broken=$1
    sed "$3" "$here/$1.pml" >broken.pml
    ! cmp -s "$here/$1.pml" broken.pml || { echo "$1: nothing to change for: $2"; exit 1; }
    if check broken.pml -O0; then  # the error is found before optimizing pays
        echo "$1: not noticed: $2"
        exit 1
    fi
    passed=$((passed + 1))
}
good ring
bad ring 'the ring is left before its last word' 's/at == count && successor ->/successor ->/'
bad ring 'the successor is read after the count' '/^        successor = next\[out\];/d
    s/^        at = taken\[out\];/        at = taken[out]; successor = next[out];/'
bad ring 'one slot too many' 's/put\[in\] - seen >= size\[in\] ->$/put[in] - seen > size[in] ->/'
good window
bad window 'no membarrier' 's/atomic { flush() };  \/\* membarrier \*\//skip;/'
bad window 'ring before window' 's/steal == ASKED \&\& busy == WINDOW -> skip/false -> skip/
    s/steal == ASKED \&\& busy != WINDOW/steal == ASKED/'
bad window 'the thread does not look' 's/:: steal == NOT_ASKED -> where = WINDOW$/:: true -> where = WINDOW/'
good block_list
bad block_list 'the first node is removed' 's/before = first;/before = 0;/'
good reuse
bad reuse 'the tail is read before the head' '
    s/        s = size; t = ticket; c = canary;/        seen = tail[0]; s = size; t = ticket; c = canary;/
    s/            seen = tail\[s\];/            if :: s == 1 -> seen = tail[1] :: else fi;/'
bad reuse 'the head is not read again' 's/s2 == s && t2 == t && c2 == c ->/true ->/'
bad reuse 'a block that is used anew keeps its ticket' 's/    ticket = turn;/    ticket = 1;/
    s/LIVE(s, turn)/LIVE(s, ticket)/g'
bad reuse 'the canary before the tail' 's/    tail\[s\] = LIVE(s, turn);//
    s/alive = true }/alive = true }; tail[s] = LIVE(s, turn)/'
bad reuse 'a head that is not marked as freed' 's/canary = FREED } }/skip } }/'
bad reuse 'a block that is resized without a mark' 's/canary = RESIZED } }/skip } }/'
echo "covered: states ${states[*]}"
echo "$passed passed, 0 failed"
