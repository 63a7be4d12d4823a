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

# A table may name another, whose rows it stands for: the symbols must be those of both, no more, no less.
mkdir "$T/calls" "$T/x"
printf 'CALL(x_shown, int, (void))\n' >"$T/calls/good.def"
printf '#define BARE(x)\nBARE(x_shown)\nCALL(x_hidden, x, 5, int,\n    (void))\n' >"$T/calls/more.def"
printf '#define CALL(x)\n' >"$T/calls/empty.def"
printf 'CALL(\n    x_shown)\n' >"$T/calls/split.def"
printf '@calls/good.def  # comment\n' >"$T/x/good"
printf '@calls/more.def\n' >"$T/x/more"
printf '@calls/good.def\nx_hidden\n' >"$T/x/both"
printf '@calls/good.def\nx_shown\n' >"$T/x/twice"
for name in empty split missing; do
    printf 'x_shown\n@calls/%s.def\n' $name >"$T/x/$name"
done
script/export-map "$T/x/good" | cmp - "$T/map"
script/check-exports "$T/tight.so" "$T/x/good"
script/check-exports "$T/leaky.so" "$T/x/more"
script/check-exports "$T/leaky.so" "$T/x/both"
for table in twice empty split missing; do
    if script/export-map "$T/x/$table" >"$T/log" 2>&1; then
        echo "a map is made of $table: $(cat "$T/log")"
        exit 1
    fi
done

for pair in 'leaky.so good' 'tight.so more' 'tight.so nothing' 'none.so good' 'leaky.so x/good' \
    'tight.so x/more' 'tight.so x/both' 'tight.so x/twice' 'tight.so x/empty' 'tight.so x/missing'; do
    read -r library table <<<"$pair"
    if script/check-exports "$T/$library" "$T/$table" >"$T/log" 2>&1; then
        echo "not noticed: $library against $table"
        exit 1
    fi
done
