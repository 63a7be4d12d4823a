#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Accesses of memory that moat does not know, under --mode=check: the driver is asked, and where it knows none
# and nothing else can be there, the access is an error; else it is counted. On a GPU the driver may know
# more.
set -u
. test/guard/check.bash
compile 80 check_strays
mv "$T/check_strays" "$T/plain"
compile 80 check_strays -DMORE
mv "$T/check_strays" "$T/more"

count() {  # count LABEL: the number behind it in the summary
    sed -n "s/^ *$1  *\([0-9,]*\)$/\1/p" "$T/log"
}

pair() {  # pair PROGRAM NAME TYPE
    run "$T/$1" good "$2"
    [ "$status $found" = '0 ' ]
    verdict $? "good $2"
    run "$T/$1" bad "$2"
    [ "$status $found" = "97 $3" ] && [ "$(grep -c 'ERROR: moat' "$T/log")" = 1 ]
    verdict $? "bad $2"
}

pair plain managed wild-access
pair plain pool wild-access
pair more workspace heap-buffer-overflow
run "$T/plain" bad managed
grep -q 'WRITE of size 4 by thread (0,0,0) in block (0,0,0)' "$T/log" &&
    grep -q '^note: neither moat nor the driver knows a buffer there' "$T/log" &&
    [ -z "$(count 'accesses of memory whose allocation moat did not see')" ]
verdict $? 'a wild access has its thread, and is not counted as unseen'
# A kernel that calls malloc may have made what is there, wherever it is.
run "$T/more" bad managed
[ "$status $found" = '0 ' ] && [ "$(count 'accesses of memory whose allocation moat did not see')" = 1 ]
verdict $? 'nothing is certain beside malloc in kernels'
run "$T/more" bad pool
[ "$status $found" = '97 wild-access' ]
verdict $? 'in what moat has mapped there is nothing but its buffers'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
