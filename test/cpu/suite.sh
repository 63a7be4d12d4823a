#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# The suite on the CPU device by three routes: each program compiled to PTX, linked with our shared runtime,
# with our static one, and with none, on the driver API alone (driver_route.h), must find its own results
# right. A program that needs what the CPU device does not have yet must print so and exit normally.
# suite.sh [NAME...]: all of them, or these. test/programs/groups says which are compiled together. Where
# TEST_ALL is 0, each of these groups takes one route, and the next group another one.
set -u
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
SECONDS_EACH=100

# Feature of programs.tsv, and what the message must name: none, at present.
missing=''

link() {  # link ROUTE OBJECT TO
    case $1 in
    shared) nvcc -cudart shared -L"$BUILD/lib/moat" "$2" -o "$3" ;;
    static) (eval "$("$MOAT" link-flags)" && nvcc "$2" -o "$3") ;;
    driver) nvcc -cudart none "$2" "$T"/driver_route*.o -L"$BUILD/lib/moat" -lcuda -o "$3" ;;
    esac
}

run() {  # run ROUTE PROGRAM ARGS EXPECTED-PATTERN: prints how it went; status 1 if it went wrong
    local start=${EPOCHREALTIME/./} status log=$2.log ms
    # shellcheck disable=SC2086
    timeout "$SECONDS_EACH" "$MOAT" --device=cpu --mode=off "$2" $3 >"$log" 2>&1 </dev/null
    status=$?
    ms=$(((${EPOCHREALTIME/./} - start) / 1000))
    if [ -n "$4" ]; then
        if [ $status = 2 ] && grep -qE "$4" "$log"; then
            echo -n " $1 refused ($(grep -oE "$4" "$log" | head -n 1));"
            return 0
        fi
    elif [ $status = 0 ] || [ $status = 77 ]; then
        [ $status = 0 ] && echo -n " $1 $ms ms;" || echo -n " $1 skipped;"
        return 0
    fi
    echo -n " $1 STATUS $status;"
    return 1
}

one() {  # one NAME: a line on it, by the links that `group` has made
    local name args features feature pattern='' line='' status=0 reason='' row
    IFS=$'\t' read -r name _ args _ features < <(grep "^$1	" test/programs/programs.tsv)
    # Each program always takes the same way through the driver, and different programs take different ones.
    DRIVER_ROUTE=$(grep -n "^$1	" test/programs/programs.tsv | cut -d : -f 1)
    export DRIVER_ROUTE
    while read -r feature row; do
        [[ ,$features, != *,$feature,* ]] || { pattern=$row; reason=" (not here yet: $feature)"; break; }
    done <<<"$missing"
    for route in $routes; do
        if [ ! -x "$T/$route/$name" ]; then
            line+=" $route DOES NOT LINK;" status=1
        else
            line+=$(run $route "$T/$route/$name" "$args" "$pattern"; exit $?) || status=1
        fi
    done
    if [ $status = 0 ]; then
        if [ -n "$pattern" ]; then : >"$T/$name.refused"; else : >"$T/$name.passed"; fi
        echo "ok   $name:${line%;}$reason"
    else
        : >"$T/$name.failed"
        { echo "FAIL $name:${line%;}$reason, DRIVER_ROUTE=$DRIVER_ROUTE"; tail -n 6 "$T"/*/"$name".log |
            sed 's/^/    | /'; }
    fi
}

group() {  # group SM NAMES NUMBER: compiles and links them, and runs each under its own name
    local file route name names routes='shared static driver'
    [ "${TEST_ALL:-1}" != 0 ] || routes=$(cut -d ' ' -f $((1 + $3 % 3)) <<<"$routes")
    IFS=, read -ra names <<<"$2"
    file=$(test/programs/object "$2" "$1") || { echo "FAIL $2: nvcc"; return 1; }
    for route in $routes; do
        link $route "$file" "$T/$route/${names[0]}" >"$T/$route/${names[0]}.log" 2>&1 || continue
        for name in "${names[@]:1}"; do ln "$T/$route/${names[0]}" "$T/$route/$name"; done
    done
    for name in "${names[@]}"; do one "$name"; done
}

if [ "${1:-}" = --group ]; then
    group "$2" "$3" "$4"
    exit 0
fi
T=$(mktemp -d) || exit 1
export T
trap 'rm -rf "$T"' EXIT
start=$SECONDS
mkdir "$T/shared" "$T/static" "$T/driver"
nvcc -std=c++17 -Xcompiler -Wall,-Wextra,-Werror,-Wno-deprecated-declarations -odir "$T" -c \
    test/cpu/driver_route*.cpp ||
    exit 1
if [ $# -gt 0 ]; then
    for name; do awk -F '\t' -v name="$name" '$1 == name { print $2, $1 }' test/programs/programs.tsv; done
else
    test/programs/groups objects
fi >"$T/groups"
names=$(cut -d ' ' -f 2 "$T/groups" | tr , '\n' | wc -l)
awk '{ print $0, NR }' "$T/groups" | xargs -P "${TEST_JOBS:-2}" -L 1 "$0" --group
count() { find "$T" -name "*.$1" | wc -l; }
refused=$(count refused) failed=$((names - $(count refused) - $(count passed)))
echo "$((SECONDS - start)) seconds; $refused programs need what the CPU device" \
    "does not have yet, and are refused"
echo "$(($(count passed) + refused)) passed, $failed failed"
[ "$failed" = 0 ] && [ "$names" -gt 0 ]
