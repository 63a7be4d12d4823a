# SPDX-License-Identifier: MIT
"""Functions for torch.compile in which kernels of Triton's run, each with an error and its correct
twin: compiled_twins.py CASE bad|good. Behind `error:` and `launch:` stand the cases
whose reports name that line."""

import sys

import torch
import triton
import triton.language as tl

BAD = len(sys.argv) > 2 and sys.argv[2] == "bad"


@triton.jit
def silu(x_ptr, out_ptr, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        x = tl.load(x_ptr + at, mask=at < n)
    else:
        x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x * tl.sigmoid(x), mask=at < n)


def expected(x):
    return torch.nn.functional.silu(x.cpu() * 2 + 1).sum(-1)


@torch.compile(fullgraph=True)
def doubled(x):
    y = x * 2 + 1
    out = torch.empty_like(y)
    silu[(2,)](y, out, y.numel(), not BAD, 256)
    return out.sum(-1)


def direct():
    """A kernel that the compiled function launches: Inductor copies it into a file of its own."""
    x = torch.randn(10, 33, device="cuda")
    found = doubled(x).cpu()
    if not BAD:
        torch.testing.assert_close(found, expected(x), rtol=1e-4, atol=1e-4)


@torch.library.triton_op("twins::silu", mutates_args={})
def silu_op(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    torch.library.wrap_triton(silu)[(2,)](x, out, x.numel(), not BAD, 256)
    return out


silu_op.register_autograd(
    lambda ctx, grad: grad * torch.ops.aten.silu_backward(torch.ones_like(grad), ctx.saved_tensors[0]),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)


def model():
    """An operator of the program's own, in a model with a backward pass."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(20, 37).cuda()
    x = torch.randn(9, 20, device="cuda")
    torch.compile(lambda x: silu_op(layer(x)).square().mean(), fullgraph=True)(x).backward()
    found = layer.weight.grad.cpu()
    layer = layer.cpu()
    layer.weight.grad = None
    torch.nn.functional.silu(layer(x.cpu())).square().mean().backward()
    if not BAD:
        torch.testing.assert_close(found, layer.weight.grad, rtol=1e-3, atol=1e-5)


@triton.jit
def take(ids_ptr, table_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(table_ptr + tl.load(ids_ptr + row) * columns + at, mask=at < columns)  # error: opaque
    tl.store(out_ptr + row * columns + at, x, mask=at < columns)


@torch.library.custom_op("twins::rows", mutates_args=())
def rows(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    out = table.new_empty(ids.numel(), table.shape[1])
    take[(ids.numel(),)](ids, table, out, table.shape[1], 64)  # launch: opaque
    return out


@rows.register_fake
def _(table, ids):
    return table.new_empty(ids.numel(), table.shape[1])


def opaque():
    """An operator that torch.compile does not look into, with an index that is too large for the table."""
    table, ids = torch.randn(30, 40, device="cuda"), torch.tensor([0, 3, 29 if BAD else 28], device="cuda")
    found = torch.compile(lambda table, ids: rows(table * 2, ids + 1).relu())(table, ids)
    if not BAD:
        torch.testing.assert_close(found, (table * 2)[ids + 1].relu())


def resized():
    """A tensor whose storage has become smaller than its shape says: Inductor's own kernel leaves it."""
    base = torch.randn(1000, device="cuda")
    view = base.view(10, 100)
    base.untyped_storage().resize_(4 * (800 if BAD else 1000))
    torch.compile(lambda x: x + 1.5)(view)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    print("done")
