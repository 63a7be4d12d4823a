#!/bin/bash
# SPDX-License-Identifier: MIT
# The CPU device's answers to odd calls, against those of an H200 (answers.expected), except for the
# differences that answers.tsv gives reasons for. A reason for a difference that does not exist fails, too.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT

# shellcheck disable=SC2016
here='
NR == FNR {
    if (!/^#/)
        other[$1 "\t" $2] = $3
    next
}
/^# / { next }
/^== / { group = substr($0, 4) }
/^-- / { pointer = substr($0, 4) "/" }
!/^(--|  )/ { pointer = "" }
match($0, /: [^:]*(: Segmentation fault)?$/) {
    text = substr($0, 1, RSTART - 1)
    sub(/^ +/, "", text)
    key = group "/" pointer text "\t" substr($0, RSTART + 2)
    if (key in other) {
        $0 = substr($0, 1, RSTART + 1) other[key]
        delete other[key]
    }
}
{ print }
END {
    for (key in other) {
        print "answers.tsv: no such answer: " key >"/dev/stderr"
        wrong = 1
    }
    exit wrong
}'
awk -F '\t' "$here" test/cpu/answers.tsv test/cpu/answers.expected >"$T/expected" || exit 1
"$BUILD/tool/answers" --libcuda="$(realpath "$BUILD")/lib/libmoat-cpu.so" >"$T/all" 2>"$T/messages"
status=$?
tail -n +2 "$T/all" >"$T/got"
answers=$(grep -c ': ' "$T/got")
different=$(diff "$T/expected" "$T/got" | grep -c '^[<>]')
diff -U 2 --label 'an H200, and answers.tsv' --label 'the CPU device' "$T/expected" "$T/got"
echo "covered: $answers answers"
[ $status = 0 ] && [ "$different" = 0 ] && [ "$answers" -gt 500 ] && exit 0
tail -n 20 "$T/messages"
exit 1
