# SPDX-License-Identifier: MIT
"""Parts of Triton's language, one small kernel for each, against PyTorch on the CPU: one line for each, and
status 1 if a result is wrong. What triton_features.py has as whole kernels is left out here."""

import sys

import torch
import triton
import triton.language as tl

N = 256


def on_blocks(kernel, *inputs, like=None, size=None, **options):
    """Runs KERNEL(inputs..., out, N) once. The output is like LIKE, or the first input."""
    like = inputs[0] if like is None else like
    out = torch.zeros(size or like.shape, dtype=like.dtype, device="cuda")
    kernel[(1,)](*[i.cuda() for i in inputs], out, N, **options)
    return out.cpu()


def same(a, b, most=1e-5):
    b = b.to(a.dtype)
    if a.is_floating_point():
        return torch.allclose(a.double(), b.double(), atol=most, rtol=most, equal_nan=True)
    return torch.equal(a, b)


@triton.jit
def divide(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a // b * 1000 + a % b)


def test_division_of_signed():
    x, y = torch.randint(-99, 99, (N,)), torch.randint(1, 9, (N,)) * (torch.arange(N) % 2 * 2 - 1)
    expected = torch.div(x, y, rounding_mode="trunc") * 1000 + torch.fmod(x, y)
    return same(on_blocks(divide, x, y), expected)


@triton.jit
def shifts(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, ((a >> 3) ^ (a << 2)) & ~(a | 5))


def test_shifts():
    x = torch.randint(-(2**20), 2**20, (N,), dtype=torch.int32)
    return same(on_blocks(shifts, x), ((x >> 3) ^ (x << 2)) & ~(x | 5))


@triton.jit
def high_product(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.umulhi(tl.load(x + i), tl.load(y + i)))


def test_umulhi():
    x, y = (torch.randint(0, 2**31 - 1, (N,), dtype=torch.int32) for _ in range(2))
    return same(on_blocks(high_product, x, y), (x.long() * y.long()) >> 32)


@triton.jit
def affine(a_scale, a_shift, b_scale, b_shift):
    return a_scale * b_scale, a_shift * b_scale + b_shift


@triton.jit
def recurrence(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    _, shift = tl.associative_scan((tl.load(x + i), tl.load(y + i)), 0, affine)
    tl.store(out + i, shift)


def test_scan_of_pairs():
    x, y = torch.rand(N), torch.rand(N)
    expected, last = [], torch.zeros(())
    for scale, shift in zip(x, y):
        last = last * scale + shift
        expected.append(last)
    return same(on_blocks(recurrence, x, y), torch.stack(expected), 1e-4)


@triton.jit
def reversed_sums(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0, reverse=True))


def test_cumsum_reversed():
    x = torch.randint(0, 9, (N,))
    return same(on_blocks(reversed_sums, x), x.flip(0).cumsum(0).flip(0))


@triton.jit
def products(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumprod(tl.load(x + i), 0))


def test_cumprod():
    x = 1 + torch.rand(N) / 100
    return same(on_blocks(products, x), x.cumprod(0), 1e-4)


@triton.jit
def xors(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out, tl.xor_sum(tl.load(x + i), 0))


def test_xor_sum():
    x = torch.randint(0, 2**30, (N,), dtype=torch.int32)
    expected = 0
    for value in x.tolist():
        expected ^= value
    return on_blocks(xors, x, size=(1,)).item() == expected


@triton.jit
def extremes(x, out, N: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    value, at = tl.max(tl.load(x + i), 1, return_indices=True)
    least, least_at = tl.min(tl.load(x + i), 1, return_indices=True)
    tl.store(out + tl.arange(0, 16), value * 1000000 + at * 10000 + least * 100 + least_at)


def test_extremes_with_ties():
    x = torch.randint(0, 9, (16, 16))
    first = lambda t: t.int().argmax(1)  # noqa: E731
    most, least = x.max(1).values, x.min(1).values
    at, least_at = first(x == most[:, None]), first(x == least[:, None])
    return same(on_blocks(extremes, x, size=(16,)), most * 1000000 + at * 10000 + least * 100 + least_at)


@triton.jit
def shapes(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    cube = tl.reshape(tl.load(x + i), (4, 8, 8)).permute(2, 0, 1)
    tl.store(out + i, tl.reshape(cube, (N,)))


def test_permute():
    x = torch.randn(N)
    return same(on_blocks(shapes, x), x.reshape(4, 8, 8).permute(2, 0, 1).reshape(-1))


@triton.jit
def pairs(x, out, N: tl.constexpr):
    i = tl.arange(0, N // 2)
    even, odd = tl.split(tl.reshape(tl.load(x + tl.arange(0, N)), (N // 2, 2)))
    tl.store(out + tl.arange(0, N), tl.interleave(odd, even))
    tl.store(out + N + i[:, None] * 2 + tl.arange(0, 2)[None, :], tl.join(odd, odd + even))


def test_join_and_split():
    x = torch.randn(N)
    even, odd = x[::2], x[1::2]
    expected = torch.cat((torch.stack((odd, even), 1), torch.stack((odd, odd + even), 1))).reshape(-1)
    return same(on_blocks(pairs, x, size=(2 * N,)), expected)


@triton.jit
def flipped(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.flip(tl.sort(tl.load(x + i), descending=True), 0))


def test_sort_and_flip():
    x = torch.randn(N)
    return same(on_blocks(flipped, x), x.sort().values)


@triton.jit
def largest(x, out, N: tl.constexpr):
    tl.store(out + tl.arange(0, 8), tl.topk(tl.load(x + tl.arange(0, N)), 8))


def test_topk():
    x = torch.randperm(N)
    return same(on_blocks(largest, x, size=(8,)), x.topk(8).values)


@triton.jit
def bins_of(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + tl.arange(0, 32), tl.histogram(tl.load(x + i), 32, mask=i < 200))


def test_histogram_with_mask():
    x = torch.randint(0, 32, (N,), dtype=torch.int32)
    return same(on_blocks(bins_of, x, size=(32,)), torch.bincount(x[:200], minlength=32))


@triton.jit
def taken(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.load(y + i), 0))


def test_gather():
    x, y = torch.randn(N), torch.randint(0, N, (N,), dtype=torch.int32)
    return same(on_blocks(taken, x, y), x[y.long()])


@triton.jit
def atomics(x, out, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    tl.atomic_max(out + 0 + a * 0, a)
    tl.atomic_min(out + 1 + a * 0, a)
    tl.atomic_or(out + 2 + a * 0, a)
    tl.atomic_xor(out + 3 + a * 0, a)
    tl.atomic_and(out + 4 + a * 0, a | 1)
    tl.atomic_add(out + 5 + a * 0, a, sem="relaxed", scope="cta")


def test_atomics_of_integers():
    x = torch.randint(-999, 999, (N,), dtype=torch.int32)
    expected = [max(0, int(x.max())), min(0, int(x.min())), 0, 0, 0, int(x.sum())]
    for value in x.tolist():
        expected[2] |= value
        expected[3] ^= value
    return on_blocks(atomics, x, size=(6,)).tolist() == expected


@triton.jit
def atomics_of_floats(x, out, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    tl.atomic_max(out + (a * 0).to(tl.int32), a)
    tl.atomic_min(out + 1 + (a * 0).to(tl.int32), a)
    tl.atomic_add(out + 2 + (a * 0).to(tl.int32), a)


def test_atomics_of_floats():
    x = torch.randn(N)
    expected = torch.stack((x.max(), x.min(), x.sum()))
    return same(on_blocks(atomics_of_floats, x, size=(3,)), expected, 1e-4)


@triton.jit
def atomics_of_halves(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out + i // 2, tl.load(x + i))


def test_atomics_of_halves():
    right = True
    for dtype in (torch.half, torch.bfloat16):
        x = torch.randint(0, 8, (N,)).to(dtype)
        right = same(on_blocks(atomics_of_halves, x, size=(N // 2,)), x.reshape(-1, 2).sum(1)) and right
    return right


@triton.jit
def mathematics(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.erf(a) + tl.exp(a) + tl.exp2(a) + tl.log(a + 9) + tl.log2(a + 9) + tl.sin(a) * tl.cos(a)
    b += tl.sqrt_rn(a + 9) + tl.rsqrt(a + 9) + tl.floor(a) + 2 * tl.ceil(a) + tl.abs(a) + tl.sigmoid(a)
    tl.store(out + i, b + tl.div_rn(a, a + 9) + tl.fma(a, a, a) + tl.clamp(a, -0.5, 0.5))


def test_mathematics():
    x = torch.randn(N, dtype=torch.float32)
    b = x.erf() + x.exp() + x.exp2() + (x + 9).log() + (x + 9).log2() + x.sin() * x.cos()
    b += (x + 9).sqrt() + (x + 9).rsqrt() + x.floor() + 2 * x.ceil() + x.abs() + x.sigmoid()
    return same(on_blocks(mathematics, x), b + x / (x + 9) + x * x + x + x.clamp(-0.5, 0.5), 1e-4)


@triton.jit
def with_nan(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, tl.maximum(a, 0.5))
    tl.store(out + N + i, tl.maximum(a, 0.5, propagate_nan=tl.PropagateNan.ALL))


def test_nan():
    x = torch.randn(N)
    x[::7] = float("nan")
    expected = torch.cat((torch.fmax(x, torch.tensor(0.5)), torch.maximum(x, torch.tensor(0.5))))
    return same(on_blocks(with_nan, x, size=(2 * N,)), expected)


@triton.jit
def cast(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


def test_casts():
    right = True
    types = (torch.int8, torch.int16, torch.int64, torch.half, torch.bfloat16, torch.float64, torch.bool)
    types += (torch.float8_e4m3fn, torch.float8_e5m2, torch.uint8)
    for dtype in types:
        x = torch.randint(0, 100, (N,)).float()
        right = same(on_blocks(cast, x, like=x.to(dtype)).float(), x.to(dtype).float()) and right
        right = same(on_blocks(cast, x.to(dtype), like=x), x.to(dtype).float()) and right
    return right


@triton.jit
def bits(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(tl.int32, bitcast=True))


def test_bitcast():
    x = torch.randn(N)
    return same(on_blocks(bits, x, like=x.int()), x.view(torch.int32))


@triton.jit
def numbers(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.rand(tl.load(x), i))
    tl.store(out + N + i, tl.randn(tl.load(x), i))


def test_random_numbers():
    seed = torch.tensor([77], dtype=torch.int32)
    a, b = on_blocks(numbers, seed, like=torch.ones(1), size=(2 * N,)).reshape(2, N)
    spread = 0.4 < a.mean() < 0.6 and 0 <= a.min() and a.max() < 1 and a.unique().numel() > 200
    return spread and 0.8 < b.std() < 1.2


@triton.jit
def collatz(x, out, N: tl.constexpr):
    row = tl.program_id(0)
    n, steps = tl.load(x + row), 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(out + row, steps)


def test_loops():
    def steps(n):
        count = 0
        while n != 1:
            n, count = n // 2 if n % 2 == 0 else 3 * n + 1, count + 1
        return count

    x = torch.arange(1, 33)
    out = torch.zeros_like(x, device="cuda")
    collatz[(32,)](x.cuda(), out, N)
    return out.tolist() == [steps(n) for n in range(1, 33)]


@triton.jit(noinline=True)
def called(a, b):
    return a * b + 1


@triton.jit
def calls(x, out, N: tl.constexpr):
    for i in range(0, 16):
        tl.store(out + i, called(tl.load(x + i), tl.load(x + 3)))


def test_calls():
    x = torch.randn(N)
    return same(on_blocks(calls, x, size=(16,)), x[:16] * x[3] + 1)


@triton.jit
def batches(x, y, out, N: tl.constexpr):
    row = tl.arange(0, 16)
    i = tl.arange(0, 2)[:, None, None] * 256 + row[None, :, None] * 16 + row[None, None]
    tl.store(out + i, tl.dot(tl.load(x + i), tl.load(y + i), input_precision="ieee"))


def test_dot_of_batches():
    x, y = torch.randn(2, 16, 16), torch.randn(2, 16, 16)
    return same(on_blocks(batches, x, y), x @ y, 1e-4)


@triton.jit
def modified(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i, cache_modifier=".cg") + tl.load(x + i, volatile=True)
    a += tl.load(x + i, eviction_policy="evict_last") + tl.load(x + i, cache_modifier=".ca")
    tl.store(out + i, a, cache_modifier=".cs")
    tl.store(out + N + i, a, eviction_policy="evict_first")


def test_cache_modifiers():
    x = torch.randn(N)
    return same(on_blocks(modified, x, size=(2 * N,)), torch.cat((4 * x, 4 * x)))


@triton.jit
def sums_of(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.reshape(tl.load(x + i), (4, 8, 8))
    tl.store(out + tl.arange(0, 32), tl.reshape(tl.sum(a, 1), (32,)))
    tl.store(out + 32, tl.reduce(tl.load(x + i), 0, lower))


@triton.jit
def lower(a, b):
    return tl.minimum(a, b) * 1.0


def test_reductions():
    x = torch.randn(N)
    expected = torch.cat((x.reshape(4, 8, 8).sum(1).reshape(-1), x.min()[None]))
    return same(on_blocks(sums_of, x, size=(33,)), expected, 1e-4)


@triton.jit
def asserted(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.static_assert(N == 256)
    tl.device_assert(tl.load(x + i) >= 0, "negative")
    tl.store(out + i, tl.load(x + i))


def test_asserts():
    x = torch.rand(N)
    return same(on_blocks(asserted, x, debug=True), x)


@triton.jit
def printed(x, out, N: tl.constexpr):
    a = tl.load(x + tl.program_id(0))
    tl.device_print("value", a)
    tl.store(out, a)


def test_prints():
    return on_blocks(printed, torch.tensor([12345]), num_warps=1).item() == 12345


def main(only=""):
    torch.manual_seed(3)
    wrong = 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_" + only):
            try:
                right = test()
            except Exception as why:
                right = False
                print(name[5:], "raised", type(why).__name__, str(why).strip().split("\n")[-1][:300])
            print(name[5:], "ok" if right else "WRONG", flush=True)
            wrong += not right
    return wrong > 0


sys.exit(main(*sys.argv[1:]))
