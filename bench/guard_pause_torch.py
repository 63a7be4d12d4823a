# SPDX-License-Identifier: MIT
# guard_pause_torch.py SECONDS STEP...: training steps of a small transformer that are bound by their
# launches, in turns with moat at work and with moat paused (moat.h), in this process. Steps:
#   eager      PyTorch's own kernels
#   compiled   torch.compile: Triton's kernels, and PyTorch's for products of matrices
#   triton     200 launches of a small Triton kernel and a wait
# For each one line: its name, what moat adds to a paused step in percent (the median of the pairs of turns
# and its 95 % interval, by their order), the number of pairs, and milliseconds of a paused step. Status 77:
# moat cannot pause here.
import ctypes
import math
import sys
import time

import torch

TURN = 3  # steps


class Calls(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("block_made", ctypes.c_void_p), ("block_gone", ctypes.c_void_p),
                ("errors", ctypes.c_void_p), ("pause", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int))]


def pause_function():
    try:
        return Calls.in_dll(ctypes.CDLL("libcuda.so.1"), "moat_calls").pause
    except (OSError, ValueError):
        return None


def transformer(compiled):
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    layers = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    model = torch.nn.Sequential(layers, torch.nn.Flatten(), torch.nn.Linear(32 * 128, 10)).cuda()
    x, labels = torch.randn(4, 32, 128).cuda(), torch.randint(0, 10, (4,)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run = torch.compile(model) if compiled else model

    def step():
        loss = torch.nn.functional.cross_entropy(run(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()

    return step


def triton_step():
    # Triton reads a kernel's source from a file.
    from guard_pause_kernel import scale

    x, y = torch.randn(5000).cuda(), torch.empty(5000, device="cuda")

    def step():
        for _ in range(200):
            scale[(20,)](x, y, 5000, block=256)
        torch.cuda.synchronize()

    return step


STEPS = {"eager": lambda: transformer(False), "compiled": lambda: transformer(True), "triton": triton_step}


def turn(step):
    begin = time.perf_counter()
    for _ in range(TURN):
        step()
    return (time.perf_counter() - begin) / TURN


def measure(step, pause, seconds):
    """Percent that moat adds, for each pair of turns, and the seconds of paused steps."""
    added, paused_steps = [], []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(added) < 10:
        took = [0, 0]
        for k in range(2):  # each of the two comes first in every other pair
            paused = (k + len(added)) % 2
            pause(paused)
            took[paused] = turn(step)
        added.append(100 * (took[0] - took[1]) / took[1])
        paused_steps.append(took[1])
    pause(0)
    return sorted(added), sorted(paused_steps)


def main():
    seconds = float(sys.argv[1])
    torch.cuda.init()
    pause = pause_function()
    if pause is None or not pause(1) or not pause(0):
        print("moat cannot pause here", file=sys.stderr)
        sys.exit(77)
    for name in sys.argv[2:]:
        step = STEPS[name]()
        for _ in range(3):  # compiles
            step()
        for paused in (1, 0):
            pause(paused)
            turn(step)
        added, steps = measure(step, pause, seconds)
        n = len(added)
        width = int(0.98 * math.sqrt(n)) + 1
        low, high = max(0, n // 2 - width), min(n - 1, n // 2 + width)
        print("%s %.2f %.2f %.2f %d %.3f" % (
            name, added[n // 2], added[low], added[high], n, 1000 * steps[n // 2]), flush=True)


main()
