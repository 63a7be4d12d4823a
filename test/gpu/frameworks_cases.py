# SPDX-License-Identifier: MIT
"""Programs on frameworks whose results are compared with and without moat: frameworks_cases.py CASE.

  --save FILE      the results, as numpy's .npz, of one round of the program's work
  --times FILE     and the kernels of further rounds, by name: launches and microseconds
  --rounds N       so many of them (1)
  --lock FILE      shared by processes in their first rounds, and held by one alone in its further rounds, so
                   that these have the GPU for themselves

test/gpu/frameworks_check.py runs them. A case is a function that prepares, and returns another one that works
and returns its results by name. Whatever can differ between two runs, such as a choice by measured time, is
turned off."""

import argparse
import fcntl
import json
import os
import sys

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def check(right, what):
    if not right:
        print("wrong:", what)
        sys.exit(2)


# --- PyTorch ------------------------------------------------------------------------------------------------


def deterministic():
    import torch

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    return torch


def cnn(torch):
    """A model, a batch and its labels."""
    from torch import nn

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(32 * 16, 64), nn.GELU(), nn.Linear(64, 10),
    ).cuda()  # fmt: skip
    return model, torch.randn(32, 3, 16, 16).cuda(), torch.randint(0, 10, (32,)).cuda()


def transformer(torch):
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(500, 128)
            layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.out = nn.Linear(128, 10)

        def forward(self, x):
            return self.out(self.layers(self.words(x)).mean(1))

    model = Model().cuda()
    return model, torch.randint(0, 500, (16, 48)).cuda(), torch.randint(0, 10, (16,)).cuda()


def training(make, compiled=False, steps=4):
    """Steps of training, then inference."""
    torch = deterministic()
    model, x, labels = make(torch)
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def work():
        model.train()
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(run(x), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        model.eval()
        with torch.no_grad():
            answer = run(x)
        weights = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        return {
            "losses": torch.stack(losses).cpu().numpy(),
            "answer": answer.cpu().numpy(),
            "weights": weights.cpu().numpy(),
        }

    return work


@case
def torch_cnn():
    return training(cnn)


@case
def torch_transformer():
    return training(transformer)


@case
def torch_compile_cnn():
    return training(cnn, compiled=True)


@case
def torch_compile_transformer():
    return training(transformer, compiled=True)


# --- Triton -------------------------------------------------------------------------------------------------

triton = None
if sys.argv[1:2] and sys.argv[1].startswith("triton"):
    import triton
    import triton.language as tl

if triton is not None:

    @triton.jit
    def add_kernel(x, y, out, n, block: tl.constexpr):
        at = tl.program_id(0) * block + tl.arange(0, block)
        inside = at < n
        tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)

    @triton.jit
    def add_unmasked(x, y, out, n, block: tl.constexpr):
        at = tl.program_id(0) * block + tl.arange(0, block)
        inside = at < n
        tl.store(out + at, tl.load(x + at) + tl.load(y + at, inside), inside)  # the mask of x is missing

    @triton.jit
    def softmax_kernel(x, out, columns, stride, block: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        at = tl.arange(0, block)
        inside = at < columns
        values = tl.load(x + row * stride + at, inside, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, 0))
        tl.store(out + row * stride + at, powers / tl.sum(powers, 0), inside)

    @triton.jit
    def matmul_kernel(a, b, c, m, n, k, side: tl.constexpr, deep: tl.constexpr):
        rows = tl.program_id(0) * side + tl.arange(0, side)
        columns = tl.program_id(1) * side + tl.arange(0, side)
        inner = tl.arange(0, deep)
        total = tl.zeros((side, side), dtype=tl.float32)
        for i in range(0, k, deep):
            here = (i + inner) < k
            left = tl.load(a + rows[:, None] * k + (i + inner)[None, :],
                           (rows < m)[:, None] & here[None, :], other=0.0)  # fmt: skip
            right = tl.load(b + (i + inner)[:, None] * n + columns[None, :],
                            here[:, None] & (columns < n)[None, :], other=0.0)  # fmt: skip
            total += tl.dot(left, right)
        tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16),
                 (rows < m)[:, None] & (columns < n)[None, :])  # fmt: skip

    @triton.jit
    def histogram_kernel(x, counts, n, bins: tl.constexpr, block: tl.constexpr):
        at = tl.program_id(0) * block + tl.arange(0, block)
        inside = at < n
        value = tl.load(x + at, inside, other=0)
        tl.atomic_add(counts + value % bins, 1, inside)


@case
def triton_kernels():
    torch = deterministic()
    n = 1 << 20
    x, y = torch.randn(n + 7).cuda(), torch.randn(n + 7).cuda()
    table = torch.randn(1000, 777).cuda()
    a, b = torch.randn(500, 330).half().cuda(), torch.randn(330, 410).half().cuda()
    numbers = torch.randint(0, 1 << 20, (n,), dtype=torch.int32).cuda()

    def work():
        out, soft = torch.empty_like(x), torch.empty_like(table)
        c = torch.empty(500, 410, dtype=torch.float16, device="cuda")
        counts = torch.zeros(64, dtype=torch.int32, device="cuda")
        add_kernel[(triton.cdiv(n + 7, 1024),)](x, y, out, n + 7, block=1024)
        softmax_kernel[(1000,)](table, soft, 777, 777, block=1024)
        matmul_kernel[(triton.cdiv(500, 64), triton.cdiv(410, 64))](a, b, c, 500, 410, 330, side=64, deep=32)
        histogram_kernel[(triton.cdiv(n, 1024),)](numbers, counts, n, bins=64, block=1024)
        results = {"add": out, "softmax": soft, "matmul": c, "histogram": counts}
        results = {name: value.cpu().numpy() for name, value in results.items()}
        check(int(results["histogram"].sum()) == n, "histogram")
        check(abs(float(results["softmax"].sum()) - 1000) < 0.1, "softmax")
        check(bool((results["add"] == (x + y).cpu().numpy()).all()), "add")
        return results

    return work


def triton_masks(kernel):
    torch = deterministic()
    # No multiple of the block, whose end is in no other tensor's place.
    x, y = torch.ones(1000, device="cuda"), torch.ones(1000, device="cuda")
    out = torch.zeros(1000, device="cuda")

    def work():
        kernel[(1,)](x, y, out, 1000, block=1024)
        return {"out": out.cpu().numpy()}

    return work


@case
def triton_good():
    return triton_masks(add_kernel)


@case
def triton_bad():
    return triton_masks(add_unmasked)


# --- kernels in CUDA C++ ------------------------------------------------------------------------------------

SOURCE = """
extern "C" __global__ void scale(float *x, float factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= factor;
}
extern "C" __global__ void scale_past(float *x, float factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        x[i] *= factor;
}
extern "C" __global__ void gather(const float *from, const int *at, float *to, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = from[at[i]];
}
extern "C" __global__ void sums(const float *x, float *out, int n)
{
    __shared__ float part[256];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 256)
        sum += x[blockIdx.x * n + i];
    part[threadIdx.x] = sum;
    for (int step = 128; step; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
    }
    if (!threadIdx.x)
        out[blockIdx.x] = part[0];
}
"""


def torch_source(name):
    torch = deterministic()
    x = torch.ones(1024, device="cuda")
    kernel = torch.cuda._compile_kernel(SOURCE, name)

    def work():
        kernel((5, 1, 1), (256, 1, 1), (x, 2.0, 1024))
        return {"x": x.cpu().numpy()}

    return work


@case
def torch_source_good():
    return torch_source("scale")


@case
def torch_source_bad():
    return torch_source("scale_past")


# --- CuPy ---------------------------------------------------------------------------------------------------


@case
def cupy_raw():
    import cupy
    import numpy

    kernels = {name: cupy.RawKernel(SOURCE, name) for name in ("scale", "gather", "sums")}
    random = numpy.random.RandomState(1)
    x = cupy.asarray(random.rand(1 << 20).astype("f4"))
    at = cupy.asarray(random.randint(0, 1 << 20, 1 << 20).astype("i4"))

    def work():
        y, to, out = x.copy(), cupy.empty_like(x), cupy.empty(1024, dtype="f4")
        kernels["scale"](((1 << 20) // 256,), (256,), (y, cupy.float32(1.5), 1 << 20))
        kernels["gather"]((500,), (256,), (y, at, to, 1 << 20))
        kernels["sums"]((1024,), (256,), (to, out, 1024))
        return {"scale": cupy.asnumpy(y), "gather": cupy.asnumpy(to), "sums": cupy.asnumpy(out)}

    return work


@case
def cupy_arrays():
    import cupy
    import numpy

    random = numpy.random.RandomState(1)
    x = cupy.asarray(random.rand(1000, 1000).astype("f4"))
    product = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x * y + 1", "product")
    largest = cupy.ReductionKernel("float32 x", "float32 y", "x", "max(a, b)", "y = a", "0", "largest")

    def work():
        y = cupy.sin(x) + cupy.sqrt(x) * 2
        z = product(x, y)
        results = {
            "elementwise": y, "product": z, "largest": largest(z, axis=1), "sum": z.sum(axis=0),
            "mean": z.mean(), "where": cupy.where(z > 1.5, z, x), "transposed": cupy.ascontiguousarray(z.T),
            "matmul": x @ y, "sort": cupy.sort(z.ravel()), "taken": z.ravel()[::7].copy(),
        }  # fmt: skip
        return {name: cupy.asnumpy(value) for name, value in results.items()}

    return work


def cupy_source(name):
    import cupy

    kernel = cupy.RawKernel(SOURCE, name)
    x = cupy.ones(1024, dtype="f4")

    def work():
        kernel((5,), (256,), (x, cupy.float32(2), 1024))
        return {"x": cupy.asnumpy(x)}

    return work


@case
def cupy_good():
    return cupy_source("scale")


@case
def cupy_bad():
    return cupy_source("scale_past")


# --- JAX ----------------------------------------------------------------------------------------------------


@case
def jax_jit():
    import jax
    import jax.numpy as jnp
    import numpy

    check(jax.default_backend() == "gpu", "JAX does not use the GPU")

    def loss(weights, x, y):
        hidden = jnp.tanh(x @ weights[0] + weights[1])
        out = hidden @ weights[2]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(out), y[:, None], axis=1))

    @jax.jit
    def step(weights, x, y):
        value, slopes = jax.value_and_grad(loss)(weights, x, y)
        return value, [w - 0.1 * s for w, s in zip(weights, slopes)]

    random = numpy.random.RandomState(1)
    x = jnp.asarray(random.randn(256, 128).astype("f4"))
    y = jnp.asarray(random.randint(0, 10, 256))
    start = [jnp.asarray(random.randn(*s).astype("f4") * 0.1) for s in ((128, 256), (256,), (256, 10))]

    def work():
        weights, losses = start, []
        for _ in range(5):
            value, weights = step(weights, x, y)
            losses.append(value)
        ordered = jnp.sort(x.ravel())
        results = {"losses": jnp.stack(losses), "first": weights[0], "last": weights[2], "sort": ordered}
        return {name: numpy.asarray(value) for name, value in results.items()}

    return work


# --- running them -------------------------------------------------------------------------------------------


def torch_trace(work, folder):
    """Events of one round, as PyTorch's profiler sees them: also those of other frameworks."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        torch.cuda.synchronize()
    path = os.path.join(folder, "trace.json")
    profiler.export_chrome_trace(path)
    with open(path) as trace:
        return [e for e in json.load(trace)["traceEvents"] if e.get("cat") == "kernel"]


def jax_trace(work, folder):
    """The same by JAX's profiler."""
    import glob
    import gzip

    import jax

    with jax.profiler.trace(folder, create_perfetto_trace=True):
        work()
    (path,) = glob.glob(os.path.join(folder, "**", "perfetto_trace.json.gz"), recursive=True)
    with gzip.open(path) as trace:
        events = json.load(trace)["traceEvents"]
    named = [e for e in events if e.get("ph") == "M" and "name" in e.get("args", {})]
    gpus = {e["pid"] for e in named if e["name"] == "process_name" and "GPU" in e["args"]["name"]}
    streams = {(e["pid"], e["tid"]) for e in named
               if e["name"] == "thread_name" and e["args"]["name"].startswith("Stream")}  # fmt: skip
    found = [e for e in events if e.get("pid") in gpus and (e["pid"], e.get("tid")) in streams]
    return [e for e in found if not e.get("name", "").startswith(("Memcpy", "Memset", "memcpy", "memset"))]


def kernel_times(work, tracers):
    """The kernels of one round by name: [launches, microseconds]. None if no tracer works."""
    import tempfile

    for tracer in tracers:
        try:
            with tempfile.TemporaryDirectory() as folder:
                events = [e for e in tracer(work, folder) if e.get("ph") == "X"]
        except Exception as why:  # the results count without times, too
            print("no times by {}: {!r}".format(tracer.__name__, why))
            continue
        times = {}
        for event in events:
            row = times.setdefault(event["name"], [0, 0.0])
            row[0] += 1
            row[1] += float(event["dur"])
        if times:
            return times
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--save")
    parser.add_argument("--times")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--lock")
    options = parser.parse_args()
    lock = open(options.lock, "w") if options.lock else None
    if lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
    work = CASES[options.case]()
    results = work()
    if options.save:
        import numpy

        numpy.savez(options.save, **results)
    if options.times:
        if lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
        is_jax = options.case.startswith("jax")
        times = kernel_times(
            lambda: [work() for _ in range(options.rounds)],
            (torch_trace, jax_trace) if is_jax else (torch_trace,),
        )
        if lock:
            lock.close()
        if times:
            with open(options.times, "w") as out:
                json.dump(times, out)
    print("done")


if __name__ == "__main__":
    main()
