#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# slow
# `pytest --moat` with Triton and PyTorch: the test whose kernel leaves its tensor fails, with the kernel's
# line; the others pass; without --moat all of them are skipped where there is no GPU.
set -u
# shellcheck source=test/python/common
. test/python/common
other=$(test/python/env pytest-newest) || { echo "$other"; exit 77; }
same='import sys; print(sys.version_info[:2])'
[ "$("$other" -c "$same")" = "$("$PYTHON" -c "$same")" ] ||
    { echo 'pytest and PyTorch are installed for different versions of Python'; exit 77; }
# Both packages are Python only.
PYTHONPATH=$PWD/python:$("$other" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
MOAT_BUILD=$(realpath "$BUILD")
export PYTHONPATH MOAT_BUILD PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 COLUMNS=200
cp test/python/triton_sample.py "$T/"
line=$(grep -n 'line of the bad load' "$T/triton_sample.py" | cut -d: -f1)
launch=$(grep -n 'line of the launch' "$T/triton_sample.py" | cut -d: -f1)

run_pytest() {
    timeout 600 "$PYTHON" -m pytest -p moat.pytest_plugin -p no:cacheprovider -rA "$@" "$T/triton_sample.py" \
        >"$T/log" 2>&1 </dev/null
    status=$?
}

run_pytest --moat --junitxml="$T/junit.xml"
check 1 '1 failed, 5 passed' 'six tests'
check 1 '^FAILED .*::test_no_mask' 'the bad one'
check 1 "kernel scale .*triton_sample.py:$line" 'the line of the kernel'
check 1 "#0 run .*triton_sample.py:$launch" 'the line of the launch'
check 1 'the nearest tensor is `x`, argument source: float32, shape \[1000\]' 'the tensor'
check 1 '^[0-9]+ errors?$' 'the number of errors'
grep -q 'kernel scale' "$T/junit.xml" || { echo 'FAIL no report in the JUnit file'; failed=$((failed + 1)); }
compgen -G '/dev/nvidia[0-9]*' >/dev/null || {
    run_pytest
    check 0 '6 skipped' 'without --moat'
}
finish
