# SPDX-License-Identifier: MIT
# Training steps of small models in PyTorch. A model is named like resnet-bf16-16: with 16 examples in a
# batch. With few of them a step is bound by its launches, not by the GPU: the worst case for a layer between
# PyTorch and the driver.
#
# torch_step.py first       seconds of the import with the first step
# torch_step.py serve       orders from standard input. begin: forks a process, before CUDA is used, that
#                           takes the following orders up to end; "begun" and "done PID" are the answers:
#                             MODEL STEPS   so many steps; answered with the seconds of one, their median
import os
import sys
import time

start = time.perf_counter()
import torch
from torch import nn

device = 'cuda'
CLASSES = 10


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return torch.relu(x + self.layers(x))


class Last(nn.Module):
    """An LSTM, of which the last output counts."""

    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(width, 2 * width, 2, batch_first=True)
        self.out = nn.Linear(2 * width, CLASSES)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


def resnet(batch):
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *[Block(64) for _ in range(6)],
                          nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(64, CLASSES))
    return model, torch.randn(batch, 3, 32, 32, device=device)


def transformer(batch):
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.0)
    model = nn.Sequential(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Flatten(),
                          nn.Linear(64 * 256, CLASSES))
    return model, torch.randn(batch, 64, 256, device=device)


def mlp(batch):
    widths = [1024, 4096, 4096, 4096, 1024]
    layers = [part for a, b in zip(widths, widths[1:]) for part in (nn.Linear(a, b), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(widths[-1], CLASSES))
    return model, torch.randn(batch, widths[0], device=device)


def lstm(batch):
    return Last(256), torch.randn(batch, 100, 256, device=device)


MAKERS = {make.__name__: make for make in (resnet, transformer, mlp, lstm)}


def make_step(name):
    maker, dtype, batch = name.split('-')
    torch.manual_seed(1)
    model, x = MAKERS[maker](int(batch))
    model.to(device)
    target = torch.randint(0, CLASSES, (x.shape[0],), device=device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        with torch.autocast(device, dtype=torch.bfloat16, enabled=dtype == 'bf16'):
            loss = nn.functional.cross_entropy(model(x), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        torch.cuda.synchronize()

    return step


def median_step(step, count):
    step()  # after a pause caches are cold, and what moat keeps for half a second is gone
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    times.sort()
    return times[len(times) // 2]


def obey():
    print('begun', flush=True)
    steps = {}
    for line in iter(sys.stdin.readline, 'end\n'):
        name, count = line.split()
        if name not in steps:
            steps[name] = make_step(name)
        print(name, median_step(steps[name], int(count)), flush=True)


# No order is read before the previous one was answered: parent and child never buffer each other's lines.
def serve():
    for line in iter(sys.stdin.readline, ''):
        child = os.fork()
        if not child:
            obey()
            return  # exits normally, so that a watching tool sees the end
        status = os.waitpid(child, 0)[1]
        if status:
            sys.exit('torch_step.py: the process has ended with status %d' % status)
        print('done', child, flush=True)


if sys.argv[1] == 'first':
    make_step('resnet-fp32-16')()
    print(time.perf_counter() - start)
else:
    print('ready', flush=True)
    serve()
