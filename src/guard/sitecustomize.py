# SPDX-License-Identifier: MIT
"""What moat does inside Python.

Python imports a module of this name before the program starts; moat puts it in front of others. This module
imports nothing that the program does not import itself: it watches for the modules of _WISHES, and changes
them when they are imported. A module of the same name that would have been imported without moat is imported
as well. MOAT_PYTHON lists what is wanted (src/cli/python_env.c)."""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _empty_statistics(core):
    """PyTorch has no statistics for an allocator that is not its own, and raises an error. Programs that only
    print them get what PyTorch answers before it is initialised: none, so that memory_allocated() is 0."""

    def answering(ask, answer):
        def either(*arguments):
            try:
                return ask(*arguments)
            except RuntimeError:
                return answer()

        return either

    asked = (("_cuda_memoryStats", dict), ("_cuda_resetPeakMemoryStats", lambda: None))
    for name, answer in asked + (("_cuda_resetAccumulatedMemoryStats", lambda: None),):
        if hasattr(core, name):
            setattr(core, name, answering(getattr(core, name), answer))


def _replace_torch_allocator(torch):
    import moat_link

    if getattr(torch.version, "cuda", None) is None:
        return "this PyTorch was built without CUDA and keeps its allocator"
    if not hasattr(moat_link.driver(), "moat_torch_alloc"):
        return "PyTorch keeps its allocator: libmoat.so is not loaded"
    memory = torch.cuda.memory
    allocator = memory.CUDAPluggableAllocator("libcuda.so.1", "moat_torch_alloc", "moat_torch_free")
    memory.change_current_allocator(allocator)
    _empty_statistics(getattr(torch, "_C", None))
    moat_link.torch_allocates = True
    return None  # libmoat.so says so when it is first called


def _unpool_cupy(cupy):
    cupy.cuda.set_allocator(None)
    cupy.cuda.set_pinned_memory_allocator(None)
    return "CuPy's pools are off: each array is a separate buffer"


def _compile_cupy_anew(cupy):
    """CuPy's cache has machine code only; a kernel that is compiled anew has its PTX too. CuPy reads the
    variable at each compilation, and child processes get it."""
    os.environ.setdefault("CUPY_CACHE_IN_MEMORY", "1")


def _by(helper, function):
    """A function of another file of moat's, which is imported when it is first needed."""

    def act(module):
        return getattr(__import__(helper), function)(module)

    return act


_NUMBA_CODE = "numba.cuda.codegen"
_NUMBA_LAUNCH = "numba.cuda.dispatcher"
_KERNELS = "triton.compiler.compiler"
_TUNER = "triton.runtime.autotuner"
_LAUNCHER = "torch._inductor.runtime.static_triton_launcher"
_OLD_LAUNCHER = "torch._inductor.runtime.static_cuda_launcher"
_HEURISTICS = "torch._inductor.runtime.triton_heuristics"
_BENCHMARKS = "torch._inductor.runtime.benchmarking"
_GRAPHS = "torch._inductor.cudagraph_trees"

# The word in MOAT_PYTHON, the module, what is done to it once it is imported, and what the report says if
# that fails.
_WISHES = (
    ("torch-alloc", "torch", _replace_torch_allocator, "torch keeps its own allocator"),
    ("torch-ops", "torch", _by("moat_torch", "replace_operators"), "PyTorch's operators are not replaced"),
    ("torch-alloc", _GRAPHS, _by("moat_torch_graphs", "keep_memory"), "torch.compile records no graphs"),
    ("unpool", "cupy", _unpool_cupy, "cupy keeps its own allocator"),
    ("ptx-anew", "cupy", _compile_cupy_anew, "no PTX of what is in CuPy's cache"),
    ("ptx", _KERNELS, _by("moat_triton", "keep_ptx"), "no PTX of Triton's kernels"),
    ("ptx", _LAUNCHER, _by("moat_triton", "keep_inductor_ptx"), "no PTX of Inductor's kernels"),
    ("ptx", _OLD_LAUNCHER, _by("moat_triton", "keep_inductor_ptx"), "no PTX of Inductor's kernels"),
    ("ptx", _NUMBA_CODE, _by("moat_numba", "keep_ptx"), "no PTX of Numba's kernels"),
    ("launches", _NUMBA_LAUNCH, _by("moat_numba", "watch_launches"), "no Python lines for Numba's kernels"),
    ("launches", _KERNELS, _by("moat_launch", "watch_triton"), "no Python lines for Triton's kernels"),
    ("launches", _HEURISTICS, _by("moat_launch", "watch_inductor"), "no Python lines for Inductor's kernels"),
    ("autotune-first", _TUNER, _by("moat_triton", "autotune_first"), "Triton's autotuner measures"),
    ("autotune-all", _TUNER, _by("moat_triton", "autotune_all"), "Triton's autotuner measures"),
    ("autotune-first", _HEURISTICS, _by("moat_triton", "inductor_first"), "Inductor measures"),
    ("autotune-all", _HEURISTICS, _by("moat_triton", "inductor_all"), "Inductor measures"),
    ("autotune-first", _BENCHMARKS, _by("moat_triton", "inductor_measures_once"), "Inductor measures"),
    ("autotune-all", _BENCHMARKS, _by("moat_triton", "inductor_measures_once"), "Inductor measures"),
)


class _Loader:
    """A module's own loader, and after it what moat does to the module."""

    def __init__(self, loader, acts):
        self._loader = loader
        self._acts = acts

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        spec = module.__spec__
        spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for act, otherwise in self._acts:
            try:
                said = act(module)
            except Exception as why:  # the program continues with the module unchanged
                said = "{}: {}".format(otherwise, why)
            if said:
                import moat_link

                moat_link.say(said)


class _Finder:
    """Finds nothing itself: wraps the loader that another finder names."""

    def __init__(self, acts):
        self._acts = acts

    def find_spec(self, name, path=None, target=None):
        acts = self._acts.get(name)
        if acts is None:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                break
        else:
            return None
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, acts)
        return spec


def _start():
    wishes = os.environ.get("MOAT_PYTHON", "").split()
    acts = {}
    for wish, module, act, otherwise in _WISHES:
        if wish in wishes:
            acts.setdefault(module, []).append((act, otherwise))
    if acts:
        sys.meta_path.insert(0, _Finder(acts))


def _import_hidden():
    from importlib.machinery import PathFinder

    others = [p for p in sys.path if os.path.abspath(p) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if sys.version_info >= (3, 4):  # before, importlib has no such parts; no framework is left there either
    _start()
    _import_hidden()
