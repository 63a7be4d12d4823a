#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# `make install` puts the command, its libraries and its manual below DESTDIR and nowhere else, and what is
# installed works; what programs would take for the driver stays out of the folders that are searched.
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
script/install "$BUILD" "$T/usr/local"
moat=$T/usr/local/bin/moat
[ "$("$moat" --version)" = "$("$MOAT" --version)" ]
[ -s "$T/usr/local/share/man/man1/moat.1" ]
for f in share/doc/moat/LICENSE share/doc/moat/doc/using.md share/bash-completion/completions/moat \
    share/zsh/site-functions/_moat; do
    [ -s "$T/usr/local/$f" ] || { echo "not installed: $f"; exit 1; }
done
# shellcheck source=test/tree/links.bash
. test/tree/links.bash
[ -z "$(dead_links "$T/usr/local/share/doc/moat")" ] ||
    { dead_links "$T/usr/local/share/doc/moat"; exit 1; }
! command -v pkg-config >/dev/null ||
    [ "moat $(PKG_CONFIG_PATH=$T/usr/local/share/pkgconfig pkg-config --modversion moat)" = \
        "$("$MOAT" --version)" ]

lib=$T/usr/local/lib
[ "$(ls "$lib")" = moat ] || { echo "in lib: $(ls "$lib")"; exit 1; }
for f in libmoat.so libmoat-cpu.so libmoat-heap.so libcuda.so.1 libcuda.so libcudart.so.13 \
    libcudart.so.12 libcudart.so libcudart_static.a; do
    [ -s "$lib/moat/$f" ] || { echo "not installed: $f"; exit 1; }
done
[ -z "$(find "$T" -xtype l)" ] || { echo 'a link leads nowhere'; exit 1; }
"$moat" info | grep -q '^CPU:  .*compute capability' || { "$moat" info; exit 1; }
preload=$("$moat" --device=cpu --mode=off sh -c 'echo $LD_PRELOAD')
[ "$preload" = "$lib/moat/libmoat-cpu.so:$lib/moat/libcudart.so.13:$lib/moat/libcudart.so.12" ] ||
    { echo "LD_PRELOAD=$preload"; exit 1; }

# A program linked with what is installed, in a folder with a blank in its name.
cp -r "$T/usr" "$T/with blank"
cc -Isrc -D_GNU_SOURCE -o "$T/launch" test/cpu/driver_launch.c -L"$lib/moat" -lcuda
"$moat" --device=cpu "$T/launch"
"$T/with blank/local/bin/moat" --device=cpu "$T/launch"
[ -z "$(find "$T/usr" -name '*.map')" ] || { echo 'what only the build needs is installed'; exit 1; }

# Libraries and manual elsewhere; and nothing is left when they are removed.
script/install "$BUILD" "$T/other" "$T/other/lib64" "$T/other/man"
"$T/other/bin/moat" --device=cpu "$T/launch"
[ -s "$T/other/man/man1/moat.1" ] && [ ! -e "$T/other/lib" ]
touch "$T/other/bin/not ours"
script/uninstall "$BUILD" "$T/other" "$T/other/lib64" "$T/other/man"
left=$(cd "$T/other" && find . ! -type d)
[ "$left" = './bin/not ours' ] || { echo "left: $left"; exit 1; }
[ ! -e "$T/other/share/doc/moat" ] || { echo 'the folder of the guides is left'; exit 1; }
[ ! -e "$T/other/lib64/moat" ] || { echo 'the folder of the libraries is left'; exit 1; }
! script/install "$BUILD" "$T/third" "$T/elsewhere" 2>/dev/null
