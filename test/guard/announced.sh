#!/bin/bash
# SPDX-License-Identifier: MIT
# moat.h: what a pool allocator announces, test/guard/announced.c, and the header itself: in C and C++, with
# each compiler that is there, in programs of each kind; without moat it must do nothing.
# GUARD_DEVICE=gpu: on a GPU instead of the CPU device.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
device=${GUARD_DEVICE:-cpu}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0

check() {  # check STATUS PATTERN WHAT: of the program that just ran
    if [ "$status" = "$1" ] && grep -Eq -- "$2" "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $3: status $status, expected $1 and \"$2\""
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}

run() {  # run COMMAND...
    timeout 60 "$@" >"$T/log" 2>&1 </dev/null
    status=$?
}

watch() { run "$MOAT" --device="$device" "$@"; }

both() {  # both PROGRAM NAME BUFFER: the case and its twin
    watch "$1" good "$2"
    check 0 'errors 0' "$1 good $2"
    ! grep -q 'ERROR: moat' "$T/log" || { failed=$((failed + 1)); echo "FAIL $1 good $2: reported"; }
    watch "$1" bad "$2"
    check 97 'ERROR: moat: heap-buffer-overflow' "$1 bad $2"
    check 97 "${3:-ERROR: moat}" "$1 bad $2: the buffer's name"
}

while read -r name buffer; do
    both "$BUILD/tool/announced" "$name" "$buffer"
done < <("$BUILD/tool/announced" list)

# Compilers, languages, kinds of programs.
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for language in c c++; do
        for flags in '-fpie -pie' '-fno-pie -no-pie' '-fpie -pie -O2' '-fno-pie -no-pie -O2 -flto'; do
            # shellcheck disable=SC2086
            if ! $compiler -x $language -Wall -Wextra -Werror -Iinclude $flags -o "$T/program" \
                test/guard/announced.c -ldl >"$T/log" 2>&1; then
                if [[ $flags == *lto* ]]; then continue; fi
                status=1
                check 0 . "$compiler $language $flags"
                continue
            fi
            run "$T/program" idle
            check 0 'watching 0' "$compiler $language $flags without moat"
            both "$T/program" upload activations
        done
    done
done

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
