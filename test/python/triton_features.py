# SPDX-License-Identifier: MIT
"""What Triton's language has, against PyTorch on the CPU: one line for each, and status 1 if a result is
wrong. Arguments: names of tests, all by default. triton_language.py has those of which tests know counts."""

import sys

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor


def near(found, expected, most=1e-3):
    return torch.allclose(found.cpu().double(), expected.double(), atol=most, rtol=most)


def empty(*shape, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype, device="cuda")


# --- kernels as the tutorials have them --------------------------------------------------------------------


@triton.jit
def softmax_rows(out_ptr, in_ptr, rows, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=4):
        x = tl.load(in_ptr + row * columns + at, mask=at < columns, other=-float("inf"))
        e = tl.exp(x - tl.max(x, 0))
        tl.store(out_ptr + row * columns + at, e / tl.sum(e, 0), mask=at < columns)


def test_softmax():
    x, out = torch.randn(83, 781), empty(83, 781)
    softmax_rows[(20,)](out, x.cuda(), 83, 781, BLOCK=1024, num_warps=8)
    return near(out, x.softmax(1))


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BN": 64, "BK": 32, "GROUP": 8}, num_stages=3, num_warps=4),
        triton.Config({"BM": 32, "BN": 64, "BK": 32, "GROUP": 4}, num_stages=2, num_warps=2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def multiply(
    a_ptr, b_ptr, c_ptr, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    wide = GROUP * tl.cdiv(N, BN)
    first = tl.program_id(0) // wide * GROUP
    high = min(tl.cdiv(M, BM) - first, GROUP)
    block_row = first + tl.program_id(0) % wide % high
    block_column = tl.program_id(0) % wide // high
    rows = (block_row * BM + tl.arange(0, BM)) % M
    columns = (block_column * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a_ptr + rows[:, None] * a_row + (k + inner)[None, :] * a_column,
                       mask=inner[None, :] < K - k, other=0.0)  # fmt: skip
        right = tl.load(b_ptr + (k + inner)[:, None] * b_row + columns[None, :] * b_column,
                        mask=inner[:, None] < K - k, other=0.0)  # fmt: skip
        total = tl.dot(left, right, total)
    rows, columns = block_row * BM + tl.arange(0, BM), block_column * BN + tl.arange(0, BN)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * c_row + columns[None, :] * c_column, total, mask=inside)


def test_matmul():
    a, b, c = torch.randn(130, 100).half(), torch.randn(77, 100).half().t(), empty(130, 77)
    strides = (*a.stride(), *b.stride(), *c.stride())
    blocks = lambda meta: (triton.cdiv(130, meta["BM"]) * triton.cdiv(77, meta["BN"]),)  # noqa: E731
    multiply[blocks](a.cuda(), b.cuda(), c, 130, 77, 100, *strides)
    return near(c, a.float() @ b.float())


@triton.jit
def drop(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.where(tl.rand(seed, at) > p, x / (1 - p), 0.0), mask=at < n)


def test_dropout():
    x, outs = torch.ones(9999, device="cuda"), [empty(9999) for _ in range(3)]
    for out, seed in zip(outs, (123, 123, 512)):
        drop[(10,)](x, out, 9999, 0.5, seed, BLOCK=1024)
    one, same, other = (out.cpu() for out in outs)
    return torch.equal(one, same) and not torch.equal(one, other) and abs(float(one.mean()) - 1) < 0.05


@triton.jit
def norm_forward(x_ptr, out_ptr, w_ptr, b_ptr, mean_ptr, scale_ptr, N, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, N, BLOCK):
        total += tl.load(x_ptr + row * N + first + at, mask=first + at < N, other=0.0)
    mean = tl.sum(total, 0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + first + at, mask=first + at < N, other=0.0)
        x = tl.where(first + at < N, x - mean, 0.0)
        squares += x * x
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / N + 1e-5)
    tl.store(mean_ptr + row, mean)
    tl.store(scale_ptr + row, scale)
    for first in range(0, N, BLOCK):
        inside = first + at < N
        w, b = tl.load(w_ptr + first + at, mask=inside), tl.load(b_ptr + first + at, mask=inside)
        x = tl.load(x_ptr + row * N + first + at, mask=inside)
        tl.store(out_ptr + row * N + first + at, (x - mean) * scale * w + b, mask=inside)


@triton.jit
def norm_backward(
    dx_ptr, dout_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, scale_ptr, lock_ptr, N,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < N
    x = tl.load(x_ptr + row * N + at, mask=inside, other=0.0)
    dout = tl.load(dout_ptr + row * N + at, mask=inside, other=0.0)
    w = tl.load(w_ptr + at, mask=inside, other=0.0)
    scale = tl.load(scale_ptr + row)
    normed = tl.where(inside, (x - tl.load(mean_ptr + row)) * scale, 0.0)
    part = w * dout
    dx = (part - normed * (tl.sum(normed * part, 0) / N) - tl.sum(part, 0) / N) * scale
    tl.store(dx_ptr + row * N + at, dx, mask=inside)
    lock = lock_ptr + row % GROUPS
    dw, db = dw_ptr + row % GROUPS * N + at, db_ptr + row % GROUPS * N + at
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(dw, tl.load(dw, mask=inside) + dout * normed, mask=inside)
    tl.store(db, tl.load(db, mask=inside) + dout, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def test_layer_norm():
    rows, n, groups = 47, 300, 8
    x, w, b, dout = torch.randn(rows, n), torch.rand(n), torch.rand(n), torch.randn(rows, n)
    device = [t.cuda() for t in (x, w, b, dout)]
    out, mean, scale, dx = empty(rows, n), empty(rows), empty(rows), empty(rows, n)
    norm_forward[(rows,)](device[0], out, device[1], device[2], mean, scale, n, BLOCK=128)
    dw, db, locks = empty(groups, n), empty(groups, n), empty(groups, dtype=torch.int32)
    norm_backward[(rows,)](dx, device[3], dw, db, device[0], device[1], mean, scale, locks, n, groups, 512)
    leaves = [t.requires_grad_() for t in (x, w, b)]
    expected = torch.nn.functional.layer_norm(x, (n,), w, b)
    expected.backward(dout)
    found = (dx, dw.sum(0), db.sum(0))
    return near(out, expected.detach()) and all(near(f, leaf.grad) for f, leaf in zip(found, leaves))


@triton.jit
def attend(
    q_ptr, k_ptr, v_ptr, out_ptr, head_stride, n, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1) * head_stride
    rows, depth = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    place = head + rows[:, None] * D + depth[None, :]
    q = tl.load(q_ptr + place, mask=rows[:, None] < n, other=0.0)
    best, norms = tl.full([BM], -float("inf"), tl.float32), tl.zeros([BM], tl.float32)
    total = tl.zeros([BM, D], tl.float32)
    for first in range(0, (tl.program_id(0) + 1) * BM if CAUSAL else n, BN):
        at = first + tl.arange(0, BN)
        k = tl.load(k_ptr + head + at[None, :] * D + depth[:, None], mask=at[None, :] < n, other=0.0)
        v = tl.load(v_ptr + head + at[:, None] * D + depth[None, :], mask=at[:, None] < n, other=0.0)
        seen = at[None, :] < n
        if CAUSAL:
            seen &= rows[:, None] >= at[None, :]
        scores = tl.where(seen, tl.dot(q, k) * scale, -1.0e6)
        higher = tl.maximum(best, tl.max(scores, 1))
        p, old = tl.math.exp2((scores - higher[:, None]) * 1.44269504), tl.exp(best - higher)
        total = tl.dot(p.to(v.dtype), v, total * old[:, None])
        norms, best = norms * old + tl.sum(p, 1), higher
    tl.store(out_ptr + place, (total / norms[:, None]).to(tl.float16), mask=rows[:, None] < n)


def test_attention():
    heads, n, depth = 2, 200, 64
    q, k, v = (torch.randn(heads, n, depth).half() for _ in range(3))
    right = True
    for causal in (True, False):
        out = empty(heads, n, depth, dtype=torch.half)
        device = (q.cuda(), k.cuda(), v.cuda(), out)
        attend[(4, heads)](*device, n * depth, n, depth**-0.5, depth, 64, 32, causal, num_stages=3)
        floats = [t.float() for t in (q, k, v)]
        expected = torch.nn.functional.scaled_dot_product_attention(*floats, is_causal=causal)
        right = near(out, expected, 1e-2) and right
    return right


# --- tensor descriptors ------------------------------------------------------------------------------------


@triton.jit
def multiply_persistently(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FLAT: tl.constexpr
):
    wide = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * wide, tl.num_programs(0), flatten=FLAT):
        row, column = tile // wide * BM, tile % wide * BN
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(a.load([row, k]), b.load([column, k]).T, total)
        c.store([row, column], total.to(c.dtype))


def persistent(dtype, flat):
    M, N, K = 200, 136, 96
    a, b, c = torch.randn(M, K).to(dtype), torch.randn(N, K).to(dtype), empty(M, N, dtype=torch.half)
    described = [TensorDescriptor.from_tensor(t, [64, 32]) for t in (a.cuda(), b.cuda())]
    described.append(TensorDescriptor.from_tensor(c, [64, 64]))
    multiply_persistently[(4,)](*described, M, N, K, 64, 64, 32, flat, num_stages=3)
    return near(c, a.float() @ b.float().t(), 5e-2)


def test_persistent_matmul():
    return persistent(torch.half, True) and persistent(torch.half, False)


def test_persistent_matmul_fp8():
    return persistent(torch.float8_e4m3fn, False)


@triton.jit
def multiply_into(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [B, BK])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, B])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [B, B])
    row, column = tl.program_id(0) * B, tl.program_id(1) * B
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total)
    c.atomic_add([row, column], total)


def test_descriptor_reductions():
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    a, b, c = torch.randn(100, 64).bfloat16(), torch.randn(64, 72).bfloat16(), empty(100, 72)
    multiply_into[(2, 2)](a.cuda(), b.cuda(), c, 100, 72, 64, 64, 32)
    return near(c, 2 * (a.float() @ b.float()), 2e-2)


@triton.jit
def add_one(source, out, B: tl.constexpr):
    row, at = tl.program_id(0) * B, tl.arange(0, B)
    x = source.load([row, 0])
    tl.store(out + (row + at)[:, None] * B + at[None, :], x + 1)


def test_descriptor_of_another_type():
    x, out = torch.arange(32 * 16, dtype=torch.int32).reshape(32, 16), empty(32, 16, dtype=torch.int32)
    described = TensorDescriptor.from_tensor(triton.reinterpret(x.cuda(), tl.uint32), [16, 16])
    add_one[(2,)](described, triton.reinterpret(out, tl.uint32), 16)
    return near(out, x + 1)


@triton.jit
def multiply_by_groups(a, b, c, K, B: tl.constexpr):
    row, column = tl.program_id(0) * B, tl.program_id(1) * B
    total = tl.zeros((B, B), tl.float32)
    for k in tl.range(0, K, B, warp_specialize=True):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


def test_warp_specialization():
    a, b, c = torch.randn(128, 128).half(), torch.randn(128, 128).half(), empty(128, 128, dtype=torch.half)
    described = [TensorDescriptor.from_tensor(t, [64, 64]) for t in (a.cuda(), b.cuda(), c)]
    multiply_by_groups[(2, 2)](*described, 128, 64, num_warps=4)
    return near(c, a.float() @ b.float(), 5e-2)


# --- products ----------------------------------------------------------------------------------------------


@triton.jit
def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr, PRECISION: tl.constexpr, TYPE: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    c = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), input_precision=PRECISION, out_dtype=TYPE)
    tl.store(c_ptr + at, c)


def products(dtype, most, precision=None, type=tl.float32, n=64):
    a, b = ((20 * torch.randn(n, n)).clamp(-127, 127) if dtype == torch.int8 else torch.randn(n, n)
            for _ in range(2))  # fmt: skip
    a, b = a.to(dtype), b.to(dtype)
    c = empty(n, n, dtype=getattr(torch, str(type).replace("fp", "float")))
    product[(1,)](a.cuda(), b.cuda(), c, n, precision, type)
    return near(c, a.double() @ b.double(), most)


def test_dot_types():
    return (
        products(torch.bfloat16, 1e-2)
        and products(torch.float8_e5m2, 1e-2)
        and products(torch.float8_e4m3fn, 1e-2)
        and products(torch.int8, 0, type=tl.int32)
        and products(torch.float16, 5e-2, type=tl.float16)
        and products(torch.float64, 1e-9, type=tl.float64, n=32)
    )


def test_dot_precisions():
    most = {"ieee": 1e-3, "tf32": 5e-2, "tf32x3": 1e-3, "bf16x3": 1e-2, "bf16x6": 1e-3}
    return all(products(torch.float32, worst, precision) for precision, worst in most.items())


@triton.jit
def product_scaled(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr,
    N: tl.constexpr, K: tl.constexpr, PACKED: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    at, inner, scales = tl.arange(0, N), tl.arange(0, K // PACKED), tl.arange(0, K // 32)
    a = tl.load(a_ptr + at[:, None] * (K // PACKED) + inner[None, :])
    b = tl.load(b_ptr + inner[:, None] * N + at[None, :])
    a_scale = tl.load(a_scale_ptr + at[:, None] * (K // 32) + scales[None, :])
    b_scale = tl.load(b_scale_ptr + at[:, None] * (K // 32) + scales[None, :])
    tl.store(c_ptr + at[:, None] * N + at[None, :], tl.dot_scaled(a, a_scale, TYPE, b, b_scale, TYPE))


def scaled(a, b, a_value, b_value, packed, type):
    n, k = 64, 128
    scales = [torch.randint(124, 130, (n, k // 32), dtype=torch.uint8) for _ in range(2)]
    wide = [(2.0 ** (s.float() - 127)).repeat_interleave(32, 1) for s in scales]
    c = empty(n, n)
    product_scaled[(1,)](a.cuda(), scales[0].cuda(), b.cuda(), scales[1].cuda(), c, n, k, packed, type)
    return near(c, (a_value * wide[0]) @ (b_value * wide[1].t()), 1e-1)


def test_dot_scaled():
    a, b = torch.randn(64, 128).to(torch.float8_e4m3fn), torch.randn(128, 64).to(torch.float8_e4m3fn)
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    p, q = (torch.randint(0, 16, shape, dtype=torch.uint8) for shape in ((64, 128), (128, 64)))
    packed = (p[:, ::2] | p[:, 1::2] << 4).contiguous(), (q[::2] | q[1::2] << 4).contiguous()
    return scaled(a, b, a.float(), b.float(), 1, "e4m3") and scaled(
        *packed, values[p.long()], values[q.long()], 2, "e2m1"
    )


# --- reductions, scans, sorting ----------------------------------------------------------------------------


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def chained(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def order(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.cumsum(x, 0))
    tl.store(out_ptr + N + at, tl.cumsum(x, 0, reverse=True))
    tl.store(out_ptr + 2 * N + at, tl.sort(x))
    tl.store(out_ptr + 3 * N + at, tl.sort(x, descending=True))
    tl.store(out_ptr + 4 * N + at, tl.associative_scan(x, 0, larger))
    tl.store(out_ptr + 5 * N + at, tl.flip(x, 0))
    tl.store(out_ptr + 6 * N + at, tl.gather(x, N - 1 - at, 0))
    even, odd = tl.split(tl.reshape(x, (N // 2, 2)))
    tl.store(out_ptr + 7 * N + at, tl.interleave(odd, even))
    unused, chain = tl.associative_scan((x * 0.1, x), 0, chained)
    tl.store(out_ptr + 8 * N + at, chain)
    tl.store(out_ptr + 9 * N + tl.arange(0, 8), tl.topk(x, 8))
    tl.store(out_ptr + 9 * N + 8, tl.argmax(x, 0).to(tl.float32))
    tl.store(out_ptr + 9 * N + 9, tl.argmin(x, 0).to(tl.float32))
    tl.store(out_ptr + 9 * N + 10, tl.reduce(x, 0, larger))


def test_order():
    n = 256
    x, out = torch.randn(n), empty(10, n)
    order[(1,)](x.cuda(), out, n)
    chain = [0.0]
    for value in x.tolist():
        chain.append(chain[-1] * value * 0.1 + value)
    last = torch.cat((x.topk(8)[0], torch.stack((x.argmax(), x.argmin(), x.max()))))
    swapped = x.view(-1, 2).flip(1).reshape(-1)
    expected = (x.cumsum(0), x.flip(0).cumsum(0).flip(0), x.sort()[0], x.sort(descending=True)[0],
                x.cummax(0)[0], x.flip(0), x.flip(0), swapped, torch.tensor(chain[1:]), last)  # fmt: skip
    return all(near(row[: len(e)], e) for row, e in zip(out, expected))


@triton.jit
def tables(x_ptr, index_ptr, bins_ptr, out_ptr, N: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.gather(x, tl.load(index_ptr + at), 0))
    tl.store(out_ptr + N * M + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], tl.permute(x, (1, 0)))
    tl.store(bins_ptr + tl.arange(0, N), tl.histogram(tl.ravel(tl.load(index_ptr + at)), N))


def test_tables():
    n, m = 64, 16
    x, index = torch.randn(n, m), torch.randint(0, n, (n, m), dtype=torch.int32)
    bins, out = empty(n, dtype=torch.int32), empty(2, n * m)
    tables[(1,)](x.cuda(), index.cuda(), bins, out, n, m)
    counts = torch.bincount(index.view(-1), minlength=n)
    gathered = torch.gather(x, 0, index.long()).view(-1)
    return near(out[0], gathered) and near(out[1], x.t().reshape(-1)) and near(bins, counts)


@triton.jit
def update(to_ptr, x_ptr, n, BLOCK: tl.constexpr, HOW: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, to = tl.load(x_ptr + at, mask=at < n), to_ptr + at % 4
    if HOW == "add":
        tl.atomic_add(to, x, mask=at < n, sem="relaxed")
    elif HOW == "max":
        tl.atomic_max(to, x, mask=at < n)
    elif HOW == "min":
        tl.atomic_min(to, x, mask=at < n, scope="cta")
    elif HOW == "and":
        tl.atomic_and(to, x, mask=at < n)
    elif HOW == "or":
        tl.atomic_or(to, x, mask=at < n)
    else:
        tl.atomic_xor(to, x, mask=at < n)


def updated(how, dtype):
    x = (torch.randn(1000) * 8).round().to(dtype)
    to, all_bits = empty(4, dtype=dtype), how == "and"
    if all_bits:
        to.fill_(-1)
    update[(4,)](to, x.cuda(), 1000, 256, how)
    expected = []
    for lane in range(4):
        total = torch.tensor(-1 if all_bits else 0, dtype=dtype)
        for value in x[lane::4]:
            total = {"add": torch.add, "max": torch.maximum, "min": torch.minimum, "and": torch.bitwise_and,
                     "or": torch.bitwise_or, "xor": torch.bitwise_xor}[how](total, value)  # fmt: skip
        expected.append(total)
    return near(to, torch.stack(expected), 0)


def test_atomics():
    numbers = (torch.int32, torch.int64, torch.float32)
    cases = [(how, dtype) for how in ("add", "max", "min") for dtype in numbers]
    cases += [(how, torch.int32) for how in ("and", "or", "xor")]
    cases += [("add", dtype) for dtype in (torch.float64, torch.float16, torch.bfloat16)]
    return all(updated(how, dtype) for how, dtype in cases)


# --- code of others ----------------------------------------------------------------------------------------


@triton.jit
def assemble(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    funnel = tl.inline_asm_elementwise(
        "shf.l.wrap.b32 $0, $1, $2, 3;", "=r,r,r", [x, y], dtype=tl.int32, is_pure=True, pack=1
    )
    bytes = tl.inline_asm_elementwise(
        "vadd4.u32.u32.u32 $0, $1, $2, $3;", "=r,r,r,r", [x, y, x * 0], dtype=tl.int32, is_pure=True, pack=1
    )
    tl.store(out_ptr + at, funnel)
    tl.store(out_ptr + N + at, bytes)


def test_inline_assembly():
    x, y = (torch.randint(0, 2**31 - 1, (256,), dtype=torch.int32) for _ in range(2))
    out = empty(2, 256, dtype=torch.int32)
    assemble[(1,)](x.cuda(), y.cuda(), out, 256)
    funnel = torch.tensor([(b << 3 | a >> 29) & 0xFFFFFFFF for a, b in zip(x.tolist(), y.tolist())])
    bytes = (x.view(torch.uint8) + y.view(torch.uint8)).view(torch.int32)
    return torch.equal(out[0].cpu(), funnel.to(torch.int32)) and torch.equal(out[1].cpu(), bytes)


@triton.jit
def functions(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, libdevice.asin(x))
    tl.store(out_ptr + N + at, libdevice.pow(x + 2, x))
    tl.store(out_ptr + 2 * N + at, libdevice.lgamma(x + 3))
    tl.store(out_ptr + 3 * N + at, libdevice.j0(x))
    tl.store(out_ptr + 4 * N + at, libdevice.tanh(x) + tl.math.rsqrt(x + 2) + libdevice.log1p(x))
    tl.store(out_ptr + 5 * N + at, tl.erf(x) + tl.sigmoid(x) + tl.sin(x) + tl.floor(x) + tl.fma(x, x, x))


def test_functions():
    x, out = torch.rand(512) * 0.98, empty(6, 512)
    functions[(1,)](x.cuda(), out, 512)
    sums = x.tanh() + (x + 2).rsqrt() + x.log1p(), x.erf() + x.sigmoid() + x.sin() + x.floor() + x * x + x
    expected = (x.asin(), (x + 2) ** x, torch.lgamma(x + 3), torch.special.bessel_j0(x), *sums)
    return all(near(row, e, 1e-4) for row, e in zip(out, expected))


@triton.jit
def convert(x_ptr, out_ptr, N: tl.constexpr, TYPE: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(TYPE).to(tl.float32))


def test_conversions():
    x = torch.randn(256) * 10
    types = (
        (tl.float16, torch.float16), (tl.bfloat16, torch.bfloat16), (tl.float8e5, torch.float8_e5m2),
        (tl.float8e4nv, torch.float8_e4m3fn), (tl.int8, torch.int8), (tl.int64, torch.int64),
    )  # fmt: skip
    right = True
    for type, same in types:
        out = empty(256)
        convert[(1,)](x.cuda(), out, 256, type)
        right = near(out, x.to(same).float(), 0) and right
    return right


@triton.jit
def increase(x_ptr, out_ptr, N: tl.constexpr):
    tl.extra.cuda.gdc_wait()
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + 1)
    tl.extra.cuda.gdc_launch_dependents()


def test_launches():
    """Dependent launches, clusters, and a graph."""
    x, outs = torch.ones(512, device="cuda"), [empty(512) for _ in range(3)]
    increase[(2,)](x, outs[0], 256, launch_pdl=True)
    increase[(2,)](x, outs[1], 256, num_ctas=2)
    increase[(4,)](x, outs[2], 128)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        increase[(4,)](x, outs[2], 128)
    x.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    return [out.sum().item() / 512 for out in outs] == [2, 2, 4]


@triton.jit
def double_rows(addresses_ptr, sizes_ptr, groups, BLOCK: tl.constexpr):
    for group in range(groups):
        n = tl.load(sizes_ptr + group)
        source = tl.load(addresses_ptr + 2 * group).to(tl.pointer_type(tl.float32))
        target = tl.load(addresses_ptr + 2 * group + 1).to(tl.pointer_type(tl.float32))
        for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
            at = first + tl.arange(0, BLOCK)
            tl.store(target + at, tl.load(source + at, mask=at < n) * 2, mask=at < n)


def test_pointers_from_memory():
    xs = [torch.randn(n, device="cuda") for n in (100, 257, 1000)]
    outs = [torch.zeros_like(x) for x in xs]
    addresses = torch.tensor([t.data_ptr() for pair in zip(xs, outs) for t in pair], device="cuda")
    sizes = torch.tensor([x.numel() for x in xs], dtype=torch.int32, device="cuda")
    double_rows[(3,)](addresses, sizes, 3, 128)
    return all(near(out, 2 * x.cpu()) for x, out in zip(xs, outs))


def main(names):
    wrong = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (names and name[5:] not in names):
            continue
        torch.manual_seed(1)
        right = test()
        print(name[5:], "ok" if right else "WRONG", flush=True)
        wrong += not right
    return wrong > 0


sys.exit(main(sys.argv[1:]))
