# SPDX-License-Identifier: MIT
"""Small programs on frameworks: frameworks.py CASE. Each checks its own result and exits with status 0, or
with 2 if it is wrong. test/gpu/frameworks.sh runs them with and without moat."""

import ctypes
import sys


def check(right, what):
    if not right:
        print("wrong:", what)
        sys.exit(2)


def copy_past_end(pointer, size, excess):
    """Copies `size` and `excess` bytes to a buffer of `size`. Returns what the driver says."""
    copy = ctypes.CDLL("libcuda.so.1").cuMemcpyHtoD_v2
    copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    return copy(pointer, ctypes.create_string_buffer(size + excess), size + excess)


def overflow(pointer, size):
    """Only the second copy is wrong."""
    check(copy_past_end(pointer, size, 0) == 0, "the correct copy")
    print("result", copy_past_end(pointer, size, 8))


def torch_train():
    import torch
    from torch import nn

    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(16 * 64, 64), nn.GELU(), nn.Linear(64, 10),
    ).cuda()
    encoder = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).cuda()
    parameters = list(model.parameters()) + list(encoder.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=3e-3)
    images, labels = torch.randn(64, 3, 16, 16, device="cuda"), torch.randint(0, 10, (64,), device="cuda")
    words = torch.randn(8, 24, 32, device="cuda")
    first = last = None
    side = torch.cuda.Stream()
    for step in range(30):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=step % 2 == 1):
            loss = nn.functional.cross_entropy(model(images), labels)
            loss = loss + encoder(words).float().pow(2).mean() / 10
        loss.backward()
        optimizer.step()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # memory that another stream uses when it goes
            shadow = images * 2
            shadow.record_stream(torch.cuda.current_stream())
        del shadow
        last = loss.item()
        first = last if first is None else first
    host = torch.randn(1 << 16).pin_memory()
    back = host.to("cuda", non_blocking=True).sort().values.cpu()
    check(torch.equal(back, host.sort().values), "sort")
    check(last < first / 2, "the loss does not fall: {} to {}".format(first, last))
    print("trained")


def torch_overflow():
    import torch

    x = torch.zeros(1000, dtype=torch.uint8, device="cuda")
    y = torch.zeros(1000, dtype=torch.uint8, device="cuda")
    overflow(x.data_ptr(), 1000)
    check(int(y.sum()) == 0, "the neighbour")


def torch_use_after_free():
    import torch

    x = torch.zeros(1000, dtype=torch.uint8, device="cuda")
    pointer = x.data_ptr()
    del x
    torch.cuda.synchronize()
    print("result", copy_past_end(pointer, 1000, 0))


def torch_graph():
    import torch

    x = torch.ones(4096, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            (x * 2 + 1).sin()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        z = (y + 1) * y
        del y
    for value in (1.0, 3.0, 5.0):
        x.fill_(value)
        junk = [torch.full((4096,), 7.0, device="cuda") for _ in range(8)]
        graph.replay()
        torch.cuda.synchronize()
        check(float(z[17]) == (2 * value + 1) * 2 * value, "the graph's result")
        del junk
    print("replayed")


def torch_no_memory():
    import torch

    try:
        torch.empty(1 << 46, dtype=torch.uint8, device="cuda")
    except (RuntimeError, MemoryError) as e:
        print("refused:", type(e).__name__)
    else:
        check(False, "64 TiB were given out")
    check(float(torch.ones(100, device="cuda").sum()) == 100, "afterwards")


def torch_compile():
    import torch

    x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    f = torch.compile(lambda a, b: (a.sin() * b + a).relu())
    check(torch.allclose(f(x, y), (x.sin() * y + x).relu(), atol=1e-5), "compiled")
    print("compiled")


def cupy_run():
    import cupy

    x = cupy.arange(100000, dtype=cupy.float32)
    check(int((x * 2).astype("i8").sum()) == 100000 * 99999, "sum")
    kernel = cupy.RawKernel(
        'extern "C" __global__ void twice(float *x, int n) '
        '{ int i = blockIdx.x * 256 + threadIdx.x; if (i < n) x[i] *= 2; }',
        "twice",
    )
    kernel((391,), (256,), (x, 100000))
    check(float(x[777]) == 1554, "raw kernel")
    a = cupy.random.rand(64, 64)
    check(float(abs(a @ cupy.linalg.inv(a) - cupy.eye(64)).max()) < 1e-6, "inverse")
    print("computed")


def cupy_overflow():
    import cupy

    x, y = cupy.zeros(1000, dtype=cupy.uint8), cupy.zeros(1000, dtype=cupy.uint8)
    overflow(x.data.ptr, 1000)
    check(int(y.sum()) == 0, "the neighbour")


def jax_run():
    import jax
    import jax.numpy as jnp

    check(jax.default_backend() == "gpu", "JAX does not use the GPU")
    f = jax.jit(jax.grad(lambda w, x: jnp.tanh(x @ w).sum()))
    x = jax.random.normal(jax.random.key(0), (128, 64))
    w = jnp.zeros((64, 8))
    for _ in range(10):
        w = w + 0.01 * f(w, x)
    check(bool(jnp.isfinite(w).all()) and float(abs(w).max()) > 0, "gradient")
    check(float(jnp.sort(x.ravel())[0]) == float(x.min()), "sort")
    print("computed")


def jax_overflow():
    import jax
    import jax.numpy as jnp

    check(jax.default_backend() == "gpu", "JAX does not use the GPU")
    x = jax.block_until_ready(jnp.zeros(1000, dtype=jnp.uint8) + 1)
    y = jax.block_until_ready(jnp.zeros(1000, dtype=jnp.uint8))
    # The calling thread has no context: JAX works in threads of its own.
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    overflow(x.unsafe_buffer_pointer(), 1000)
    check(int(y.sum()) == 0, "the neighbour")


def triton_run():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, out, n, block: tl.constexpr):
        at = tl.program_id(0) * block + tl.arange(0, block)
        inside = at < n
        tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)

    x, y = torch.randn(10007, device="cuda"), torch.randn(10007, device="cuda")
    out = torch.empty_like(x)
    add[(triton.cdiv(10007, 256),)](x, y, out, 10007, block=256)
    check(torch.equal(out, x + y), "sum")
    print("computed")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
