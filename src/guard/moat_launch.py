# SPDX-License-Identifier: MIT
"""Errors in Python's terms: where a kernel was launched, and which tensor it left.

While a launch of Triton's or Inductor's kernels is under way, its thread has the interpreter's frames, so
that stacks which moat captures consist of those (script_frames.h), and moat knows the tensors among the
arguments (tensor_label.h). On the CPU device each launch waits for its end, unless it is captured into a
graph, so that an error is raised by the launch that made it. Errors elsewhere are explained by a callback
(guard_report.h).
Where PyTorch allocates by moat, it is asked for the frames of each allocation and free."""

import ctypes
import functools
import os
import sys
import threading

import moat_link

_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
)
_FRAMES_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)
_MOST_FRAMES = 8
_MOST_DIMENSIONS = 8
_FAR = 1 << 30  # bytes from a tensor beyond which an address, as one of shared memory, says nothing about it
_local = threading.local()
_started = False
_explain = _frames = None  # the callbacks, which must live as long as moat may call them
packages = ["triton", "torch"]  # their frames are not the program's; moat_numba adds its own


class _Launch:
    """A launch under way."""

    __slots__ = ("names", "args")

    def __init__(self, names, args):
        self.names = names
        self.args = args


def _start():
    """Registers the callback. Python calls what atexit has before the interpreter ends."""
    global _started, _explain, _frames
    if _started:
        return
    _started = True
    try:
        register = moat_link.driver().moat_explain_with
        ask = moat_link.driver().moat_frames_with
    except (OSError, AttributeError):
        return  # libmoat.so is not loaded: nothing is reported
    import atexit

    _explain = _CALLBACK(_write_explanation)
    register.argtypes = (ctypes.c_void_p,)
    register(ctypes.cast(_explain, ctypes.c_void_p))
    atexit.register(register, None)
    _frames = _FRAMES_CALLBACK(_write_frames)
    python = ctypes.pythonapi
    functions = (
        _frames,
        python.PyGILState_Check,
        python.PyErr_Occurred,
        python.PyGILState_GetThisThreadState,
    )
    ask((ctypes.c_void_p * 4)(*(ctypes.cast(f, ctypes.c_void_p).value for f in functions)))
    atexit.register(ask, None)


_CAPTURE_ERRORS = range(900, 910)  # CUDA_ERROR_STREAM_CAPTURE_*


def _is_capturing(driver, stream):
    """Whether a wait for the stream would break a capture. A kernel that has failed by now is no capture."""
    status = ctypes.c_int(0)
    driver.cuStreamIsCapturing.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    error = driver.cuStreamIsCapturing(stream, ctypes.addressof(status))
    return error in _CAPTURE_ERRORS if error else status.value != 0


def launched(names, args, stream, call):
    """Runs call(), which launches a kernel with these arguments in the stream, and waits for its end."""
    before = getattr(_local, "launch", None)
    _local.launch = _Launch(names, args)
    driver = moat_link.driver()
    frames = _program_frames(sys._getframe(1))
    told = _tell(driver, names, args, frames) if before is None else False
    try:
        result = call()
        driver.cuStreamSynchronize.argtypes = (ctypes.c_void_p,)
        if not _is_capturing(driver, stream) and driver.cuStreamSynchronize(stream):
            _raise()
        return result
    finally:
        _local.launch = before
        if told:
            driver.moat_frames(None)


def _tell(driver, names, args, frames):
    """Tells moat the frames of a launch, and its tensors. Returns whether it knows them."""
    if not hasattr(driver, "moat_frames"):
        return False
    driver.moat_frames(_text_of(frames).encode(errors="replace"))
    where = frames[0].f_locals if frames else {}
    for name, tensor in _tensors(names, args):
        _tell_tensor(driver, name, tensor, where)
    return True


def _tell_tensor(driver, name, tensor, where):
    if tensor.dim() > _MOST_DIMENSIONS:
        return
    numbers = ctypes.c_int64 * max(1, tensor.dim())
    driver.moat_tensor(
        ctypes.c_uint64(tensor.data_ptr()),
        tensor.element_size(),
        tensor.dim(),
        numbers(*tensor.shape),
        numbers(*tensor.stride()),
        _called(name, tensor, where).encode(errors="replace"),
        str(tensor.dtype).replace("torch.", "").encode(),
    )


def copied(argument, tensor):
    """A launch under way has copied one of its arguments into device memory, as this tensor."""
    launch, driver = getattr(_local, "launch", None), moat_link.driver()
    if launch is None or not hasattr(driver, "moat_tensor"):
        return
    frames = _program_frames(sys._getframe(1))
    where = frames[0].f_locals if frames else {}
    for name, value in zip(launch.names, launch.args):
        if value is argument:
            _tell_tensor(driver, name, tensor, where)


def from_here(function):
    """A function with which memory is allocated: moat knows the program's frames as long as it runs."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        driver = moat_link.driver()
        if getattr(_local, "launch", None) is not None or not hasattr(driver, "moat_frames"):
            return function(*args, **kwargs)
        driver.moat_frames(_text_of(_program_frames(sys._getframe(1))).encode(errors="replace"))
        try:
            return function(*args, **kwargs)
        finally:
            driver.moat_frames(None)

    return run


def _raise():
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.cuda.current_stream().synchronize()  # raises PyTorch's own error
    raise RuntimeError("the kernel failed")


def watch_triton(compiler):
    """Triton: what a compiled kernel calls to launch itself."""
    kernel_class = compiler.CompiledKernel
    plain = kernel_class._init_handles
    version = getattr(sys.modules.get("triton"), "__version__", "")
    without_constants = version.startswith("3.2.")

    @functools.wraps(plain)
    def init_handles(self):
        done = self.module is not None
        result = plain(self)
        name = "_run" if hasattr(self, "_run") else "run"  # "run" before Triton 3.5
        if not done and vars(self).get(name) is not None:
            setattr(self, name, _launcher(self, vars(self)[name], without_constants))
        return result

    kernel_class._init_handles = init_handles
    _start()


def _launcher(kernel, plain, without_constants):
    """WITHOUT_CONSTANTS: whether the launcher gets the arguments that are not tl.constexpr only."""
    function = getattr(kernel.src, "fn", None)
    names = tuple(getattr(function, "arg_names", ()))
    if without_constants and function is not None:
        names = tuple(n for n, p in zip(names, function.params) if not p.is_constexpr)

    @functools.wraps(plain, updated=())
    def launch(grid_x, grid_y, grid_z, stream, *rest):
        args = rest[len(rest) - len(names) :] if names and len(rest) >= len(names) else ()
        return launched(names, args, stream, lambda: plain(grid_x, grid_y, grid_z, stream, *rest))

    return launch


def watch_inductor(heuristics):
    """Inductor: the method that its code calls for each kernel."""
    tuner = heuristics.CachingAutotuner
    plain = tuner.run

    @functools.wraps(plain)
    def run(self, *args, stream, **kwargs):
        names = tuple((self.triton_meta or {}).get("signature", ()))
        return launched(names, args, stream, lambda: plain(self, *args, stream=stream, **kwargs))

    tuner.run = run
    _start()


# --- explaining ---------------------------------------------------------------------------------------------


def _write_explanation(address, count, kernel, text, size):
    try:
        lines = _lines(address, count, kernel)
        data = "\n".join(lines).encode(errors="replace")[: size - 1] + b"\0"
        ctypes.memmove(text, data, len(data))
    except Exception:  # an error without an explanation is reported as it is
        pass


def _write_frames(text, size):
    try:
        data = _text_of(_program_frames(sys._getframe(1))).encode(errors="replace")[: size - 1] + b"\0"
        ctypes.memmove(text, data, len(data))
    except Exception:  # the stack is then one of machine code
        pass


def _text_of(frames):
    return "\n".join(
        "{}\t{}\t{}".format(f.f_code.co_name, f.f_code.co_filename, f.f_lineno) for f in frames
    )


def _lines(address, count, kernel):
    frames = _program_frames(sys._getframe(1))
    lines = ["@" + line for line in _text_of(frames).split("\n")]
    launch = getattr(_local, "launch", None)
    if launch is not None and kernel is not None and address:
        where = frames[0].f_locals if frames else {}
        lines += _describe(launch, address, count, where)
    return lines


def _folders():
    """The folders of moat and of the packages. A program's own folder may have the name of one, as triton."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in packages]
    return tuple(os.path.dirname(os.path.abspath(f)) + os.sep for f in files + [__file__] if f)


def _program_frames(frame):
    """The innermost frames that are neither PyTorch's nor Triton's nor moat's."""
    frames, inside = [], _folders()
    while frame is not None and len(frames) < _MOST_FRAMES:
        if not frame.f_code.co_filename.startswith(inside):
            frames.append(frame)
        frame = frame.f_back
    return frames


def _is_tensor(value):
    return all(hasattr(value, name) for name in ("data_ptr", "dim", "stride", "element_size"))


def _span(tensor):
    """The bytes from the first element to the end of the last."""
    elements = 1
    for n, step in zip(tensor.shape, tensor.stride()):
        if n == 0:
            return 0
        elements += (n - 1) * step
    return elements * tensor.element_size()


def _distance(tensor, address):
    begin = tensor.data_ptr()
    end = begin + _span(tensor)
    return begin - address if address < begin else max(0, address - end + 1)


def _tensors(names, args):
    """The tensors among arguments with their names; those of tensor descriptors too, and those of Triton's
    wrappers, which give a tensor another type and may be in a descriptor."""
    named = [(n, getattr(a, "base", a)) for n, a in zip(names, args)]
    named = [(n, a if _is_tensor(a) else getattr(a, "base", a)) for n, a in named]
    return [(n, a) for n, a in named if _is_tensor(a)]


def _called(name, tensor, where):
    program = getattr(tensor, "program", tensor)
    names = [n for n, value in where.items() if value is program]
    return "`{}`, argument {}".format(names[0], name) if names else "argument {}".format(name)


def _describe(launch, address, count, where):
    tensors = _tensors(launch.names, launch.args)
    if not tensors:
        return []
    name, tensor = min(tensors, key=lambda pair: _distance(pair[1], address))
    if _distance(tensor, address) > _FAR:
        return []
    text = "the nearest tensor is {}: {}, shape {}, strides {}".format(
        _called(name, tensor, where),
        str(tensor.dtype).replace("torch.", ""),
        list(tensor.shape),
        list(tensor.stride()),
    )
    return [text + "; " + _place(tensor, address, count)]


def _place(tensor, address, count):
    offset = address - tensor.data_ptr()
    element = offset // tensor.element_size()
    if offset < 0:
        return "the access is {} element{} before its first".format(-element, "s" * (element != -1))
    index = _index(tensor, element)
    if _distance(tensor, address) > 0:
        return "the access is at {}, outside of it".format(index)
    last = address + max(count, 1) - 1
    if _distance(tensor, last) == 0:
        return "the access is inside of it, at {}".format(index)
    end = _index(tensor, (last - tensor.data_ptr()) // tensor.element_size())
    return "the access begins inside of it, at {}, and ends at {}, outside of it".format(index, end)


def _index(tensor, element):
    """The index that leads to an element, by the tensor's strides; the first one may be too large."""
    order = sorted(range(tensor.dim()), key=lambda d: -tensor.stride(d))
    index = [0] * tensor.dim()
    for d in order:
        if tensor.stride(d) > 0:
            index[d], element = divmod(element, tensor.stride(d))
    return "index [{}]".format(", ".join(map(str, index)))
