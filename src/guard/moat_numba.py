# SPDX-License-Identifier: MIT
"""Numba-CUDA: the PTX of each kernel is passed to moat before its machine code is loaded.

Numba compiles to PTX, or to NVVM's form for link-time optimisation, and links that by nvJitLink into machine
code, which is all that the driver gets. A code library keeps what it was linked from, also when it comes from
Numba's cache, so the PTX can be made from it at any time."""

import functools
import os
import re
import sys

import moat_link

# Numba takes the barrier of all blocks from NVIDIA's library for kernels (libcudadevrt), which has machine
# code only. On the CPU device these stand in for it: the handle is the grid's workspace, whose bytes from 16
# are a ticket counter that only grows. A thread of each block waits until all tickets of its round are taken.
_GRID_BARRIER = {
    "cudaCGGetIntrinsicHandle": """
.func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .b32 %lo, %hi;
    .reg .b64 %both;
    mov.u32 %hi, %envreg1;
    mov.u32 %lo, %envreg2;
    mov.b64 %both, {%lo, %hi};
    st.param.b64 [handle], %both;
    ret;
}
""",
    "cudaCGSynchronize": """
.func (.param .b32 status) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [handle];
    setp.eq.u64 %p1, %d1, 0;
    @%p1 bra refuse;
    bar.sync 0;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %tid.z;
    or.b32 %r1, %r1, %r2;
    or.b32 %r1, %r1, %r3;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra leave;
    mov.u32 %r4, %nctaid.x;
    mov.u32 %r5, %nctaid.y;
    mul.wide.u32 %d2, %r4, %r5;
    mov.u32 %r6, %nctaid.z;
    cvt.u64.u32 %d3, %r6;
    mul.lo.u64 %d2, %d2, %d3;
    membar.gl;
    atom.global.add.u64 %d4, [%d1+16], 1;
    rem.u64 %d5, %d4, %d2;
    sub.u64 %d4, %d4, %d5;
    add.u64 %d4, %d4, %d2;
again:
    ld.acquire.gpu.global.u64 %d6, [%d1+16];
    setp.lt.u64 %p3, %d6, %d4;
    @%p3 bra again;
leave:
    bar.sync 0;
    st.param.b32 [status], 0;
    ret;
refuse:
    st.param.b32 [status], 1;
    ret;
}
""",
}


def keep_ptx(codegen):
    library_class = codegen.CUDACodeLibrary
    plain = library_class.get_cubin

    @functools.wraps(plain)
    def get_cubin(self, cc=None):
        cubin = plain(self, cc)
        kept = self.__dict__.setdefault("_moat_kept", set())
        code = getattr(cubin, "code", cubin)
        if hash(code) not in kept:
            kept.add(hash(code))
            _keep(codegen, self, cc, bytes(code))
        return cubin

    library_class.get_cubin = get_cubin


def _keep(codegen, library, cc, code):
    try:
        ptx = _ptx_of(codegen, library, cc)
    except Exception as why:  # the driver gets machine code only, and the summary counts it as refused
        moat_link.say("no PTX of Numba's kernel {}: {}".format(library.name, why))
        return
    moat_link.keep_ptx(code, ptx)


def _ptx_of(codegen, library, cc):
    if getattr(library, "_lto", False):
        return _with_barrier(_lto_ptx(library, cc))
    alone = not library._linking_files and not library.needs_cudadevrt
    if alone and "g" not in library._nvvm_options:
        return library.get_asm_strs(cc=cc)[0]
    if alone:
        return _debug_ptx(codegen, library, cc)
    # Only link-time optimisation ends in PTX when files are linked.
    plain, library._lto = library._lto, True
    try:
        return _with_barrier(_lto_ptx(library, cc))
    finally:
        library._lto = plain


def _lto_ptx(library, cc):
    import warnings

    with warnings.catch_warnings():
        # A file that cannot be optimised at link time is left out; the device names what it misses.
        warnings.simplefilter("ignore")
        return library.get_lto_ptx(cc=cc)


def _with_barrier(ptx):
    """Puts definitions in the place of declarations of the barrier's functions."""
    for name, definition in _GRID_BARRIER.items():
        declared = re.compile(r"\.extern\s+\.func\b[^;{]*?\b" + name + r"\s*\([^;{]*;")
        if not declared.search(ptx):
            continue
        if "device=cpu" not in os.environ.get("MOAT_OPTIONS", ""):
            raise ValueError("its barrier of all blocks is in machine code only")
        ptx = declared.sub(lambda _: definition, ptx, count=1)
    return ptx


def _debug_ptx(codegen, library, cc):
    """With debug=True Numba compiles each function apart, and the driver would have to link several texts
    with debug sections. One text with the lines of the source serves as well."""
    texts = library.get_asm_strs(cc=cc)
    if len(texts) == 1:
        return texts[0]
    options = dict(library._nvvm_options, arch=codegen.nvrtc.get_arch_option(*library._ensure_cc(cc)))
    del options["g"]
    options["generate-line-info"] = None
    return codegen.nvvm.compile_ir(library.llvm_strs, **options).rstrip(b"\0")


# --- errors in Python's terms: moat_launch.py ---------------------------------------------------------------


class _Array:
    """A device array, as moat_launch describes tensors; `program` is what the program knows it by."""

    def __init__(self, program, interface, numpy):
        dtype = numpy.dtype(interface["typestr"])
        self.program = program
        self.shape = interface["shape"]
        self.dtype = str(dtype)
        self._pointer = interface["data"][0]
        self._size = dtype.itemsize
        self._strides = self._steps(interface.get("strides"))

    def _steps(self, strides):
        if strides is not None:
            return tuple(step // self._size for step in strides)
        steps, step = [], 1
        for n in reversed(self.shape):
            steps.append(step)
            step *= n
        return tuple(reversed(steps))

    def data_ptr(self):
        return self._pointer

    def element_size(self):
        return self._size

    def dim(self):
        return len(self.shape)

    def stride(self, dimension=None):
        return self._strides if dimension is None else self._strides[dimension]


def _described(argument):
    interface = getattr(argument, "__cuda_array_interface__", None)
    if interface is None:
        return argument
    import numpy  # as Numba does

    return _Array(argument, interface, numpy)


def watch_launches(dispatcher):
    """A launch waits for its kernel, so that Numba's error is raised, and moat's report made, at its line."""
    import moat_launch

    kernel_class = dispatcher._Kernel
    plain = kernel_class.launch
    moat_launch.packages += ["numba", "numba.cuda", "numba_cuda"]

    @functools.wraps(plain)
    def launch(self, args, griddim, blockdim, stream=0, sharedmem=0):
        code = getattr(getattr(self, "py_func", None), "__code__", None)
        names = code.co_varnames[: code.co_argcount] if code else ()
        handle = int(getattr(stream, "handle", stream))

        def call():
            driver = dispatcher.driver.driver  # raises Numba's errors
            plain(self, args, griddim, blockdim, stream, sharedmem)
            if not int(driver.cuStreamIsCapturing(handle)):
                driver.cuStreamSynchronize(handle)

        return moat_launch.launched(names, [_described(a) for a in args], handle, call)

    kernel_class.launch = launch
    context = dispatcher.driver.Context
    for allocate in ("memalloc", "memallocmanaged", "memhostalloc"):
        if hasattr(context, allocate):
            setattr(context, allocate, moat_launch.from_here(getattr(context, allocate)))
    hints = sys.modules[dispatcher.wrap_arg.__module__]
    for kind in (hints.In, hints.Out, hints.InOut):
        if "to_device" in vars(kind):
            _watch_copies(kind, moat_launch.copied)
    moat_launch._start()


def _copy_of(array, made):
    """The device array that was made of a host array, with the host array's shape; None: it is none."""
    interface = getattr(array, "__array_interface__", None)
    if interface is None or hasattr(array, "__cuda_array_interface__"):
        return None
    import numpy

    pointer = made.ptr if hasattr(made, "ptr") else made.__cuda_array_interface__["data"][0]
    return _Array(array, dict(interface, data=(int(pointer), False)), numpy)


def _watch_copies(kind, copied):
    """Arrays of the host that a launch copies to the device. An argument is the array, or a hint with it."""
    plain = kind.to_device

    @functools.wraps(plain)
    def to_device(self, *args, **kwargs):
        made = plain(self, *args, **kwargs)
        try:
            copy = _copy_of(self.value, made)
            if copy is not None:
                copied(self, copy)
                copied(self.value, copy)
        except Exception:  # reports then do not name the array
            pass
        return made

    kind.to_device = to_device
