#!/bin/bash
# SPDX-License-Identifier: MIT
# triton-tests.sh TRITON [FOLDER]: a sample of Triton's language unit tests, and its tutorials' kernels with
# small sizes, on the CPU device. TRITON is a checkout of Triton, fetched by hand, at the version that PYTHON
# has. With FOLDER it only puts there what a run needs, to be carried to another machine: FOLDER/run says how.
# On a GPU that runs the sample alone, under api, canary and check.
# triton-tests.sh --table FILE...: writes the section triton-tests of doc/results.md from files triton.jsonl,
# the results of the reference first. SECTION=FILE: the section goes to that file.
set -eu
here=$(realpath "$(dirname "$0")")
PYTHON=${PYTHON:-build/venv/bin/python} MOAT=${MOAT:-build/bin/moat}
if [ "${1:-}" = --table ]; then
    T=$(mktemp -d)
    trap 'rm -rf "$T"' EXIT
    {
        echo "## Triton's own tests"
        echo
        echo "A sample of Triton's language unit tests, and the kernels of its tutorials with small sizes."
        python3 "$here/triton_tests/triton_drive.py" --table "${@:2}"
    } >"$T/section"
    exec "$here/finish" triton-tests "$T/section"
fi
[ $# -gt 0 ] || { echo 'triton-tests.sh: wants a checkout of Triton'; exit 0; }
[ -d "$1/python/test/unit/language" ] || { echo "triton-tests.sh: $1 is no checkout of Triton" >&2; exit 2; }
MOAT=$(realpath "$MOAT") PYTHON=$(realpath -s "$PYTHON")
export MOAT PYTHON
to=${2:-$(mktemp -d)}
mkdir -p "$to/tests/tutorials" "$to/lib"
cp "$here/triton_tests/"{triton_drive,triton_worker}.py "$to/"
cp "$here/triton_tests/test_tutorials.py" "$1/python/test/conftest.py" "$to/tests/"
cp -r "$1/python/test/unit/language" "$to/tests/"
cp "$1/python/tutorials/"[0-9]*.py "$to/tests/tutorials/"
# Python without a package of its own: what pytest needs is written in Python alone, before version 8.4.
"$PYTHON" -m pip --disable-pip-version-check -q install --no-compile --no-deps --upgrade --target "$to/lib" \
    'pytest<8.4' pluggy iniconfig packaging
cat >"$to/run" <<'END'
#!/bin/bash
# MOAT=COMMAND OUT=FOLDER run [--seconds=110] [--workers=16] [--ways=alone,api,canary,check,cpu,cpu-api]
# [--limit=40]: `seconds` for all, `limit` for one test. MOAT is the command moat, PYTHON the interpreter with
# PyTorch and Triton (python3). OUT gets triton.jsonl and triton-table.md every 5 s, then triton-logs.tgz.
cd "$(dirname "$0")" && exec "${PYTHON:-python3}" triton_drive.py "$@"
END
chmod +x "$to/run"
(cd "$to/tests" && PYTHONPATH=$to/lib PYTHONDONTWRITEBYTECODE=1 "$MOAT" --mode=off --device=cpu "$PYTHON" \
    -m pytest -p no:cacheprovider --collect-only -q language test_tutorials.py) |
    python3 "$here/triton_tests/triton_draw.py" >"$to/sample.txt"
echo "$(wc -l <"$to/sample.txt") tests in $to"
[ $# -gt 1 ] || OUT=${OUT:-$to} "$to/run" --ways=cpu --workers="$(nproc)" --seconds=1200 --limit=120
