#!/bin/bash
# SPDX-License-Identifier: MIT
# mutations.sh [PATTERN]: breaks one rule of the analysis at a time, of the lines of mutations.txt that match
# the pattern, and requires that one of src/flow's tests of proofs, proof_programs or proof_random notices.
# A line is
# FILE :: TEXT => OTHER TEXT; TEXT stands in the file exactly once.
# tier: all
# builds: one
# slow
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
CC=${CC:-gcc}
flags="-std=gnu11 -D_GNU_SOURCE -O1 -Isrc -Iinclude"
packages='libzstd liblz4 libelf libdw libxxhash libcjson'
libs="$BUILD/libmoat-all.a $(pkg-config --libs $packages) -ldl -lm -pthread"
passed=0 failed=0
$CC $flags -c -o "$T/proof_test.o" src/flow/proof_test.c || exit 1
$CC $flags -c -o "$T/closed_test.o" src/flow/closed_test.c || exit 1
$CC $flags -c -o "$T/proof_memo_test.o" src/flow/proof_memo_test.c || exit 1
$CC $flags -c -o "$T/choice_test.o" src/flow/ranges_choice_test.c || exit 1
$CC $flags -c -o "$T/proof_programs.o" test/flow/proof_programs.c || exit 1
$CC $flags -c -o "$T/proof_random.o" test/flow/proof_random.c || exit 1

survives() {  # survives FILE: whether no test notices what is in $T/FILE
    $CC $flags -w -c -o "$T/mutant.o" "$T/$1" || return 1
    $CC -o "$T/test" "$T/proof_test.o" "$T/mutant.o" $libs -lcmocka || return 1
    timeout 60 "$T/test" >"$T/log" 2>&1 || return 1
    $CC -o "$T/closed" "$T/closed_test.o" "$T/mutant.o" $libs -lcmocka || return 1
    timeout 60 "$T/closed" >"$T/log" 2>&1 || return 1
    $CC -o "$T/memo" "$T/proof_memo_test.o" "$T/mutant.o" $libs -lcmocka || return 1
    timeout 60 "$T/memo" >"$T/log" 2>&1 || return 1
    $CC -o "$T/choice" "$T/choice_test.o" "$T/mutant.o" $libs -lcmocka || return 1
    timeout 60 "$T/choice" >"$T/log" 2>&1 || return 1
    $CC -o "$T/programs" "$T/proof_programs.o" "$T/mutant.o" $libs || return 1
    timeout 120 "$T/programs" "${PROGRAMS:-2000}" 1 >"$T/log" 2>&1 || return 1
    $CC -o "$T/random" "$T/proof_random.o" "$T/mutant.o" $libs || return 1
    timeout 120 "$T/random" "${KERNELS:-6000}" 1 >"$T/log" 2>&1
}

cp src/flow/proof_value.c "$T/plain.c"
if ! survives plain.c; then
    echo 'FAIL without a mutation'
    exit 1
fi
while IFS= read -r line; do
    case $line in '' | '#'*) continue ;; esac
    file=${line%% :: *} text=${line#* :: }
    other=${text#* => } text=${text%% => *}
    text=$text other=$other awk 'BEGIN { text = ENVIRON["text"]; other = ENVIRON["other"] }
        (at = index($0, text)) && !done {
            $0 = substr($0, 1, at - 1) other substr($0, at + length(text))
            done = 1
        }
        { print }
        END { exit !done }' "src/flow/$file" >"$T/$file"
    if [ $? -ne 0 ] || [ "$(grep -cF -- "$text" "src/flow/$file")" -ne 1 ]; then
        echo "FAIL $file: not once: $text"
        failed=$((failed + 1))
    elif survives "$file"; then
        echo "FAIL $file: survives: $text -> $other"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
    rm -f "$T/$file"
done < <(grep -e "${1:-}" test/flow/mutations.txt)
echo "covered: $passed mutations"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
