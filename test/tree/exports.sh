#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Every shared library exports what its table says, the command nothing; and the check would see a leak.
set -eu
shopt -s nullglob
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
: >"$T/nothing"
script/check-exports "$MOAT" "$T/nothing"

for library in "$BUILD"/lib/*.so; do
    tables=(src/*/"$(basename "$library" .so)".so.exports)
    if [ ${#tables[@]} != 1 ]; then
        echo "$library: ${#tables[@]} tables of exports, 1 expected"
        exit 1
    fi
    script/check-exports "$library" "${tables[0]}"
done

cat >"$T/x.c" <<'END'
int x_shown(void);
int x_hidden(void);
int x_shown(void) { return 1; }
int x_hidden(void) { return 2; }
END
printf '# what x exports\nx_shown\n' >"$T/good"
printf 'x_shown\nx_hidden\n' >"$T/more"
script/export-map "$T/good" >"$T/map"
gcc -shared -fPIC -o "$T/tight.so" -Wl,--version-script="$T/map" "$T/x.c"
gcc -shared -fPIC -o "$T/leaky.so" "$T/x.c"
gcc -shared -fPIC -o "$T/none.so" -Wl,--version-script=<(script/export-map "$T/nothing") "$T/x.c"
script/check-exports "$T/tight.so" "$T/good"
script/check-exports "$T/none.so" "$T/nothing"
for pair in 'leaky.so good' 'tight.so more' 'tight.so nothing' 'none.so good'; do
    read -r library table <<<"$pair"
    if script/check-exports "$T/$library" "$T/$table" >"$T/log"; then
        echo "not noticed: $library against $table"
        exit 1
    fi
done
