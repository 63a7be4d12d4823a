# SPDX-License-Identifier: MIT
"""Times of Triton's kernels and PyTorch's operators, in milliseconds: a line NAME MEDIAN WORST for each."""

import statistics
import time

import torch
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def multiply(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total)


def measure(name, call, rounds):
    call()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1000)
    print("{}\t{:.2f}\t{:.2f}".format(name, statistics.median(times), max(times)), flush=True)


def main():
    n = 1_000_000
    x, y, out = (torch.rand(n, device="cuda") for _ in range(3))
    grid = (triton.cdiv(n, 1024),)
    measure("Triton: vector add, a million elements", lambda: add[grid](x, y, out, n, BLOCK=1024), 15)
    for dtype in (torch.float16, torch.float32):
        a, b = (torch.randn(512, 512, device="cuda").to(dtype) for _ in range(2))
        c = torch.empty(512, 512, device="cuda")
        name = "Triton: dot, 512 x 512 x 512, {}".format(str(dtype)[6:])
        measure(name, lambda: multiply[(8, 8)](a, b, c, 512, 512, 64, 64, 32), 7)
        near = 0.5 if dtype == torch.float32 else 1e-2
        assert torch.allclose(c.cpu(), a.float().cpu() @ b.float().cpu(), atol=near, rtol=near)
    small = torch.ones(16, device="cuda")
    measure("PyTorch: a small operator (`x + 1`), on the CPU", lambda: small + 1, 101)


main()
