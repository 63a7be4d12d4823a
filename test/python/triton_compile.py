# SPDX-License-Identifier: MIT
"""Compiles kernels for an sm_90 at the sizes that its matrix units want, without a device, and writes their
PTX into a folder: triton_compile.py FOLDER. One line for each says which instructions it has."""

import os
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

MARKS = ("wgmma.mma_async", "cp.async.bulk.tensor", "cp.reduce.async.bulk", "mbarrier", "setmaxnreg")
MARKS += ("mma.sync", "cp.async.cg", "ldmatrix", "stmatrix", "atom.", "griddepcontrol")


@triton.jit
def product_of_rows(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rest = inner < K - k
        left, right = (rows[:, None] < M) & rest[None, :], rest[:, None] & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :], left, 0.0)
        b = tl.load(b_ptr + (k + inner)[:, None] * N + columns[None, :], right, 0.0)
        total = tl.dot(a, b, total)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(c_ptr.dtype.element_ty), inside)


@triton.jit
def product_of_boxes(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUPS: tl.constexpr
):
    wide = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * wide
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True, warp_specialize=GROUPS):
        row, column = tile // wide * BM, tile % wide * BN
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(a.load([row, k]), b.load([column, k]).T, total)
        c.store([row, column], total.to(c.dtype))


@triton.jit
def product_in_groups(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(c.dtype))


@triton.jit
def sum_of_products(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [B, BK])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, B])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [B, B])
    row, column = tl.program_id(0) * B, tl.program_id(1) * B
    total = tl.zeros((B, B), tl.float32)
    for k in range(tl.program_id(2) * BK, K, tl.num_programs(2) * BK):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.atomic_add([row, column], total)


@triton.jit
def attend(
    q, k, v, out, N, scale, B: tl.constexpr, BN: tl.constexpr, DEPTH: tl.constexpr, CAUSAL: tl.constexpr
):
    head, rows = tl.program_id(1), tl.program_id(0) * B + tl.arange(0, B)
    first = head * N
    queries = q.load([first + tl.program_id(0) * B, 0])
    most, weight = tl.full((B,), -float("inf"), tl.float32), tl.zeros((B,), tl.float32)
    total = tl.zeros((B, DEPTH), tl.float32)
    for at in tl.range(0, N, BN):
        score = tl.dot(queries, k.load([first + at, 0]).T) * scale
        if CAUSAL:
            score = tl.where(rows[:, None] >= (at + tl.arange(0, BN))[None, :], score, -1e6)
        higher = tl.maximum(most, tl.max(score, 1))
        p = tl.math.exp2(score - higher[:, None])
        fade = tl.math.exp2(most - higher)
        weight = weight * fade + tl.sum(p, 1)
        total = tl.dot(p.to(tl.float16), v.load([first + at, 0]), total * fade[:, None])
        most = higher
    out.store([first + tl.program_id(0) * B, 0], (total / weight[:, None]).to(tl.float16))


@triton.jit
def layer_norm(x_ptr, w_ptr, sums_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, at < n, 0.0).to(tl.float32)
    mean = tl.sum(x, 0) / n
    off = tl.where(at < n, x - mean, 0.0)
    scaled = off * tl.rsqrt(tl.sum(off * off, 0) / n + 1e-5) * tl.load(w_ptr + at, at < n)
    tl.store(out_ptr + row * n + at, scaled, at < n)
    tl.atomic_add(sums_ptr + at, scaled, at < n)


def boxes(dtype, *shapes):
    return ["tensordesc<{}[{}, {}]>".format(dtype, *shape) for shape in shapes]


def cases():
    """The name, the kernel, the types of its arguments, its constants and the options."""
    for kind, result in (("fp16", "fp16"), ("bf16", "fp32"), ("fp8e4nv", "fp16"), ("fp32", "fp32")):
        sizes = (128, 128, 32 if kind == "fp32" else 64)
        types = ["*" + kind, "*" + kind, "*" + result, "i32", "i32", "i32"]
        yield "rows_" + kind, product_of_rows, types, sizes, {"num_warps": 8, "num_stages": 3}
    yield "rows_small", product_of_rows, ["*fp16"] * 3 + ["i32"] * 3, (32, 32, 16), {"num_warps": 2}
    for groups in (False, True):
        types = boxes("fp16", (128, 64), (256, 64), (128, 256)) + ["i32"] * 3
        yield "boxes_{:d}".format(groups), product_of_boxes, types, (128, 256, 64, groups), {"num_warps": 8}
    types = boxes("fp8e4nv", (128, 128), (128, 128)) + boxes("fp16", (128, 128)) + ["i32"] * 3
    yield "boxes_fp8", product_of_boxes, types, (128, 128, 128, False), {"num_warps": 4, "num_stages": 4}
    types = boxes("fp16", (64, 64), (64, 64), (64, 64)) + ["i32"]
    yield "groups", product_in_groups, types, (64, 64, 64), {"num_warps": 4, "launch_pdl": True}
    types = ["*bf16", "*bf16", "*fp32"] + ["i32"] * 3
    yield "sums", sum_of_products, types, (128, 64), {"num_warps": 8}
    for causal in (False, True):
        types = boxes("fp16", (128, 64), (128, 64), (128, 64), (128, 64)) + ["i32", "fp32"]
        yield "attention_{:d}".format(causal), attend, types, (128, 128, 64, causal), {"num_warps": 8}
    yield "layer_norm", layer_norm, ["*fp16", "*fp32", "*fp32", "*fp16", "i32"], (4096,), {"num_warps": 8}


def compiled(function, types, constants, options):
    names = function.arg_names
    signature = dict(zip(names, types))
    signature.update({n: "constexpr" for n in names[len(types) :]})
    values = dict(zip(names[len(types) :], constants))
    # Pointers and sizes are multiples of 16, as PyTorch's usually are.
    attributes = {
        (i,): [["tt.divisibility", 16]] for i, t in enumerate(types) if t == "i32" or t.startswith("*")
    }
    source = ASTSource(function, signature, values, attributes)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def main(folder):
    for name, function, types, constants, options in cases():
        text = compiled(function, types, constants, options).asm["ptx"]
        with open(os.path.join(folder, name + ".ptx"), "w") as file:
            file.write(text)
        print(name, *[m for m in MARKS if m in text], flush=True)


main(sys.argv[1])
