# SPDX-License-Identifier: MIT
"""A kernel that forgets its mask, and its correct twin: triton_bounds.py bad|good load|store|before. With
`described` a descriptor has more rows than its tensor."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def scale(source_ptr, target_ptr, n, WHERE: tl.constexpr, BAD: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    if WHERE == "load" and BAD:
        values = tl.load(source_ptr + offsets)  # line of the bad load
    elif WHERE == "before" and BAD:
        values = tl.load(source_ptr + offsets - 4, mask=mask)
    else:
        values = tl.load(source_ptr + offsets, mask=mask)
    if WHERE == "store" and BAD:
        tl.store(target_ptr + offsets, values * 2)
    else:
        tl.store(target_ptr + offsets, values * 2, mask=mask)


@triton.jit
def double(source_ptr, target_ptr, rows, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(source_ptr, shape=[rows, N], strides=[N, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(target_ptr, shape=[64, N], strides=[N, 1], block_shape=[BM, BN])
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    target.store(at, source.load(at) * 2)  # line of the bad descriptor's load


def described(kind):
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    table, result = torch.ones(48, 128, device="cuda"), torch.zeros(64, 128, device="cuda")
    double[(2, 2)](table, result, 64 if kind == "bad" else 48, 128, 32, 64)
    print("sum", float(result.sum()))


def main(kind, where):
    weights = torch.ones(25, 40, device="cuda")  # line of the allocation
    result = torch.empty_like(weights)
    scale[(1,)](weights, result, 1000, where, kind == "bad", BLOCK=1024)  # line of the launch
    print("sum", float(result.sum()))


described(sys.argv[1]) if sys.argv[2] == "described" else main(sys.argv[1], sys.argv[2])
