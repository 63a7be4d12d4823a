#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The packed folder runs from anywhere with nothing but libc from the machine.
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
script/dist "$BUILD" test "$T/packed" >"$T/log"
# The same sum twice (alone, and in check-all), and no tests unless asked for.
if [ "${TEST_ALL:-1}" = 1 ]; then
    sum=$(sha256sum <"$T/packed/moat-test.tar.gz")
    script/dist "$BUILD" test "$T/packed" >"$T/log"
    [ "$sum" = "$(sha256sum <"$T/packed/moat-test.tar.gz")" ] || { echo 'two archives differ'; exit 1; }
fi
! tar -tzf "$T/packed/moat-test.tar.gz" | grep -q '/test/\|/tool/' || { echo 'tests are packed'; exit 1; }
mkdir "$T/elsewhere"
tar -C "$T/elsewhere" -xzf "$T/packed/moat-test.tar.gz"
rm -r "$T/packed"
folder=$T/elsewhere/moat-test
# shellcheck source=test/tree/links.bash
. test/tree/links.bash
[ -z "$(dead_links "$folder")" ] || { dead_links "$folder"; exit 1; }

version=$(env -i LD_LIBRARY_PATH= "$folder/bin/moat" --version)
[ "$version" = "$("$MOAT" --version)" ] || { echo "packed moat says $version"; exit 1; }
env -i LD_LIBRARY_PATH= "$folder/bin/moat" info >"$T/log"
grep -q '^CPU:  .*compute capability' "$T/log" || { cat "$T/log"; exit 1; }
cc -Isrc -D_GNU_SOURCE -o "$T/launch" test/cpu/driver_launch.c -L"$folder/lib/moat" -lcuda
env -i "$folder/bin/moat" --device=cpu "$T/launch"

foreign() {  # foreign FILE: libraries it would take from the machine, libc's own excepted
    env -i LD_LIBRARY_PATH= ldd "$1" | sed -n 's/^[[:space:]]*\([^ ]*\) => \(.*\)/\1 \2/p' |
        sed -e 's|/bin/\.\./lib/|/lib/|' -e 's|/moat/\.\./|/|' |
        grep -vE "^lib(c|m|pthread|dl|rt|resolv)\.so\.|^ld-linux" | grep -vF " $folder/lib/" || true
}
for f in "$folder"/bin/* "$folder"/lib/*.so* "$folder"/lib/moat/*.so*; do
    found=$(foreign "$f")
    [ -z "$found" ] || { echo "$f takes from the machine: $found"; exit 1; }
done
# The check sees a foreign library where there is one.
gcc -x c -o "$T/foreign" - -Wl,--no-as-needed -lzstd <<<'int main(void) { return 0; }'
[ -n "$(foreign "$T/foreign")" ] || { echo 'not noticed: a foreign library'; exit 1; }
