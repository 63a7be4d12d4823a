#!/bin/bash
# SPDX-License-Identifier: MIT
# Which instructions and which calls the CPU device and our runtime have: the tables of doc/cpu-device.md,
# from the libraries themselves. A call that is only a stub is a weak symbol.
set -eu
here=$(dirname "$0")
doc=$here/../doc/cpu-device.md

instructions() {
    echo '### Instructions'
    echo
    "$BUILD/bench/cpu_forms" "$here"/../test/ptx/forms/*.ptx
}

# calls LIBRARY PREFIX: by the word behind the prefix; variants of one call (_v2, _ptsz) count as one
calls() {
    nm -D --defined-only "$1" | awk -v prefix="$2" '
        {
            name = $3
            sub(/@.*/, "", name)
            sub(/_ptsz$|_ptds$/, "", name)
            sub(/_v[0-9]+$/, "", name)
            rest = substr(name, length(prefix) + 1)
            if (index(name, prefix) == 1 && match(rest, /^(EGL|GL|VDPAU|D3D|[A-Z][a-z]+)/))
                print prefix substr(rest, 1, RLENGTH), name, $2 == "T" ? 1 : 2
        }' | LC_ALL=C sort | awk '
        function flush() {
            if (group == "")
                return
            if (missing > SHOWN)
                names = names " and " missing - SHOWN " more"
            rows = rows sprintf("| `%s...` | %d of %d |%s |\n", group, all - missing, all, names)
            sum += all
            have += all - missing
        }
        BEGIN { SHOWN = 8 }
        $2 == last { next }  # the better of its variants comes first
        $1 != group { flush(); group = $1; all = missing = 0; names = "" }
        { last = $2; all++ }
        $3 == 2 && ++missing <= SHOWN { names = names " `" $2 "`" }
        END { flush();
              printf "%d of %d calls.\n\n| calls | there | not yet |\n| --- | --- | --- |\n%s",
                  have, sum, rows }'
}

instructions | "$here/section" instructions "$doc"
{
    echo '### Driver API'
    echo
    calls "$BUILD/lib/libmoat-cpu.so" cu
} | "$here/section" driver-calls "$doc"
{
    echo '### Runtime API'
    echo
    echo "A call that stands on one of the driver's that is not there returns that one's error."
    echo
    calls "$BUILD/lib/libcudart.so.13" cuda
} | "$here/section" runtime-calls "$doc"
echo "doc/cpu-device.md: $(grep -c '^|' "$doc") rows"
