# SPDX-License-Identifier: MIT
"""Kernels as Triton's tutorials have them, each with an error that its authors make, and its correct twin:
triton_twins.py CASE bad|good. Behind `error:` and `launch:` stand the cases whose reports name that line."""

import sys

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BAD = len(sys.argv) > 2 and sys.argv[2] == "bad"


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        x = tl.load(x_ptr + at, mask=at < n)
    else:
        x = tl.load(x_ptr + at)  # error: mask
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x + y, mask=at < n)


def mask():
    left, right = torch.randn(3000, device="cuda"), torch.randn(3000, device="cuda")
    add[(3,)](left, right, torch.empty_like(left), 3000, 1024, not BAD)  # launch: mask


@triton.jit
def clamp(x_ptr, out_ptr, n, last, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at <= last)  # error: inclusive
    tl.store(out_ptr + at, tl.maximum(x, 0.0), mask=at < n)


def inclusive():
    scores = torch.randn(999, device="cuda")
    clamp[(4,)](scores, torch.empty_like(scores), 999, 999 if BAD else 998, 256)  # launch: inclusive


@triton.jit
def softmax(out_ptr, in_ptr, in_stride, out_stride, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(in_ptr + row * in_stride + at, mask=at < columns, other=-float("inf"))  # error: stride
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * out_stride + at, e / tl.sum(e, 0), mask=at < columns)


def stride():
    logits = torch.randn(60, 100, device="cuda")
    softmax[(60,)](torch.empty_like(logits), logits, 128 if BAD else 100, 100, 100, 128)  # launch: stride


@triton.jit
def multiply(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + k + inner[None, :])  # error: grid
        b = tl.load(b_ptr + (k + inner[:, None]) * N + columns[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total)


def grid():
    weights = torch.randn(64, 128, device="cuda").half()
    inputs = torch.randn(128, 256, device="cuda").half()
    out, blocks = torch.empty(64, 256, device="cuda"), (4, 1) if BAD else (1, 4)
    multiply[blocks](weights, inputs, out, 256, 128, 64, 64, 32)  # launch: grid


@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.full([BLOCK], 1.0, tl.float32), mask=at < n)  # error: dtype


def dtype():
    ones = torch.zeros(1000, device="cuda", dtype=torch.half if BAD else torch.float)
    fill[(4,)](triton.reinterpret(ones, tl.float32), 1000, 256)  # launch: dtype


@triton.jit
def copy_from(address, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(address.to(tl.pointer_type(tl.float32)) + at, mask=at < n)  # error: freed
    tl.store(out_ptr + at, x, mask=at < n)


def freed():
    gone, out = torch.randn(500, device="cuda"), torch.empty(500, device="cuda")
    address = gone.data_ptr()
    if BAD:
        del gone
    copy_from[(1,)](address, out, 500, 512)  # launch: freed


@triton.jit
def gather_rows(addresses_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    source = tl.load(addresses_ptr + row).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + row * n + at, tl.load(source + at, mask=at < n), mask=at < n)  # error: table


def table():
    rows = [torch.randn(500, device="cuda") for _ in range(3)]
    addresses = torch.tensor([row.data_ptr() for row in rows], device="cuda")
    if BAD:
        del rows[1]
    gather_rows[(3,)](addresses, torch.empty(3, 500, device="cuda"), 500, 512)  # launch: table


@triton.jit
def count(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.atomic_add(bins_ptr + x, 1, mask=at < n)  # error: atomic


def atomic():
    values = torch.arange(1000, device="cuda", dtype=torch.int32) % (17 if BAD else 16)
    bins = torch.zeros(16, device="cuda", dtype=torch.int32)
    count[(4,)](values, bins, 1000, 256)  # launch: atomic


@triton.jit
def norm(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
    weight = tl.load(weight_ptr + at, mask=at < columns)  # error: short
    scale = tl.rsqrt(tl.sum(x * x, 0) / columns + 1e-5)
    tl.store(out_ptr + row * columns + at, x * weight * scale, mask=at < columns)


def short():
    x, gains = torch.randn(8, 300, device="cuda"), torch.ones(256 if BAD else 300, device="cuda")
    norm[(8,)](x, gains, torch.empty_like(x), 300, 512)  # launch: short


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, out_ptr, n, D: tl.constexpr, B: tl.constexpr, MASKED: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    place = rows[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + place, mask=rows[:, None] < n, other=0.0)
    best, norms = tl.full([B], -float("inf"), tl.float32), tl.zeros([B], tl.float32)
    total = tl.zeros([B, D], tl.float32)
    for first in range(0, n, B):
        at = first + tl.arange(0, B)
        k_at = k_ptr + at[None, :] * D + tl.arange(0, D)[:, None]
        if MASKED:
            k = tl.load(k_at, mask=at[None, :] < n, other=0.0)
        else:
            k = tl.load(k_at)  # error: attention
        scores = tl.where(at[None, :] < n, tl.dot(q, k) * 0.125, -1e6)
        higher = tl.maximum(best, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        v = tl.load(v_ptr + at[:, None] * D + tl.arange(0, D)[None, :], mask=at[:, None] < n, other=0.0)
        total = tl.dot(p.to(tl.float16), v, total * tl.exp(best - higher)[:, None])
        norms, best = norms * tl.exp(best - higher) + tl.sum(p, 1), higher
    tl.store(out_ptr + place, (total / norms[:, None]).to(tl.float16), mask=rows[:, None] < n)


def attention():
    queries, keys, values = (torch.randn(100, 64, device="cuda").half() for _ in range(3))
    out = torch.empty_like(queries)
    attend[(2,)](queries, keys, values, out, 100, 64, 64, not BAD)  # launch: attention


@triton.jit
def double(source, target, BM: tl.constexpr, BN: tl.constexpr):
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    target.store(at, source.load(at) * 2)  # error: descriptor


def descriptor():
    images, result = torch.randn(48, 128, device="cuda"), torch.zeros(64, 128, device="cuda")
    source = TensorDescriptor(images, [64 if BAD else 48, 128], [128, 1], [32, 64])
    double[(2, 2)](source, TensorDescriptor.from_tensor(result, [32, 64]), 32, 64)  # launch: descriptor


@triton.jit
def shift(x_ptr, out_ptr, n, first, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at - 1, mask=(at >= first) & (at < n), other=0.0)  # error: before
    tl.store(out_ptr + at, x, mask=at < n)


def before():
    samples = torch.randn(1000, device="cuda")
    shift[(4,)](samples, torch.empty_like(samples), 1000, 0 if BAD else 1, 256)  # launch: before


@triton.jit
def scatter_to(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    to = tl.load(index_ptr + at, mask=at < n)
    tl.store(out_ptr + to, tl.load(x_ptr + at, mask=at < n), mask=at < n)  # error: scatter


def scatter():
    x, index = torch.randn(200, device="cuda"), torch.arange(200).flip(0)
    index[7] = 300 if BAD else 192
    table = torch.zeros(20, 10, device="cuda")
    scatter_to[(1,)](x, index.cuda(), table, 200, 256)  # launch: scatter


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    print("done")
