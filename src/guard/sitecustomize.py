# SPDX-License-Identifier: MIT
"""What moat does inside Python, for --torch-alloc and --unpool.

Python imports a module of this name before the program starts; moat puts it in front of others. This module
imports nothing that the program does not import itself: it watches for torch and cupy, and changes them when
they are imported. A module of the same name that would have been imported without moat is imported as
well."""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _guard():
    """The library that stands in for the driver; without moat, the driver."""
    import ctypes

    return ctypes.CDLL("libcuda.so.1")


def _say(text):
    try:
        _guard().moat_tell_note(text.encode())
    except (OSError, AttributeError):
        sys.stderr.write("moat: " + text + "\n")


def _replace_torch_allocator(torch):
    if getattr(torch.version, "cuda", None) is None:
        return "this PyTorch was built without CUDA and keeps its allocator"
    if not hasattr(_guard(), "moat_torch_alloc"):
        return "PyTorch keeps its allocator: libmoat.so is not loaded"
    memory = torch.cuda.memory
    allocator = memory.CUDAPluggableAllocator("libcuda.so.1", "moat_torch_alloc", "moat_torch_free")
    memory.change_current_allocator(allocator)
    return None  # libmoat.so says so when it is first called


def _unpool_cupy(cupy):
    cupy.cuda.set_allocator(None)
    cupy.cuda.set_pinned_memory_allocator(None)
    return "CuPy's pools are off: each array is a separate buffer"


_WISHES = (("torch-alloc", "torch", _replace_torch_allocator), ("unpool", "cupy", _unpool_cupy))


class _Loader:
    """A module's own loader, and after it what moat does to the module."""

    def __init__(self, loader, act):
        self._loader = loader
        self._act = act

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        spec = module.__spec__
        spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            said = self._act(module)
        except Exception as why:  # the program continues with the module unchanged
            said = "{} keeps its own allocator: {}".format(spec.name, why)
        if said:
            _say(said)


class _Finder:
    """Finds nothing itself: wraps the loader that another finder names."""

    def __init__(self, acts):
        self._acts = acts

    def find_spec(self, name, path=None, target=None):
        act = self._acts.get(name)
        if act is None:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                break
        else:
            return None
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, act)
        return spec


def _start():
    wishes = os.environ.get("MOAT_PYTHON", "").split()
    acts = {module: act for wish, module, act in _WISHES if wish in wishes}
    if acts:
        sys.meta_path.insert(0, _Finder(acts))


def _import_hidden():
    others = [p for p in sys.path if os.path.abspath(p) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start()
_import_hidden()
