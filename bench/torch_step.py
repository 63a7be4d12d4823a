# SPDX-License-Identifier: MIT
# torch_step.py STEPS: seconds of a training step, one line for each model and type: a small ResNet and a small transformer,
# fp32 and bf16; and of the import with the first step.
import sys
import time

start = time.time()
import torch
from torch import nn

steps = int(sys.argv[1])
device = 'cuda'


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
    return model, torch.randn(64, 3, 32, 32, device=device)


def transformer():
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.0)
    model = nn.Sequential(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Flatten(), nn.Linear(64 * 256, 10))
    return model, torch.randn(32, 64, 256, device=device)


def measure(name, make, dtype):
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

    step()
    torch.cuda.synchronize()
    if not measure.first:
        measure.first = True
        print('import-and-first-step', time.time() - start)
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    begin = time.time()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    print(name + '-' + dtype, (time.time() - begin) / steps)


measure.first = False
for dtype in 'fp32', 'bf16':
    measure('resnet', resnet, dtype)
    measure('transformer', transformer, dtype)
