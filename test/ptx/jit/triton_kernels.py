# SPDX-License-Identifier: MIT
"""triton_kernels.py FOLDER: compiles kernels with Triton for the GPU at hand; their PTX goes to FOLDER."""
import os
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, 0), at < columns)


@triton.jit
def matmul(a, b, c, n, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    depth = tl.arange(0, DEPTH)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, n, DEPTH):
        left = tl.load(a + rows[:, None] * n + (k + depth)[None, :])
        right = tl.load(b + (k + depth)[:, None] * n + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


@triton.jit
def histogram(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + at, at < n, other=0), 1, at < n)


@triton.jit
def scan(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.cumsum(tl.load(x + at), 0))


def main():
    folder = sys.argv[1]

    def keep(name, kernel):
        with open(os.path.join(folder, f"triton-{name}.ptx"), "w") as f:
            f.write(kernel.asm["ptx"])

    x = torch.rand(4096, device="cuda")
    y = torch.rand(4096, device="cuda")
    out = torch.empty_like(x)
    keep("add", add[(4,)](x, y, out, 4096, BLOCK=1024))
    keep("softmax", softmax[(16,)](x, out, 256, BLOCK=256))
    keep("scan", scan[(1,)](x, out, BLOCK=1024))
    counts = torch.zeros(64, dtype=torch.int32, device="cuda")
    numbers = torch.randint(0, 64, (4096,), dtype=torch.int32, device="cuda")
    keep("histogram", histogram[(4,)](numbers, counts, 4096, BLOCK=1024))
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        a = torch.rand(512, 512, device="cuda").to(dtype)
        c = torch.empty(512, 512, device="cuda")
        keep(f"matmul-{str(dtype)[6:]}", matmul[(8, 8)](a, a, c, 512, TILE=64, DEPTH=32))
    big = torch.empty(512, 512, device="cuda")
    half = torch.rand(512, 512, device="cuda").half()
    keep("matmul-128", matmul[(4, 4)](half, half, big, 512, TILE=128, DEPTH=64, num_warps=8, num_stages=3))
    torch.cuda.synchronize()


main()
