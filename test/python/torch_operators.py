# SPDX-License-Identifier: MIT
"""PyTorch's operators on the CPU device against the CPU: tensors, copies, streams, events, graphs, models."""

import copy
import sys

import torch
from torch import nn

# PyTorch 2.15 accepts another kernel from Python where there is one; 2.11 refuses it by default.
DEFAULTS = torch.library.Library.impl.__kwdefaults__
if "allow_override" in DEFAULTS:
    DEFAULTS["allow_override"] = False
LIBRARY = torch.library.Library("aten", "IMPL")
LIBRARY.impl("digamma", lambda x: x.add(40), "CUDA")  # before the first use of CUDA


def same(a, b, near=1e-5):
    return torch.allclose(a.detach().cpu(), b.detach().cpu(), atol=near, rtol=near)


def test_factories():
    torch.manual_seed(3)
    x = torch.randn(4, 5, device="cuda")
    torch.manual_seed(3)
    y = torch.randn(4, 5, device="cuda")
    return torch.equal(x, y) and torch.arange(10, device="cuda").sum().item() == 45 and x.std().item() > 0.1


def test_elementwise():
    x = torch.randn(50, 60)
    c = x.cuda()
    functions = (
        torch.exp,
        torch.relu,
        lambda t: t.t() * 2 + 1,
        lambda t: t[::2, 1:7].clone(),
        lambda t: t.half().float(),
    )
    return all(same(f(c), f(x)) for f in functions)


def test_numbers():
    bits = torch.arange(256, dtype=torch.int64).to(torch.uint8)
    c = bits.cuda()
    functions = (
        lambda t: t & 0x7C,
        lambda t: (t | 1) ^ 3,
        lambda t: t + 0.5,
        lambda t: t // 3,
        lambda t: 7 - t.int(),
    )
    results = [(f(c).cpu(), f(bits)) for f in functions]
    return all(torch.equal(a, b) and a.dtype == b.dtype for a, b in results)


def test_reductions():
    x = torch.randn(50, 60)
    c = x.cuda()
    functions = (torch.sum, lambda t: t.mean(1), lambda t: t.sort()[0], lambda t: t.cumsum(0))
    return all(same(f(c), f(x), 1e-4) for f in functions) and torch.equal(c.argmax(1).cpu(), x.argmax(1))


def test_sums_in_16_bits():
    """A GPU adds up in 32 bits. The error is counted in units in the last place of the largest element."""

    def errors(function, dtype, *shapes):
        torch.manual_seed(5)
        values = [(torch.randn(s) / 10).to(dtype) for s in shapes]
        gradients = []
        for t, device in ((dtype, "cuda"), (torch.float64, "cpu")):
            leaves = [v.to(t).to(device).requires_grad_() for v in values]
            result = function(*leaves)
            result.backward((torch.arange(result.numel()) % 7 / 8).reshape(result.shape).to(t).to(device))
            gradients.append([x.grad.cpu().double() for x in leaves])
        unit = torch.finfo(dtype).eps
        return [float((a - b).abs().max() / b.abs().max() / unit) for a, b in zip(*gradients)]

    rows = torch.arange(3000) % 4

    def norm(x, w, b):
        return nn.functional.layer_norm(x, (64,), w, b)

    def words(table):
        return nn.functional.embedding(rows.to(table.device), table)

    found = []
    for dtype in (torch.half, torch.bfloat16):
        found += errors(norm, dtype, (1151, 64), (64,), (64,)) + errors(words, dtype, (4, 64))
    x = torch.ones(4, dtype=torch.half, device="cuda")
    _, mean, scale = torch.ops.aten.native_layer_norm(x, [4], None, None, 1e-5)
    types = [mean.dtype, scale.dtype, x.prod().dtype, x.prod(dtype=torch.float32).dtype]
    wide = torch.ones(4, device="cuda")
    back = torch.ops.aten.native_layer_norm_backward(x, x, [4], mean, scale, wide, wide, [True] * 3)
    types += [b.dtype for b in back]
    right = [torch.float32] * 2 + [torch.half] + [torch.float32] + [torch.half] + [torch.float32] * 2
    return max(found) < 1.5 and types == right


def test_kernels_of_the_program():
    """A kernel that a program registers is called, whether moat's are registered before it or after it."""
    x = torch.ones(4, device="cuda")
    LIBRARY.impl("lgamma", lambda x: x.add(50), "CUDA")
    return x.digamma().tolist() == [41.0] * 4 and x.lgamma().tolist() == [51.0] * 4


def test_indexing():
    x = torch.randn(50, 60)
    c = x.cuda()
    rows = torch.tensor([3, 1, 4])
    chosen = same(c[c > 0], x[x > 0]) and same(c[rows.cuda()], x[rows])
    return chosen and c.nonzero().size() == x.nonzero().size()


def test_in_place():
    x = torch.zeros(8, 8, device="cuda")
    x[2:4, ::2] += 3
    x.t()[1].fill_(7)
    expected = torch.zeros(8, 8)
    expected[2:4, ::2] += 3
    expected.t()[1].fill_(7)
    return torch.equal(x.cpu(), expected)


def test_outputs():
    a, b = torch.randn(6, 7, device="cuda"), torch.randn(7, 8, device="cuda")
    out = torch.empty(0, device="cuda")
    torch.mm(a, b, out=out)
    return same(out, a.cpu() @ b.cpu())


def test_streams_and_events():
    side, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    x = torch.ones(1000, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 2
        event.record()
    event.synchronize()
    torch.cuda.current_stream().wait_stream(side)
    return float(y.sum()) == 2000


def test_copies():
    pinned = torch.randn(1000).pin_memory()
    c = pinned.to("cuda", non_blocking=True)
    d = torch.empty_like(c).copy_(c)
    e = torch.empty(1000, dtype=torch.float64, device="cuda").copy_(c)
    torch.cuda.synchronize()
    return torch.equal(d.cpu(), pinned) and torch.equal(e.cpu(), pinned.double())


def test_graph():
    a = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        b = a * 2 + 1
    a.fill_(5)
    graph.replay()
    torch.cuda.synchronize()
    return b.tolist() == [11.0] * 4


def trains(model, x, near=1e-4):
    """Whether a step of training gives the same losses and gradients on both."""
    twin = copy.deepcopy(model).cuda()
    results = []
    for m, data in ((model, x), (twin, x.cuda())):
        out = m(data)
        out = out[0] if isinstance(out, tuple) else out
        loss = out.float().square().mean()
        loss.backward()
        torch.optim.Adam(m.parameters()).step()
        results.append([loss] + [p.grad for p in m.parameters()] + list(m.parameters()))
    return all(same(a, b, near) for a, b in zip(*results))


def test_convolution():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    return trains(model, torch.randn(2, 3, 16, 16))


def test_transformer():
    model = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    return trains(model, torch.randn(2, 7, 32), 1e-3)


def test_lstm():
    return trains(nn.LSTM(8, 16, 2), torch.randn(5, 3, 8))


def test_gru():
    return trains(nn.GRU(8, 16, 2), torch.randn(5, 3, 8))


def main():
    wrong = 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            torch.manual_seed(11)
            right = test()
            print(name[5:], "ok" if right else "WRONG", flush=True)
            wrong += not right
    return wrong > 0


sys.exit(main())
