# SPDX-License-Identifier: MIT
# canary_torch.py STEPS: seconds of a training step in fp32, one line for each model: a small ResNet, a small transformer, an
# MLP and an LSTM.
import sys
import time

import torch
from torch import nn

steps = int(sys.argv[1])
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


def resnet():
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *[Block(64) for _ in range(6)], nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(64, CLASSES))
    return model, torch.randn(64, 3, 32, 32, device=device)


def transformer():
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.0)
    model = nn.Sequential(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Flatten(),
                          nn.Linear(64 * 256, CLASSES))
    return model, torch.randn(32, 64, 256, device=device)


def mlp():
    widths = [1024, 4096, 4096, 4096, 1024]
    layers = [part for a, b in zip(widths, widths[1:]) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(widths[-1], CLASSES)), torch.randn(512, widths[0], device=device)


def lstm():
    return Last(256), torch.randn(64, 100, 256, device=device)


def measure(make):
    torch.manual_seed(1)
    model, x = make()
    model.to(device)
    target = torch.randint(0, CLASSES, (x.shape[0],), device=device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        loss = nn.functional.cross_entropy(model(x), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    for _ in range(10):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    print(make.__name__, (time.perf_counter() - begin) / steps, flush=True)


for model in resnet, transformer, mlp, lstm:
    measure(model)
