#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
#
# libcudart.so.13 has the symbols and the version of its table. The archive has the same and shows nothing
# else: a program that links it with what nvcc adds, and has functions of the names that ours have, works.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
table=src/runtime/libcudart.so.13.exports
shared=$BUILD/lib/libcudart.so.13
archive=$BUILD/lib/libcudart_static.a

script/check-exports "$shared" "$table"
nm -D --defined-only "$shared" | awk '$2 != "A" && $3 !~ /@@libcudart[.]so[.]13$/' >"$work/unversioned"
[ ! -s "$work/unversioned" ] || { echo 'without version:'; cat "$work/unversioned"; exit 1; }
readelf -d "$shared" | grep -q 'SONAME.*\[libcudart.so.13\]'
needed=$(readelf -d "$shared" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libdl|libm|libpthread|ld-linux.*)\.so' || true)
[ -z "$needed" ] || { echo "needs $needed"; exit 1; }

script/list-exports "$table" >"$work/table"
nm --defined-only -g "$archive" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort >"$work/global"
diff "$work/table" "$work/global"
[ "$(ar t "$archive" | wc -l)" = 1 ]

{
    sed 's/.*/void &(void);/' "$work/table"
    echo 'void (*all[])(void) = {'
    sed 's/$/,/' "$work/table"
    printf '};\n'
    for name in rt_enter rt_open mem_alloc driver_open rt_driver driver_calls; do
        printf 'int %s(void);\nint %s(void) { return 7; }\n' $name $name
    done
    echo 'int main(void) { return !(all[0] && rt_enter() == 7 && driver_open() == 7); }'
} >"$work/all.c"
cc -w -o "$work/all" "$work/all.c" "$archive" -lrt -lpthread -ldl
"$work/all"
cc -w -o "$work/all" "$work/all.c" -Wl,--no-as-needed "$shared"
LD_LIBRARY_PATH=$(dirname "$shared") "$work/all"
