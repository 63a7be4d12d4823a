#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# bench/triton_tests/triton_drive.py with tests of our own: what it counts, and that a test that breaks the
# device, ends its process or takes too long costs no other test its result.
set -u
# shellcheck source=test/python/common
. test/python/common
other=$(test/python/env pytest-newest) || { echo "$other"; exit 77; }
mkdir -p "$T/tests/language"
cp bench/triton_tests/{triton_drive,triton_worker}.py "$T/"
cp bench/triton_tests/test_tutorials.py "$T/tests/"
ln -s "$("$other" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')" "$T/lib"
cat >"$T/tests/language/test_own.py" <<'END'
import os
import signal
import time

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def put(x, distance):
    tl.store(x + distance, 1.0)


@pytest.mark.parametrize("number", range(3))
def test_good(number):
    x = torch.zeros(4, device="cuda")
    put[(1,)](x, number)
    assert x.tolist().index(1) == number


def test_behind():
    put[(1,)](torch.zeros(4, device="cuda"), 4)


def test_far():
    put[(1,)](torch.zeros(4, device="cuda"), 1 << 40)


def test_wrong():
    assert torch.zeros(4, device="cuda").sum() == 1


def test_skips():
    pytest.skip("no reason")


def test_dies():
    os.kill(os.getpid(), signal.SIGKILL)


def test_sleeps():
    time.sleep(1000)
END
printf 'language/test_own.py::test_%s\n' 'good[0]' wrong 'good[1]' behind far 'good[2]' skips dies absent \
    sleeps >"$T/sample"
MOAT=$(realpath "$MOAT") OUT=$T/out "$PYTHON" "$T/triton_drive.py" --ways=cpu,cpu-api --workers=1 \
    --seconds=1200 --limit=60 --sample="$T/sample" >"$T/log" 2>&1 </dev/null
status=$?
check 0 '^\| way \| passed \| failed \| died \| timeout \| missing \| skipped ' 'the columns'
check 0 '^\| CPU device, check \| 5 \| 1 \| 1 \| 1 \| 1 \| 1 \| 5 of 5 \| 2 \|$' 'check skips and reports'
check 0 '^\| CPU device, api \| 4 \| 2 \| 1 \| 1 \| 1 \| 1 \| 4 of 5 \| 1 \|$' 'under api a fault fails'
check 0 '::test_far.: CPU device, check: passed, CPU device, api: failed$' 'the difference'
check 0 'check, .language/test_own.py::test_behind.: heap-buffer-overflow .* in kernel put ' 'the error'
check 0 '^5 tests of 10 pass, or are skipped, in every way; 1 end differently; 4 fail' 'the sums'
"$PYTHON" "$T/triton_drive.py" --table "$T/out/triton.jsonl" >"$T/log" 2>&1
status=$?
check 0 '^5 tests of 10 pass, or are skipped, in every way; 1 end differently; 4 fail' 'from the file'
finish
