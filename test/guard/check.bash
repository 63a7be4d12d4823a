# SPDX-License-Identifier: MIT
# For tests of --mode=check: scripts that source this have a scratch folder $T, the counts $passed and $failed,
# and the functions below. It ends the script where it cannot run.
#
# compile ARCH NAME [OPTION...]: test/guard/NAME.cu becomes $T/NAME.
# run OPTION...: runs moat; its status in $status, the types of what was reported, each once, in $found.
# verdict STATUS WHAT: counts, and prints the report after a failure; $more says what else it should show.
#
# shellcheck shell=bash
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v nvcc >/dev/null || { echo 'no nvcc on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache
passed=0 failed=0 more=

compile() {
    nvcc -std=c++17 -lineinfo -gencode "arch=compute_$1,code=compute_$1" -cudart shared -L"$BUILD/lib/moat" \
        -o "$T/$2" "test/guard/$2.cu" "${@:3}" >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }
}

run() {
    timeout 60 "$MOAT" --device="${GUARD_DEVICE:-cpu}" --mode=check "$@" >"$T/log" 2>&1 </dev/null
    status=$?
    found=$(sed -n 's/.*ERROR: moat: \([a-z-]*\).*/\1/p' "$T/log" | uniq | tr '\n' ' ')
    found=${found% }
}

verdict() {
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAIL $2: status $status, reported: ${found:-nothing}$more"
    tail -n 40 "$T/log" | sed 's/^/    | /'
}
