#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# The wheel: named after the glibc that its files need; installed into an empty virtual environment, where
# `moat python` and `pytest --moat` need nothing else. With TEST_ALL=1 (alone, in check-all) it is made twice,
# the same file both times.
set -u
command -v patchelf >/dev/null || { echo 'no patchelf'; exit 77; }
python3 -c 'import venv, ensurepip' 2>/dev/null || { echo 'python3 has no venv'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
unset MOAT_BUILD PYTHONPATH LD_LIBRARY_PATH
export PYTHONDONTWRITEBYTECODE=1

check() {  # check WHAT COMMAND...: must succeed
    if "${@:2}" >"$T/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1"
        tail -n 20 "$T/log" | sed 's/^/    | /'
    fi
}

script/wheel "$BUILD" 0.1.0 "$T/one" >"$T/log" || { cat "$T/log"; exit 1; }
wheel=$(echo "$T"/one/*.whl)
if [ "${TEST_ALL:-1}" = 1 ]; then
    script/wheel "$BUILD" 0.1.0 "$T/two" >"$T/log" || { cat "$T/log"; exit 1; }
    check 'the same file twice' cmp "$wheel" "$T/two/${wheel##*/}"
fi

# The tag against what binutils say: the newest version of a symbol that a file needs.
mkdir "$T/files"
python3 -m zipfile -e "$wheel" "$T/files"
needed=$(find "$T/files" -type f -name '*.so*' -o -path '*/bin/moat' | xargs objdump -T 2>/dev/null |
    sed -n 's/.*\*UND\*.*(*GLIBC_\([0-9][0-9.]*\)).*/\1/p' | cut -d. -f1,2 | sort -V | tail -n1)
check "the tag names glibc $needed" test "${wheel##*-none-}" = "manylinux_${needed/./_}_$(uname -m).whl"

# A pip of its own would be most of what the environment takes; newer ones install into others.
python=$(python3 -c 'import sys; print(sys.executable)')
if "$python" -m pip --python "$python" --version >/dev/null 2>&1; then
    python3 -m venv --without-pip "$T/venv"
    pip=("$python" -m pip --python "$T/venv/bin/python")
else
    python3 -m venv "$T/venv"
    pip=("$T/venv/bin/python" -m pip)
fi
check 'pip installs it' "${pip[@]}" install -q --no-index --disable-pip-version-check "$wheel"
export PATH=$T/venv/bin:/usr/bin:/bin
check 'its command is found' test "$(command -v moat)" = "$T/venv/bin/moat"
check 'moat --version' test "$(moat --version)" = "$("$MOAT" --version)"
check 'python -m moat' test "$(python -m moat --version)" = "$("$MOAT" --version)"
check 'all parts are there' sh -c 'moat info | grep -q "^CPU:  .*compute capability"'

cp test/python/driver_api.py "$T/"
printf '%s\n' 'import driver_api' 'd = driver_api.Device()' 'p = d.alloc(64)' 'd.fill(p, 3, 7)' 'd.wait()' \
    'assert d.download(p, 64)[12] == 7' 'd.free(p)' 'print("fine")' >"$T/good.py"
printf '%s\n' 'import driver_api' 'd = driver_api.Device()' 'p = d.alloc(64)' 'd.fill(p, 1 << 30, 7)' \
    'd.wait()' >"$T/bad.py"
check 'a good program' sh -c "moat --device=cpu python '$T/good.py' | grep -qx fine"
moat --device=cpu python "$T/bad.py" >"$T/out" 2>&1
check 'status 97 of a bad one' test $? = 97
check 'the report' grep -q 'ERROR: moat: heap-buffer-overflow on device 0 .* in kernel fill' "$T/out"

# What is linked with the wheel's libraries runs without moat too.
if command -v cc >/dev/null; then
    lib=$(echo "$T"/venv/lib/python*/site-packages/moat/native/lib/moat)
    check 'linking with -lcuda' cc -Isrc -D_GNU_SOURCE -o "$T/launch" test/cpu/driver_launch.c -L"$lib" -lcuda
    check 'a program linked so' moat --device=cpu "$T/launch"
fi
check 'pip removes it' "${pip[@]}" uninstall -q -y moat
check 'nothing is left' sh -c "! find '$T/venv' -path '*moat*' -type f | grep ."
echo "$passed passed, $failed failed"
[ $failed = 0 ]
