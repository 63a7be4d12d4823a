# SPDX-License-Identifier: MIT
"""The kernels of Triton's tutorials with small sizes. A tutorial is a script that also measures: these tests
take its definitions and leave out what it runs by itself. An autotuned kernel has its first configuration
only, so that a test compiles one kernel. The scripts are in the folder tutorials beside this file."""

import ast
import functools
import os
import sys
import types

import pytest
import torch
import triton

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tutorials")


@functools.cache
def tutorial(number):
    (name,) = [x for x in os.listdir(FOLDER) if x.startswith(number)]
    path = os.path.join(FOLDER, name)
    tree = ast.parse(open(path).read())
    kept, runs = [], False
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if any("perf_report" in ast.unparse(d) for d in node.decorator_list) or node.name.startswith(
                "bench"
            ):
                continue
            kept.append(node)
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) or isinstance(node, ast.For):
            runs = True  # from here on the script computes and measures
        if isinstance(node, ast.If) and "cublas" in ast.unparse(node):
            kept.append(ast.parse("cublas = None").body[0])
            continue
        if runs or isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            continue
        if isinstance(node, (ast.Assign, ast.Assert)) and (
            "dropout(" in ast.unparse(node) or "group_" in ast.unparse(node)
        ):
            continue
        kept.append(node)
    tree.body = kept
    sys.modules.setdefault("tabulate", types.ModuleType("tabulate"))
    module = types.ModuleType("tutorial_" + number)
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compile(tree, path, "exec"), module.__dict__)
    for value in list(vars(module).values()):
        if isinstance(value, triton.runtime.autotuner.Autotuner):
            plain = [
                c for c in value.configs if not c.kwargs.get("EPILOGUE_SUBTILE")
            ]  # no GPU before Blackwell has more
            value.configs = (plain or value.configs)[:1]
    return module


@pytest.mark.parametrize("n", [1000, 98432])
def test_vector_add(n):
    x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    torch.testing.assert_close(tutorial("01").add(x, y), x + y, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(64, 781), (200, 100)])
def test_softmax(shape):
    x = torch.randn(shape, device="cuda")
    torch.testing.assert_close(tutorial("02").softmax(x), torch.softmax(x, 1))


@pytest.mark.parametrize("kind", ["fp16", "fp16_leaky", "fp8"])
def test_matmul(kind):
    t = tutorial("03")
    a = torch.rand((200, 128), device="cuda", dtype=torch.float16) - 0.5
    b = torch.rand((128, 264), device="cuda", dtype=torch.float16) - 0.5
    if kind == "fp8":
        a, b = a.to(torch.float8_e5m2), b.T.contiguous().T.to(torch.float8_e5m2)
    right = a.float().cpu() @ b.float().cpu()
    if kind == "fp16_leaky":
        right = torch.nn.functional.leaky_relu(right, 0.01)
    ours = t.matmul(a, b, activation="leaky_relu" if kind == "fp16_leaky" else "")
    torch.testing.assert_close(ours.float().cpu(), right, atol=0.05, rtol=0)


def test_dropout():
    t = tutorial("04")
    x = torch.randn(1000, device="cuda")
    keep = (torch.rand(1000, device="cuda") > 0.5).to(torch.int32)
    torch.testing.assert_close(t.dropout(x, x_keep=keep, p=0.5), x * keep * 2)


def test_seeded_dropout():
    t = tutorial("04")
    x = torch.randn(1000, device="cuda")
    one, same, other = (t.seeded_dropout(x, p=0.5, seed=s) for s in (123, 123, 512))
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert 0.4 < (one != 0).float().mean().item() < 0.6


@pytest.mark.parametrize("shape", [(64, 512), (151, 1000)])
def test_layer_norm(shape):
    torch.manual_seed(0)
    tutorial("05").test_layer_norm(*shape, torch.float16)


@pytest.mark.parametrize("provider,mode", [("triton-fp16", "bwd"), ("triton-fp8", "fwd")])
@pytest.mark.parametrize("dim", [64, 128])
def test_attention(dim, provider, mode):
    tutorial("06").test_op(1, 2, 128, dim, True, False, mode, provider)


def test_libdevice():
    t = tutorial("07")
    x = torch.rand(10000, device="cuda")
    y = torch.zeros_like(x)
    t.asin_kernel[(triton.cdiv(10000, 1024),)](x, y, 10000, BLOCK_SIZE=1024)
    torch.testing.assert_close(y, torch.asin(x))


@pytest.mark.parametrize("tma", [False, True])
def test_grouped_gemm(tma):
    t = tutorial("08")
    sizes = [(128, 128, 64), (256, 128, 128), (128, 256, 64)]
    torch.manual_seed(0)
    A = [torch.rand((m, k), device="cuda", dtype=torch.float16) for m, n, k in sizes]
    B = [torch.rand((k, n), device="cuda", dtype=torch.float16) for m, n, k in sizes]
    right = [a.float().cpu() @ b.float().cpu() for a, b in zip(A, B)]
    ours = t.group_gemm_tma_fn(A, [b.T.contiguous() for b in B]) if tma else t.group_gemm_fn(A, B)
    for x, y in zip(ours, right):
        torch.testing.assert_close(x.float().cpu(), y, atol=0.05, rtol=1e-2)


@pytest.mark.parametrize(
    "way", ["naive", "persistent", "tma", "tma_persistent", "descriptor", "descriptor_ws"]
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float8_e4m3fn])
def test_persistent(way, dtype):
    t = tutorial("09")
    torch.manual_seed(0)
    a = torch.randn((256, 128), device="cuda", dtype=torch.float16).to(dtype)
    b = torch.randn((256, 128), device="cuda", dtype=torch.float16).to(dtype)
    right = a.float().cpu() @ b.float().cpu().T
    ours = {
        "naive": lambda: t.matmul(a, b.T),
        "persistent": lambda: t.matmul_persistent(a, b.T),
        "tma": lambda: t.matmul_tma(a, b, False),
        "tma_persistent": lambda: t.matmul_tma_persistent(a, b, False),
        "descriptor": lambda: t.matmul_descriptor_persistent(a, b, False),
        "descriptor_ws": lambda: t.matmul_descriptor_persistent(a, b, True),
    }[way]()
    torch.testing.assert_close(
        ours.float().cpu(), right, atol=4 if dtype != torch.float16 else 0.1, rtol=0.02
    )


@pytest.mark.parametrize("pdl", [False, True])
def test_dependent_launch(pdl):
    x, y = torch.rand(10000, device="cuda"), torch.rand(10000, device="cuda")
    torch.testing.assert_close(tutorial("11").add(x, y, pdl), x + y, rtol=0, atol=0)
