# SPDX-License-Identifier: MIT
"""A stream whose kernel has failed is not taken for one that is being captured: the launch must raise."""

import moat_launch
import moat_link
import torch
import triton
import triton.language as tl


@triton.jit
def store(target_ptr, BLOCK: tl.constexpr):
    tl.store(target_ptr + (1 << 40) + tl.arange(0, BLOCK), 1.0)


def main():
    target = torch.zeros(16, device="cuda")
    try:
        store[(1,)](target, BLOCK=16)
    except Exception as why:
        print("raised", type(why).__name__)
    print("capturing", bool(moat_launch._is_capturing(moat_link.driver(), 0)))


main()
