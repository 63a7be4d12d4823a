# SPDX-License-Identifier: MIT
# Training steps of a small ResNet and a small transformer, fp32 and bf16. They are bound by their launches, not by the GPU:
# the worst case for whoever stands between PyTorch and the driver.
#
# torch_step.py first       seconds of the import with the first step
# torch_step.py serve       orders from standard input, each done by a process of its own, forked before CUDA is used:
#                             time STEPS          a line MODEL MINIMUM MEDIAN for each model, in seconds per step
#                             count MODEL STEPS   so many steps
#                           and, when it has ended, "done PID"
import os
import sys
import time

start = time.perf_counter()
import torch
from torch import nn

device = 'cuda'
WARM = 10


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return torch.relu(x + self.layers(x))


def resnet():
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *[Block(64) for _ in range(6)], nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(64, 10))
    return model, torch.randn(16, 3, 32, 32, device=device)


def transformer():
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.0)
    model = nn.Sequential(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Flatten(), nn.Linear(64 * 256, 10))
    return model, torch.randn(8, 64, 256, device=device)


MODELS = {name + '-' + dtype: (make, dtype) for name, make in (('resnet', resnet), ('transformer', transformer))
          for dtype in ('fp32', 'bf16')}


def make_step(name):
    make, dtype = MODELS[name]
    torch.manual_seed(1)
    model, x = make()
    model.to(device)
    target = torch.randint(0, 10, (x.shape[0],), device=device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        with torch.autocast(device, dtype=torch.bfloat16, enabled=dtype == 'bf16'):
            loss = nn.functional.cross_entropy(model(x), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        torch.cuda.synchronize()

    return step


def time_steps(steps):
    for name in MODELS:
        step = make_step(name)
        for _ in range(WARM):
            step()
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
        times.sort()
        print(name, times[0], times[len(times) // 2])


def obey(order):
    if order[0] == 'time':
        time_steps(int(order[1]))
    else:
        step = make_step(order[1])
        for _ in range(int(order[2])):
            step()


def serve():
    for line in sys.stdin:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            obey(line.split())
            return  # as a program ends: who watches it must see its end
        status = os.waitpid(child, 0)[1]
        print('done' if not status else 'failed', child, flush=True)


if sys.argv[1] == 'first':
    make_step('resnet-fp32')()
    print(time.perf_counter() - start)
else:
    print('ready', flush=True)
    serve()
