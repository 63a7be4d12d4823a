# SPDX-License-Identifier: MIT
"""torch.compile against the CPU, forward and backward: torch_compiled.py transformer|cnn|paths [MODE]."""

import copy
import sys

import torch
from torch import nn


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.last = nn.Linear(32, 50)

    def forward(self, x):
        return self.last(self.layer(self.embedding(x)))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.last = nn.Conv2d(8, 16, 3, stride=2), nn.Linear(16 * 49, 10)

    def forward(self, x):
        return self.last(torch.relu(self.second(torch.relu(self.norm(self.first(x))))).flatten(1))


def step(call, model, x, y):
    model.zero_grad()
    loss = nn.functional.cross_entropy(call(x).flatten(0, -2), y.flatten())
    loss.backward()
    return loss.item(), [p.grad.detach().cpu().clone() for p in model.parameters()]


def paths(mode):
    """Graphs of functions that run in one order and then in another: a graph is recorded behind one that is
    replayed, whose results are still used."""

    def first(x):
        return (x @ x).relu() + 1

    def second(x):
        return (x * 3).softmax(1) @ x

    def third(x):
        return x.sum(1, keepdim=True) - x

    f, g, h = (torch.compile(function, mode=mode) for function in (first, second, third))
    for n in range(6):
        x = torch.randn(16, 16)
        torch.compiler.cudagraph_mark_step_begin()
        results = [f(x.cuda())]
        results.append((g if n < 3 else h)(results[0]))
        a = first(x)
        for found, expected in zip(results, (a, (second if n < 3 else third)(a))):
            if not torch.allclose(found.cpu(), expected, rtol=1e-4, atol=1e-4):
                print("WRONG", n)
                return True
    print("right")
    return False


def main(which, mode=None):
    torch.manual_seed(0)
    if which == "paths":
        return paths(mode)
    model, x, y = {
        "transformer": lambda: (Transformer(), torch.randint(0, 50, (2, 16)), torch.randint(0, 50, (2, 16))),
        "cnn": lambda: (Cnn(), torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))),
    }[which]()
    device = copy.deepcopy(model).cuda()
    compiled = torch.compile(device, mode=mode)
    worst = 0.0
    for _ in range(3):
        expected, gradients = step(model, model, x, y)
        loss, found = step(compiled, device, x.cuda(), y.cuda())
        assert abs(loss - expected) < 1e-4, (loss, expected)
        for a, b in zip(found, gradients):
            worst = max(worst, float((a - b).abs().max()))
    print("right" if worst < 1e-4 else "WRONG", "worst difference of a gradient:", worst)
    return worst >= 1e-4


sys.exit(main(*sys.argv[1:]))
