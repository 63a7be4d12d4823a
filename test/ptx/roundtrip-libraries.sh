#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# The PTX modules inside the toolkit's cuBLAS, cuSPARSE and cuRAND through parse and print: a sample of the
# smaller ones here. With --all every one, smallest first, until LIBRARIES_SECONDS (1,200) have passed;
# modules in progress may finish, each within MODULE_SECONDS (300). What was right is remembered in
# BUILD/cache, so that with the same programs and libraries another run continues with the others. Prints how
# many modules, of how many, are right, in time and over it.
set -u
command -v ptxas >/dev/null || { echo 'no ptxas on this machine'; exit 77; }
lib=$(dirname "$(readlink -f "$(command -v ptxas)")")/../lib64
found=()
for name in libcublas.so libcusparse.so libcurand.so; do
    [ -e "$lib/$name" ] && found+=("$lib/$name")
done
[ ${#found[@]} -gt 0 ] || { echo 'no cuBLAS, cuSPARSE or cuRAND on this machine'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export T
all=0 END=
[ "${1:-}" != --all ] || all=1 END=$((EPOCHSECONDS + ${LIBRARIES_SECONDS:-1200}))
LIMIT=${MODULE_SECONDS:-300}
DONE=$T/done
if [ $all = 1 ]; then
    key=$({ cat "$MOAT" "$BUILD"/tool/{same_code,flow_check} test/ptx/roundtrip-one; ptxas --version
        stat -L -c '%s %Y' "${found[@]}"; } |
        sha256sum | cut -c 1-16)
    DONE=$BUILD/cache/roundtrip/libraries-$key
    mkdir -p "${DONE%/*}"
fi
touch "$DONE"
export END LIMIT DONE

one() {  # one LIBRARY MODULE: a line on it
    local name="${1##*/}-$2" status
    [ -z "$END" ] || [ "$EPOCHSECONDS" -lt "$END" ] || return 0
    "$MOAT" ptx print --raw --module="$2" "$1" >"$T/$name.ptx" || { echo "FAIL $name: print --raw"; return; }
    timeout "$LIMIT" test/ptx/roundtrip-one "$name" "$T/$name.ptx" >"$T/$name.said"
    status=$?
    case $status in
    0) echo "$name" >>"$DONE" ;;
    124) echo "long $name: $(stat -c %s "$T/$name.ptx") bytes, not through in $LIMIT s" >"$T/$name.said" ;;
    *) grep -q '^FAIL' "$T/$name.said" || echo "FAIL $name: status $status" >>"$T/$name.said" ;;
    esac
    cat "$T/$name.said"
    rm -f "$T/$name".*
}
export -f one

modules() {  # modules LIBRARY: size and number of its PTX modules, the sample's or all
    "$MOAT" ptx list "$1" 2>/dev/null |
        awk -v all=$all '$2 == "ptx" && (all || $7 > 2000 && $7 < 200000 && n++ % 24 == 0) { print $7, $1 }'
}
for l in "${found[@]}"; do
    modules "$l" | while read -r size m; do
        printf '%s %s %s %s\n' "$size" "${l##*/}-$m" "$l" "$m"
    done
done | sort -n >"$T/modules"
awk 'FILENAME == ARGV[1] { done[$1] = 1; next } !($2 in done) { print $3; print $4 }' \
    "$DONE" "$T/modules" >"$T/list"
xargs -d '\n' -a "$T/list" -r -n 2 -P "${JOBS:-1}" bash -c 'one "$@"' one >>"$T/out"
grep -v '^ok' "$T/out"
failed=$(grep -c '^FAIL' "$T/out") long=$(grep -c '^long' "$T/out")
# "N of M modules, A of B MB"
right=$(awk 'FILENAME == ARGV[1] { done[$1] = 1; next } { m++; b += $1 } $2 in done { n++; a += $1 }
    END { printf "%d of %d PTX modules, %.1f of %.1f MB", n, m, a / 1e6, b / 1e6 }' "$DONE" "$T/modules")
passed=${right%% *}
if [ $all = 1 ]; then
    left=$(($(wc -l <"$T/modules") - passed - failed - long))
    echo "covered: $right right, $(grep -c '^ok' "$T/out") of them now;" \
        "$long take over $LIMIT s; $left left for another run"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
