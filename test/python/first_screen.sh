#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# The first screen of doc/python.md: its program, run as it says, prints the report that it shows, but for
# numbers of processes and addresses; and the tests below it fail as it says.
set -u
# shellcheck source=test/python/common
. test/python/common
other=$(test/python/env pytest-newest) || { echo "$other"; exit 77; }
export XDG_CACHE_HOME=$T/cache
moat=$(realpath "$MOAT") build=$(realpath "$BUILD") page=$PWD/doc/python.md package=$PWD/python

block() {  # block N: the page's Nth block of Python
    awk -v n="$1" '/^```python$/ { inside = ++found == n; next } /^```/ { inside = 0 } inside' "$page"
}
same() {
    sed -E '/^Report [0-9]+ of process/d; s/==[0-9]+==/==PID==/; s/thread [0-9]+ at/thread PID at/
        s/0x[0-9a-f]+/ADDRESS/g'
}
python=$(realpath -s "$PYTHON")
cd "$T" || exit 1
block 1 >add.py
block 2 >test_add.py

timeout 600 "$moat" --device=cpu "$python" add.py >log 2>&1 </dev/null
status=$?
check 97 '^SUMMARY: moat: heap-buffer-overflow add.py:6 in add$' 'the program'
same <log | sed -n '/ERROR: moat/,/^SUMMARY/p' >found
same <"$page" | sed -n '/ERROR: moat/,/^SUMMARY/p' >shown
if ! diff shown found; then
    echo 'FAIL the report is not what the page shows'
    failed=$((failed + 1))
fi

sed -i 's/^main()$/if __name__ == "__main__": main()/' add.py
PYTHONPATH=$package:$("$other" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
export PYTHONPATH MOAT_BUILD=$build PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 COLUMNS=200
timeout 600 "$python" -m pytest -p moat.pytest_plugin -p no:cacheprovider --moat >log 2>&1 </dev/null
status=$?
check 1 "^$(grep '^FAILED' "$page")\$" 'the line that the page shows'
finish
