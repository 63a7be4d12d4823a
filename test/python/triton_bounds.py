# SPDX-License-Identifier: MIT
"""A kernel that forgets its mask, and its correct twin: triton_bounds.py bad|good load|store|before."""

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


def main(kind, where):
    weights = torch.ones(25, 40, device="cuda")  # line of the allocation
    result = torch.empty_like(weights)
    scale[(1,)](weights, result, 1000, where, kind == "bad", BLOCK=1024)  # line of the launch
    print("sum", float(result.sum()))


main(sys.argv[1], sys.argv[2])
