# SPDX-License-Identifier: MIT
"""Triton's kernels against PyTorch on the CPU: one line for each, and status 1 if a result is wrong."""

import sys

import torch
import triton
import triton.language as tl

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:  # Triton 3.2
    TensorDescriptor = None


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


@triton.jit
def histogram(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.atomic_add(bins_ptr + tl.load(x_ptr + offsets, mask=mask, other=0), 1, mask=mask)


@triton.jit
def locked_sums(x_ptr, sums_ptr, locks_ptr, first_ptr, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """Blocks add their rows to the sums of their group, one after the other."""
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    group = row % GROUPS
    total = tl.load(x_ptr + row * BLOCK + columns)
    while tl.atomic_cas(locks_ptr + group, 0, 1) == 1:
        pass
    is_first = tl.load(first_ptr + group) == 1
    tl.debug_barrier()  # Triton 3.6 puts none here, and one warp would clear what another has yet to load
    if is_first:
        tl.atomic_xchg(first_ptr + group, 0)
    else:
        total += tl.load(sums_ptr + group * BLOCK + columns)
    tl.store(sums_ptr + group * BLOCK + columns, total)
    tl.debug_barrier()  # all threads have stored before the lock opens
    tl.atomic_xchg(locks_ptr + group, 0)


@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (1, 2, 4)], key=["n"])
@triton.jit
def softmax(x_ptr, out_ptr, runs_ptr, n, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * n + columns, e / tl.sum(e, 0), mask=columns < n)
    tl.atomic_add(runs_ptr, tl.where(row == 0, 1, 0))


@triton.jit
def double(in_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(in_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    target.store(at, source.load(at) * 2)


@triton.jit
def multiply_described(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


def test_add():
    x, y = torch.randn(99999), torch.randn(99999)
    out = torch.empty(99999, device="cuda")
    add[(triton.cdiv(99999, 1024),)](x.cuda(), y.cuda(), out, 99999, BLOCK=1024)
    return torch.equal(out.cpu(), x + y)


def product(dtype, stages, warps, block, near):
    n = 128
    a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
    c = torch.empty(n, n, device="cuda")
    multiply[(n // block, n // block)](
        a.cuda(), b.cuda(), c, n, n, block, block, 32, num_stages=stages, num_warps=warps
    )
    return torch.allclose(c.cpu(), a.float() @ b.float(), atol=near, rtol=near)


def test_dot_f16():
    return product(torch.float16, 2, 4, 64, 1e-3)


def test_dot_bf16_pipelined():  # asynchronous copies
    return product(torch.bfloat16, 4, 8, 128, 1e-3)


def test_dot_f32():  # tf32
    return product(torch.float32, 3, 4, 64, 5e-2)


def test_atomics():
    x = torch.randint(0, 16, (10000,), dtype=torch.int32)
    bins = torch.zeros(16, dtype=torch.int32, device="cuda")
    histogram[(10,)](x.cuda(), bins, 10000, BLOCK=1024)
    return torch.equal(bins.cpu(), torch.bincount(x, minlength=16).int())


def test_locks():
    rows, groups, width = 600, 7, 512
    x = torch.randint(0, 1000, (rows, width), dtype=torch.int32)
    sums = torch.full((groups, width), -1, dtype=torch.int32, device="cuda")
    locks = torch.zeros(groups, dtype=torch.int32, device="cuda")
    first = torch.ones(groups, dtype=torch.int32, device="cuda")
    locked_sums[(rows,)](x.cuda(), sums, locks, first, groups, width)
    wanted = torch.stack([x[g::groups].sum(0) for g in range(groups)])
    return torch.equal(sums.cpu(), wanted.int()) and not locks.any() and not first.any()


def test_autotune():
    x = torch.randn(64, 100)
    out = torch.empty(64, 100, device="cuda")
    runs = torch.zeros(1, dtype=torch.int32, device="cuda")
    softmax[(64,)](x.cuda(), out, runs, 100, BLOCK=128)
    print("autotune: the kernel ran", int(runs), "times")
    return torch.allclose(out.cpu(), x.softmax(1), atol=1e-6)


def test_descriptors_on_device():
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    x = torch.randn(64, 128)
    out = torch.zeros(64, 128, device="cuda")
    double[(2, 2)](x.cuda(), out, 64, 128, 32, 64)
    return torch.equal(out.cpu(), x * 2)


def test_descriptors_on_host():
    n = 128
    a, b = torch.randn(n, n).half(), torch.randn(n, n).half()
    c = torch.zeros(n, n, device="cuda", dtype=torch.float16)
    described = [TensorDescriptor.from_tensor(t, [64, 64]) for t in (a.cuda(), b.cuda(), c)]
    multiply_described[(2, 2)](*described, n, 64, 64, 64)
    return torch.allclose(c.cpu().float(), a.float() @ b.float(), atol=0.05, rtol=1e-2)


def main():
    torch.manual_seed(7)
    wrong = 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_") and (TensorDescriptor or "descriptors" not in name):
            right = test()
            print(name[5:], "ok" if right else "WRONG", flush=True)
            wrong += not right
    return wrong > 0


sys.exit(main())
