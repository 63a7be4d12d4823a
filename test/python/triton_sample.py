# SPDX-License-Identifier: MIT
"""Tests of a Triton kernel as its author has them, for test/python/pytest_triton.sh."""

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]


@triton.jit
def scale(source, target, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        x = tl.load(source + i, mask=i < n)
    else:
        x = tl.load(source + i)  # line of the bad load
    tl.store(target + i, 2 * x, mask=i < n)


def run(n, masked):
    x = torch.ones(n, device="cuda")
    y = torch.zeros(n, device="cuda")
    scale[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128, MASKED=masked)  # line of the launch
    return y


@pytest.mark.parametrize("n", [1, 128, 1000])
def test_masked(n):
    assert run(n, True).sum().item() == 2 * n


def test_no_mask():
    run(1000, False)


def test_masked_after():
    assert run(64, True).sum().item() == 128


def test_compiled():
    f = torch.compile(lambda x: (x * 2 + 1).relu())
    x = torch.randn(300, device="cuda")
    torch.testing.assert_close(f(x), (x * 2 + 1).relu())
