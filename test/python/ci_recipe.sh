#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# The commands of the recipe in doc/python-ci.md, in an empty virtual environment with a wheel of this build:
# a project with an error fails and has its files, the same project without the error passes.
set -u
command -v patchelf >/dev/null || { echo 'no patchelf'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
unset MOAT_BUILD PYTHONPATH LD_LIBRARY_PATH
expect() {  # expect WHAT COMMAND...: must succeed
    if "${@:2}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1"
        tail -n 30 "$T/log" | sed 's/^/    | /'
    fi
}

# The commands behind `- run:` of the block of YAML.
sed -n '/^```yaml$/,/^```$/s/^ *- run: //p' doc/python-ci.md >"$T/steps"
expect 'two commands in the recipe' test "$(wc -l <"$T/steps")" = 2
MOAT_WHEEL=$(script/wheel "$BUILD" 0.1.0 "$T/wheel") || exit 1
export MOAT_WHEEL PIP_DISABLE_PIP_VERSION_CHECK=1
python3 -m venv "$T/venv" || { echo 'python3 has no venv'; exit 77; }
export PATH=$T/venv/bin:/usr/bin:/bin

mkdir "$T/project"
cp test/python/driver_api.py "$T/project/"
: >"$T/project/requirements.txt"
for index in 16 15; do  # of a buffer of 16 words
    printf '%s\n' 'import driver_api, pytest' '@pytest.mark.gpu' 'def test_fill():' \
        '    d = driver_api.Device()' "    d.fill(d.alloc(64), $index, 7)" >"$T/project/test_fill.py"
    step=0
    while IFS= read -r command; do
        step=$((step + 1))
        (cd "$T/project" && bash -e -c "$command") >"$T/log" 2>&1 </dev/null
        status=$?
        if [ $step = 1 ] && [ $status != 0 ]; then
            echo "pip: $(tail -n1 "$T/log" | cut -c1-200)"
            exit 77
        fi
    done <"$T/steps"
    expect "status with index $index" test $status = $((index == 16))
    expect "JUnit's file with index $index" grep -q "failures=\"$((index == 16))\"" "$T/project/junit.xml"
    errors=$(python3 -c 'import json, sys
print(len(json.load(open(sys.argv[1]))["runs"][0]["results"]))' "$T/project/moat.sarif")
    expect "SARIF with index $index" test "$errors" = $((index == 16))
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
