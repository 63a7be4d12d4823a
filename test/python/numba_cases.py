# SPDX-License-Identifier: MIT
"""Numba-CUDA kernels of each kind that reaches the driver by a way of its own, against NumPy. Arguments:
names of cases (all of them by default)."""

import math
import sys
import warnings

import numpy as np
from numba import cuda, float32, vectorize

warnings.simplefilter("ignore")  # about small grids
N = 1000
X = np.linspace(0.5, 2.0, N, dtype=np.float32)


def case_plain():
    @cuda.jit
    def add(a, b, c):
        i = cuda.grid(1)
        if i < c.size:
            c[i] = a[i] + b[i]

    out = cuda.device_array(N, dtype=np.float32)
    add[8, 128](cuda.to_device(X), cuda.to_device(X), out)
    np.testing.assert_array_equal(out.copy_to_host(), X + X)


def _square(x):
    return x * x


def _use_device_function(**options):
    square = cuda.jit(_square, device=True, **options)

    def apply(a, out):
        i = cuda.grid(1)
        if i < a.size:
            out[i] = square(a[i]) + np.float32(1)

    out = np.zeros_like(X)
    cuda.jit(apply, **options)[8, 128](X, out)
    np.testing.assert_allclose(out, X * X + 1, rtol=1e-6)


def case_device_function():
    _use_device_function()


def case_no_lto():
    _use_device_function(lto=False)


def case_lineinfo():
    _use_device_function(lineinfo=True)


def case_debug():
    _use_device_function(debug=True, opt=False)


def case_libdevice():
    @cuda.jit
    def transcendental(a, out):
        i = cuda.grid(1)
        if i < a.size:
            out[i] = math.exp(math.sin(a[i])) + math.pow(a[i], 1.5)

    out = np.zeros_like(X)
    transcendental[8, 128](X, out)
    np.testing.assert_allclose(out, np.exp(np.sin(X)) + X**1.5, rtol=1e-5)


def case_shared():
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(128, dtype=float32)
        t = cuda.threadIdx.x
        i = cuda.grid(1)
        tile[t] = a[i] if i < a.size else 0
        cuda.syncthreads()
        out[i] = tile[127 - t]

    x = np.arange(1024, dtype=np.float32)
    out = np.zeros_like(x)
    reverse[8, 128](x, out)
    np.testing.assert_array_equal(out, x.reshape(8, 128)[:, ::-1].ravel())


def case_atomics():
    @cuda.jit
    def histogram(values, bins):
        i = cuda.grid(1)
        if i < values.size:
            cuda.atomic.add(bins, values[i], 1)

    values = np.random.default_rng(1).integers(0, 16, N)
    bins = np.zeros(16, dtype=np.int64)
    histogram[8, 128](values, bins)
    np.testing.assert_array_equal(bins, np.bincount(values, minlength=16))


def case_grid_sync():
    @cuda.jit
    def rows(m):
        grid = cuda.cg.this_grid()
        column = cuda.grid(1)
        for row in range(1, m.shape[0]):
            other = m.shape[1] - column - 1
            m[row, column] = m[row - 1, other] + 1
            grid.sync()

    m = np.zeros((16, 128), dtype=np.int32)
    rows[4, 32](m)
    np.testing.assert_array_equal(m[:, 0], np.arange(16))


def case_reduce():
    total = cuda.reduce(lambda a, b: a + b)
    assert total(np.arange(N, dtype=np.float64)) == N * (N - 1) / 2


def case_vectorize():
    @vectorize(["float32(float32, float32)"], target="cuda")
    def multiply_add(a, b):
        return a * b + b

    np.testing.assert_allclose(multiply_add(X, X), X * X + X, rtol=1e-6)


def case_linked_cuda():
    source = cuda.CUSource('extern "C" __device__ int twice(int *r, int x) { *r = 2 * x; return 0; }')
    twice = cuda.declare_device("twice", "int32(int32)", link=source)

    @cuda.jit
    def apply(out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = twice(i)

    out = np.zeros(N, dtype=np.int32)
    apply[8, 128](out)
    np.testing.assert_array_equal(out, 2 * np.arange(N))


@cuda.jit(cache=True)
def cached(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 1


def case_cache():
    a = X.copy()
    cached[8, 128](a)
    np.testing.assert_array_equal(a, X + 1)
    print("cache hits:", sum(cached.stats.cache_hits.values()))


def case_streams():
    @cuda.jit
    def double(a):
        i = cuda.grid(1)
        if i < a.size:
            a[i] *= 2

    stream, done = cuda.stream(), cuda.event()
    with cuda.pinned(X):
        on_device = cuda.to_device(X, stream=stream)
        double[8, 128, stream](on_device)
        done.record(stream)
        out = on_device.copy_to_host(stream=stream)
        stream.synchronize()
    assert done.query()
    np.testing.assert_array_equal(out, X * 2)


def bad_read():
    """An index that is N elements too large: no error of Python's, and none of Numba's."""

    @cuda.jit(lineinfo=True)
    def off(a, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a[i + (1 << 22)]  # line of the bad load

    out = cuda.device_array(N, dtype=np.float32)
    off[1, 32](cuda.to_device(X), out)  # line of the launch
    cuda.synchronize()


def _sum_of_blocks(limit):
    """Halves that overlap if the limit is larger than a block: its threads leave the shared array."""

    @cuda.jit(lineinfo=True)
    def add_up(a, out, limit):
        tile = cuda.shared.array(128, dtype=float32)
        t = cuda.threadIdx.x
        tile[t] = a[cuda.grid(1)]
        cuda.syncthreads()
        half = 64
        while half > 0:
            if t < half or limit > 128:
                tile[t] += tile[t + half]  # line of the bad shared load
            cuda.syncthreads()
            half //= 2
        if t == 0:
            cuda.atomic.add(out, 0, tile[0])

    out = cuda.to_device(np.zeros(1, dtype=np.float32))
    add_up[8, 128](cuda.to_device(np.ones(1024, dtype=np.float32)), out, limit)  # line of the shared launch
    assert limit > 128 or out.copy_to_host()[0] == 1024


def bad_shared():
    _sum_of_blocks(200)


def good_shared():
    _sum_of_blocks(100)


def _count(kinds):
    @cuda.jit(lineinfo=True)
    def count(values, bins):
        i = cuda.grid(1)
        if i < values.size:
            cuda.atomic.add(bins, values[i], 1)  # line of the bad atomic

    table = cuda.to_device(np.zeros(16, dtype=np.int32))
    count[8, 128](cuda.to_device(np.arange(N) % kinds), table)
    assert table.copy_to_host().sum() == N - N // 17 * (kinds == 17)


def bad_atomic():
    _count(17)


def good_atomic():
    _count(16)


def _blur(first):
    @cuda.jit(lineinfo=True)
    def blur(x, y):
        i, j = cuda.grid(2)
        if first <= i < x.shape[0] - first and first <= j < x.shape[1] - first:
            y[i, j] = (x[i - 1, j] + x[i + 1, j]) / 2  # line of the bad neighbour

    image = np.ones((30, 50))
    result = np.zeros_like(image)
    blur[(2, 4), (16, 16)](cuda.In(image), result)
    assert result[1:-1, 1:-1].min() == 1


def bad_host_array():
    _blur(0)


def good_host_array():
    _blur(1)


def _scale(options):
    @cuda.jit(**options)
    def scale(x):
        x[cuda.grid(1)] *= 2  # line of the bad guard

    numbers = cuda.to_device(X)  # line of the allocation
    kept = cuda.managed_array(N, dtype=np.float32)  # line of the managed allocation
    kept[:] = X
    for array in (numbers, kept):
        scale[8, 128](array)


def bad_guard():
    _scale({})


def main(names):
    cases = names or [name for name in globals() if name.startswith("case_")]
    failed = 0
    for name in cases:
        try:
            globals()[name]()
            print("ok", name, flush=True)
        except Exception as why:
            failed += 1
            print("FAIL", name, type(why).__name__, str(why).split("\n")[0], flush=True)
    sys.exit(1 if failed else 0)


main(sys.argv[1:])
