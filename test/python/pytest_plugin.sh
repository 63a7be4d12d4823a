#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# `pytest --moat` with pytest 7, 8 and the newest: which tests fail, with what, in the terminal, JUnit and
# SARIF; and what is refused.
set -u
here=$PWD/test/python
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
MOAT_BUILD=$(realpath "$BUILD")
export MOAT_BUILD PYTHONDONTWRITEBYTECODE=1 COLUMNS=200
unset PYTEST_ADDOPTS PYTEST_PLUGINS MOAT_OPTIONS

check() {  # check STATUS PATTERN WHAT: of the pytest that just ran
    if [ "$status" = "$1" ] && grep -Eq -- "$2" "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $3 ($version): status $status, expected $1 and \"$2\""
        tail -n 40 "$T/log" | sed 's/^/    | /'
    fi
}

pytest() {  # pytest ARGUMENT...: in the folder of the tests
    (cd "$T/tests" && timeout 1800 "$python" -m pytest -p no:cacheprovider -p no:faulthandler "$@") \
        >"$T/log" 2>&1 </dev/null
    status=$?
}

# What must come of the sample: words of `pytest -rA`.
expected() {
    cat <<'END'
ERROR test_bad_teardown moat: double-free in cuMemFree_v2
FAILED TestUnit::test_unit_bad moat: heap-buffer-overflow in fill
FAILED test_assertion_only AssertionError
FAILED test_copy_too_long moat: heap-buffer-overflow in cuMemcpyHtoD_v2
FAILED test_copy_too_long_again moat: heap-buffer-overflow in cuMemcpyHtoD_v2
FAILED test_dies the process ended by SIGSEGV
FAILED test_double_free_then_dies moat: double-free in cuMemFree_v2
FAILED test_each[1073741824] moat: heap-buffer-overflow in fill
FAILED test_fault_raises moat: heap-buffer-overflow in fill
FAILED test_kernel_leaves_buffer moat: heap-buffer-overflow in fill
FAILED test_one_behind moat: heap-buffer-overflow in fill
PASSED TestUnit::test_unit_good
PASSED test_bad_teardown
PASSED test_child
PASSED test_each[0]
PASSED test_each[15]
PASSED test_good
PASSED test_good_after_fault
XFAIL test_expected
END
}

compare() {  # compare FILE FILE WHAT
    if diff "$1" "$2" >"$T/diff"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $3 ($version)"
        sed 's/^/    | /' "$T/diff"
    fi
}

sample() {
    pytest --moat -rA -o junit_family=xunit2 --junitxml="$T/junit.xml" --moat-sarif="$T/errors.sarif" \
        --moat-json="$T/events.jsonl" gpu_sample.py
    check 1 '10 failed, 7 passed, 1 skipped, 1 deselected, 1 xfailed, 1 error' 'the sample'
    check 1 '^moat: collected 19 of 20 tests' 'the number of tests'
    check 1 '^10 errors$' 'the number of errors'
    check 1 'watched: .* kernel launches' 'what was watched'
    expected | sed -E 's/^([A-Z]+ [^ ]+).*/\1/' | LC_ALL=C sort >"$T/expected"
    sed -nE 's/^(PASSED|FAILED|ERROR|XFAIL) gpu_sample.py::([^ ]+).*/\1 \2/p' "$T/log" |
        LC_ALL=C sort >"$T/got"
    compare "$T/expected" "$T/got" 'which tests fail'
    expected | grep -E '^(ERROR|FAILED) ' | sed -E 's/.*:://; s/^[A-Z]+ //' >"$T/expected"
    "$python" "$here/junit_failures.py" "$T/junit.xml" "$T/expected" >"$T/got"
    compare "$T/expected" "$T/got" 'failures in the JUnit file'
    [ "$("$python" -c 'import json, sys
print(len(json.load(open(sys.argv[1]))["runs"][0]["results"]))' "$T/errors.sarif")" = 10 ] &&
        [ "$(grep -c '"event":"error"' "$T/events.jsonl")" = 10 ]
    status=$?
    check 0 . 'ten errors in SARIF and JSON'
}

others() {
    pytest --moat --moat-all gpu_sample.py -k 'unmarked or test_good'
    check 0 '3 passed, 17 deselected' '--moat-all and -k'
    pytest --moat --maxfail=2 gpu_sample.py
    check 1 'stopping after 2 failures' '--maxfail'
    check 1 '2 failed, 1 passed' '--maxfail counts over several processes'
    pytest --moat --moat-options=--mode=api gpu_sample.py -k one_behind
    check 0 '1 passed' 'a mode that does not look there'
    pytest --moat -s gpu_sample.py -k leaves_buffer
    check 1 '^(gpu_sample.py )?printed before the fault' '-s'
    pytest --moat --collect-only -q gpu_sample.py -k test_good
    check 0 '^2/20 tests collected|^gpu_sample.py::test_good$' '--collect-only'
    pytest --moat gpu_sample.py -k none_of_them
    check 5 'deselected' 'no test at all'
    pytest --moat quiet_sample.py
    check 98 'nothing was watched' 'tests without CUDA'
    pytest --moat leaking_sample.py --moat-options='--leak-check'
    check 1 'moat::after the tests' 'an error that belongs to no test'
    check 1 'memory-leak' 'an error that belongs to no test, its type'
    check 1 '1 failed, 1 passed' 'an error that belongs to no test, its number'
    pytest --moat broken_sample.py gpu_sample.py
    check 2 'no_such_module' 'a module that cannot be imported'
    pytest --moat at_import_sample.py
    check 1 'moat::collection' 'an error while tests are collected'
    pytest --moat late_death_sample.py
    check 1 'ended by SIGKILL' 'a process that dies after the tests'
    pytest --moat warning_sample.py
    check 0 'UserWarning: beware' 'warnings'
    pytest --moat two_sample.py
    check 1 'moat: heap-buffer-overflow in cuMemcpyHtoD_v2 and 1 more' 'two errors in one test'
    check 1 'double-free on device' 'two errors in one test, the second'
    pytest --moat --moat-sarif="$T/empty.sarif" -k none_of_them gpu_sample.py
    check 5 'deselected' 'SARIF without a test'
    grep -q '"results": *\[\]' "$T/empty.sarif"
    status=$?
    check 0 . 'SARIF without a test has no results'
    pytest --moat trap_sample.py
    check 1 '1 failed, 1 passed' 'a kernel that traps'
}

refusals() {
    pytest --moat-sarif=x.sarif gpu_sample.py
    check 4 '--moat-sarif needs --moat' 'SARIF without --moat'
    pytest --moat --moat-options=pages gpu_sample.py
    check 4 "'pages' is no option of moat" 'an option without dashes'
    pytest --moat --moat-options=--no-such-option gpu_sample.py
    check 4 'ended with status 2' 'an option that moat does not know'
    check 4 'no-such-option' 'an option that moat does not know, its name'
    pytest --moat --pdb gpu_sample.py
    check 4 'leave out --pdb' '--pdb'
    MOAT_BUILD=$T pytest --moat gpu_sample.py
    check 4 "MOAT_BUILD=.* is no program" 'a build folder without moat'
    pytest gpu_sample.py -k unmarked
    check 0 '1 passed' 'without --moat'
    if "$python" -c 'import xdist' 2>/dev/null; then
        pytest --moat -n 2 gpu_sample.py
        check 4 'leave out -n' 'pytest-xdist'
        pytest --moat -n 0 gpu_sample.py -k test_good
        check 0 '2 passed' 'pytest-xdist with no processes'
    fi
}

write_samples() {
    mkdir "$T/tests"
    cp "$here"/{gpu_sample,driver_api}.py "$T/tests/"
    (
        cd "$T/tests" || exit 1
        start='import os, pytest, warnings, driver_api\npytestmark = pytest.mark.gpu\n'
        printf "${start}def test_nothing():\n    assert True\n" >quiet_sample.py
        printf "${start}def test_leak():\n    driver_api.Device().alloc(64)\n" >leaking_sample.py
        printf 'import no_such_module\n' >broken_sample.py
        printf "${start}def test_warn():\n    warnings.warn('beware')\n%s\n" \
            '    d = driver_api.Device(); d.free(d.alloc(8))' >warning_sample.py
        printf "${start}d = driver_api.Device()\np = d.alloc(8)\nd.free(p)\ntry:\n    d.free(p)\n%s\n%s\n" \
            'except driver_api.Error: pass' 'def test_after(): d.free(d.alloc(8))' >at_import_sample.py
        printf "${start}@pytest.fixture(scope='session', autouse=True)\ndef end():\n    yield\n%s\n%s\n" \
            '    os.kill(os.getpid(), 9)' 'def test_one(): d = driver_api.Device(); d.free(d.alloc(8))' \
            >late_death_sample.py
        printf "${start}def test_two():\n    d = driver_api.Device()\n    p = d.alloc(8)\n%s\n%s\n%s\n" \
            '    with pytest.raises(driver_api.Error): d.upload(p, b"x" * 9)' '    d.free(p)' \
            '    with pytest.raises(driver_api.Error): d.free(p)' >two_sample.py
        printf "${start}def test_trap():\n    driver_api.Device().launch('stop')\n%s\n" \
            'def test_after(): d = driver_api.Device(); d.free(d.alloc(8))' >trap_sample.py
    )
}

write_samples
for version in 7 8 newest; do
    if ! python=$("$here/env" "pytest-$version"); then
        echo "$python"
        exit 77
    fi
    "$python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall ./python || exit 1
    sample
    if [ $version = newest ] || [ "${TEST_ALL:-1}" = 1 ]; then
        others
        refusals
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
