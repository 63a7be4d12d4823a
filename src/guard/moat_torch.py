# SPDX-License-Identifier: MIT
"""PyTorch on the CPU device: operators whose CUDA kernels are machine code run on the CPU, on the same bytes.

The wheels' own kernels have no PTX that the device could execute. Each operator with a kernel for the
dispatch key CUDA gets another one here, which waits for the current stream, runs the operator on CPU tensors
whose bytes are the device's (no copy), and puts results into new device memory. Autograd, streams, events,
views and allocation stay PyTorch's own. In a stream that is being captured the operator becomes a host
function of the graph."""

import atexit
import ctypes
import functools
import os

import moat_link
import moat_torch_cells

# Operators that run no kernel, and copies, which have functions of their own below.
_KEPT = frozenset(
    "aten::" + name
    for name in (
        "_local_scalar_dense _nested_view_from_buffer _pin_memory _reshape_alias as_strided"
        " empty.memory_format empty_strided is_pinned is_set_to record_stream resize_ set_"
        " set_.source_Storage"
        " set_.source_Storage_storage_offset set_.source_Tensor unfold view view_as_complex view_as_real"
        " _assert_async _assert_async.msg copy_ _fused_sdp_choice _cudnn_init_dropout_state"
        " _thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl _thnn_fused_gru_cell"
        " _thnn_fused_gru_cell_backward"
    ).split()
)

# Operators without a kernel of their own for CUDA that would choose a library by the device.
_ADDED = ("aten::convolution", "aten::convolution_overrideable", "aten::_fused_rms_norm")

# Operators whose CPU kernels add up many numbers of 16 bits in 16 bits, where those for CUDA have 32: they
# get their tensors in 32 bits. The first results have the types of these arguments, as on a GPU.
_WIDE = {
    "aten::native_layer_norm": ("input",),
    "aten::native_layer_norm_backward": ("input", "weight", "bias"),
    "aten::embedding_dense_backward": ("grad_output",),
    "aten::prod": ("self",),
    "aten::prod.dim_int": ("self",),
}

_LINE = 150  # characters of a line of the list at the end
_state = None


class _State:
    """What all replaced operators share."""

    def __init__(self, torch):
        self.torch = torch
        self.counts = {}  # by operator
        self.missing = {}  # operators that have no CPU kernel
        self.pid = os.getpid()
        driver = moat_link.driver()
        self.host = driver.moat_driver_host
        self.host.restype = ctypes.c_uint64
        self.host.argtypes = (ctypes.c_uint64, ctypes.c_size_t)
        self.wait = driver.cuStreamSynchronize
        self.wait.argtypes = (ctypes.c_void_p,)
        self.launch_host = driver.cuLaunchHostFunc
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self.launch_host.argtypes = (ctypes.c_void_p, self.callback, ctypes.c_void_p)
        self.captured = []  # host functions of graphs, kept as long as the process
        self.raw_stream = torch._C._cuda_getCurrentRawStream
        self.is_capturing = torch._C._cuda_isCurrentStreamCapturing
        self.storage = torch._C._construct_storage_from_data_pointer
        self.cpu = torch.device("cpu")
        self.Tensor = torch.Tensor


def _alias(tensor):
    """The tensor's device memory as a CPU tensor."""
    s = _state
    torch = s.torch
    size, stride = tensor.size(), tensor.stride()
    alias = torch.empty(0, dtype=tensor.dtype, device=s.cpu)
    if tensor.numel():
        span = 1
        for n, step in zip(size, stride):
            span += (n - 1) * step
        nbytes = span * tensor.element_size()
        address = s.host(tensor.data_ptr(), nbytes)
        if not address:
            raise RuntimeError(
                "moat: a tensor of {} bytes at {:#x} is not in memory of the CPU device".format(
                    nbytes, tensor.data_ptr()
                )
            )
        alias.set_(s.storage(address, s.cpu, nbytes), 0, size, stride)
    else:
        alias = torch.empty_strided(size, stride, dtype=tensor.dtype, device=s.cpu)
    if tensor.is_conj():
        alias = torch._C._VariableFunctions.conj(alias)
    if tensor.is_neg():
        alias = torch._C._VariableFunctions._neg_view(alias)
    return alias


def _synchronize(index):
    if _state.wait(_state.raw_stream(index)):
        _state.torch.cuda.current_stream(index).synchronize()  # raises PyTorch's own error


def _to_device(result, device):
    """Puts a result of the CPU into device memory."""
    torch = _state.torch
    if isinstance(result, _state.Tensor):
        if result.device.type != "cpu":
            return result
        out = torch.empty_strided(result.size(), result.stride(), dtype=result.dtype, device=device)
        if result.numel():
            _alias(out).copy_(result)
        return out
    if isinstance(result, (list, tuple)):
        return type(result)(_to_device(r, device) for r in result)
    return result


class _Call:
    """The arguments of one call, as the CPU sees them."""

    __slots__ = ("device", "pairs")

    def __init__(self):
        self.device = None
        self.pairs = []  # device tensors and their CPU tensors

    def argument(self, value):
        s = _state
        if isinstance(value, s.Tensor):
            if value.device.type != "cuda":
                return value
            if self.device is None:
                self.device = value.device
            alias = _alias(value)
            self.pairs.append((value, alias))
            return alias
        if isinstance(value, (list, tuple)):
            return type(value)(self.argument(v) for v in value)
        if isinstance(value, s.torch.device) and value.type == "cuda":
            self.device = self.device or value
            return s.cpu
        return value


def _seed(torch, generator, index):
    """A CPU generator in a state that follows from the CUDA generator's, whose offset advances."""
    if generator is None:
        generator = torch.cuda.default_generators[index]
    seed, offset = generator.initial_seed(), generator.get_offset()
    generator.set_offset(offset + 4)
    mixed = (seed * 0x9E3779B97F4A7C15 + offset * 0xD1B54A32D192ED03) & 0x7FFFFFFFFFFFFFFF
    cpu = torch.Generator()
    cpu.manual_seed(mixed)
    return cpu


def _random_without_generator(torch, op, call, args, kwargs, index):
    default = torch.default_generator
    before = default.get_state()
    default.set_state(_seed(torch, None, index).get_state())
    try:
        return op(*args, **kwargs)
    finally:
        default.set_state(before)


class _Operator:
    """One operator for the dispatch key CUDA."""

    def __init__(self, op, name):
        schema = op._schema
        self.op = op
        self.name = name
        self.names = [a.name for a in schema.arguments]
        # Where the dispatcher has a tensor that was a number in Python, it passes the number.
        self.tensors = [i for i, a in enumerate(schema.arguments) if str(a.type) == "Tensor"]
        self.generator = "generator" in self.names
        self.random = not self.generator and _state.torch.Tag.nondeterministic_seeded in op.tags
        # For each result: the argument that it is, or None. Outputs are written, and may have to grow.
        self.aliases = [self._aliased(schema, r) for r in schema.returns]
        self.outputs = [a.name for a in schema.arguments if a.is_out]
        self.narrowed = _WIDE.get(name)

    @staticmethod
    def _aliased(schema, result):
        info = result.alias_info
        if info is None:
            return None
        for a in schema.arguments:
            if a.alias_info is not None and a.alias_info.before_set == info.before_set:
                return a.name
        return None

    def __call__(self, *args, **kwargs):
        s = _state
        s.counts[self.name] = s.counts.get(self.name, 0) + 1
        return self._capture(args, kwargs) if s.is_capturing() else self._run(args, kwargs)

    def _run(self, args, kwargs):
        s = _state
        call = _Call()
        cpu_args = [call.argument(a) for a in args]
        cpu_kwargs = {k: call.argument(v) for k, v in kwargs.items()}
        index = call.device.index if call.device is not None else None
        index = s.torch.cuda.current_device() if index is None else index
        _synchronize(index)
        fresh = self._fresh_outputs(cpu_kwargs)
        if self.generator:
            self._replace_generator(cpu_args, cpu_kwargs, index)
        try:
            result = self._on_cpu(call, cpu_args, cpu_kwargs, index)
        except NotImplementedError as why:
            s.missing[self.name] = s.missing.get(self.name, 0) + 1
            raise NotImplementedError(
                "moat: {} has no kernel for the CPU, and that for CUDA is machine code".format(self.name)
            ) from why
        for name, cpu in fresh:
            out = kwargs[name]
            if out.size() != cpu.size():
                out.resize_(cpu.size())
            _alias(out).copy_(cpu)
        return self._results(result, args, kwargs, s.torch.device("cuda", index))

    def _fresh_outputs(self, cpu_kwargs):
        """Outputs without elements are grown by the operator, which only memory of the CPU's own allows."""
        fresh = []
        for name in self.outputs:
            out = cpu_kwargs.get(name)
            if isinstance(out, _state.Tensor) and out.numel() == 0:
                cpu_kwargs[name] = _state.torch.empty(0, dtype=out.dtype)
                fresh.append((name, cpu_kwargs[name]))
        return fresh

    def _replace_generator(self, cpu_args, cpu_kwargs, index):
        at = self.names.index("generator")
        if at < len(cpu_args):
            cpu_args[at] = _seed(_state.torch, cpu_args[at], index)
        else:
            cpu_kwargs["generator"] = _seed(_state.torch, cpu_kwargs.get("generator"), index)

    def _on_cpu(self, call, args, kwargs, index):
        if self.random:
            return _random_without_generator(_state.torch, self.op, call, args, kwargs, index)
        if any(i < len(args) and not isinstance(args[i], _state.Tensor) for i in self.tensors):
            return self.op.overloadpacket(*args, **kwargs)  # which chooses the overload for numbers
        if self.narrowed is not None:
            return self._in_32_bits(args, kwargs)
        return self.op(*args, **kwargs)

    def _in_32_bits(self, args, kwargs):
        torch = _state.torch

        def is_narrow(value):
            return isinstance(value, torch.Tensor) and value.dtype in (torch.half, torch.bfloat16)

        def widened(value):
            return value.float() if is_narrow(value) else value

        if kwargs.get("dtype") is not None:  # the caller chooses
            return self.op(*args, **kwargs)
        result = self.op(*[widened(a) for a in args], **{k: widened(v) for k, v in kwargs.items()})
        many = isinstance(result, tuple)
        results = list(result) if many else [result]
        for i, name in enumerate(self.narrowed):
            like = self._argument(name, args, kwargs)
            if is_narrow(like) and results[i] is not None:
                results[i] = results[i].to(like.dtype)
        return tuple(results) if many else results[0]

    def _argument(self, name, args, kwargs):
        at = self.names.index(name)
        return args[at] if at < len(args) else kwargs.get(name)

    def _results(self, result, args, kwargs, device):
        if not self.aliases:
            return None
        many = len(self.aliases) > 1
        results = result if many else (result,)
        out = []
        for value, alias in zip(results, self.aliases):
            out.append(_to_device(value, device) if alias is None else self._argument(alias, args, kwargs))
        return tuple(out) if many else out[0]

    def _capture(self, args, kwargs):
        """Adds the operator to the graph that is being captured. Shapes come from meta tensors."""
        s = _state
        torch = s.torch
        index = torch.cuda.current_device()
        results = self._shapes(args, kwargs, index)
        many = len(self.aliases) > 1
        # Addresses in a graph are fixed. The graph owns its memory: a tensor that is kept here would keep it.
        new = [_aliases(r) for r, a in zip(results if many else (results,), self.aliases) if a is None]
        call = _Call()
        cpu_args = [call.argument(a) for a in args]
        cpu_kwargs = {k: call.argument(v) for k, v in kwargs.items()}
        call.pairs.clear()

        def replay(_):
            if self.generator:
                self._replace_generator(cpu_args, cpu_kwargs, index)
            value = self._on_cpu(call, cpu_args, cpu_kwargs, index)
            values = [v for v, a in zip(value if many else (value,), self.aliases) if a is None]
            _copy_into(new, values)

        function = s.callback(_guarded(self.name, replay))
        s.captured.append(function)
        if s.launch_host(s.raw_stream(index), function, None):
            raise RuntimeError("moat: {} cannot be captured".format(self.name))
        return results

    def _shapes(self, args, kwargs, index):
        """New device memory for the results."""
        torch = _state.torch
        device = torch.device("cuda", index)

        def meta(value):
            if isinstance(value, torch.Tensor):
                return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
            if isinstance(value, (list, tuple)):
                return type(value)(meta(v) for v in value)
            return torch.device("meta") if isinstance(value, torch.device) else value

        if all(a is not None for a in self.aliases):
            none = [None] * len(self.aliases) if len(self.aliases) > 1 else None
            return self._results(none, args, kwargs, device)
        found = self.op(*[meta(a) for a in args], **{k: meta(v) for k, v in kwargs.items()})

        def made(value):
            if isinstance(value, torch.Tensor):
                return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=device)
            if isinstance(value, (list, tuple)):
                return type(value)(made(v) for v in value)
            return value

        many = len(self.aliases) > 1
        out = [made(v) if a is None else self._argument(a, args, kwargs)
               for v, a in zip(found if many else (found,), self.aliases)]
        return tuple(out) if many else out[0]


def _aliases(value):
    if isinstance(value, (list, tuple)):
        return [_aliases(v) for v in value]
    return _alias(value) if isinstance(value, _state.Tensor) else value


def _copy_into(targets, values):
    for target, value in zip(targets, values):
        if isinstance(value, _state.Tensor):
            target.copy_(value)
        elif isinstance(value, (list, tuple)):
            _copy_into(target, value)


def _guarded(name, replay):
    def function(data):
        try:
            replay(data)
        except Exception as why:  # there is no caller that it could reach
            moat_link.say("{} failed in a graph: {}".format(name, why))

    return function


def _plain_bytes(a, b):
    """Whether copying bytes is all that a copy from b to a does."""
    return (
        a.dtype == b.dtype
        and a.size() == b.size()
        and a.is_contiguous()
        and b.is_contiguous()
        and a.is_conj() == b.is_conj()
        and a.is_neg() == b.is_neg()
    )


def _copy(plain):
    """copy_: bytes go through the driver, where moat checks them; what changes them runs on the CPU."""
    operator = _Operator(_state.torch.ops.aten.copy_.default, "aten::copy_")

    def copy(self, src, non_blocking=False):
        if plain is not None and _plain_bytes(self, src):
            if _state.captured and not _state.is_capturing():
                # PyTorch's copy waits with the interpreter's lock held, which host functions of graphs need.
                _synchronize(_state.torch.cuda.current_device())
            return plain(self, src, non_blocking)
        return operator(self, src, non_blocking)

    return copy


def _native_copy(torch):
    """PyTorch's own copy_ for CUDA, or None."""
    get = getattr(torch.library, "get_kernel", None)
    if get is None:
        return None
    kernel = get(torch.ops.aten.copy_.default, "CUDA")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
    return functools.partial(kernel.call_boxed, keys)


class _Kernels:
    """Kernels for the dispatch key CUDA, one for each operator. They are in use as long as this object lives.

    PyTorch keeps a set of the operators that have a kernel from Python. Some versions, 2.11 for one, refuse
    another kernel for these. PyTorch's own are replaced all the same; those of the program stay. The set is
    left as it was, so that the program may also replace a kernel of moat's."""

    def __init__(self, torch, own):
        self._library = torch.library.Library("aten", "IMPL")
        self._names = _python_kernels(torch)
        self._taken = self._names - own
        self.failed = []  # operators that keep their kernel, and why

    def impl(self, name, function):
        """Registers FUNCTION for the operator aten::NAME, unless moat or the program has registered one."""
        key = "aten/" + name + "/CUDA"
        if key in self._taken:
            return
        self._taken.add(key)
        is_own = key in self._names
        self._names.discard(key)
        try:
            self._library.impl(name, function, "CUDA")
        except Exception as why:  # the other operators are not concerned
            self.failed.append((name, why))
        (self._names.add if is_own else self._names.discard)(key)


def _python_kernels(torch):
    return getattr(torch.library, "_impls", set())


def _register(torch, own):
    """Registers all kernels. OWN: the operators for which PyTorch itself has a kernel from Python."""
    import warnings

    kernels = _state.kernels = _Kernels(torch, own)
    names = torch._C._dispatch_get_registrations_for_dispatch_key("CUDA")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernels.impl("copy_", _copy(_native_copy(torch)))
        kernels.impl("_fused_sdp_choice", lambda *args, **kwargs: 0)
        moat_torch_cells.register(kernels, torch)
        for name in [n for n in names if n.startswith("aten::")] + list(_ADDED):
            if name in _KEPT:
                continue
            base, _, overload = name[6:].partition(".")
            packet = getattr(torch.ops.aten, base, None)
            op = getattr(packet, overload or "default", None)
            if op is not None:
                kernels.impl(name[6:], _Operator(op, name))
    torch.backends.cudnn.enabled = False
    for choice in ("enable_flash_sdp", "enable_mem_efficient_sdp", "enable_cudnn_sdp"):
        getattr(torch.backends.cuda, choice, lambda on: None)(False)
    if kernels.failed:
        name, why = kernels.failed[0]
        said = "{} operators of PyTorch are not replaced, the first is {}: {}"
        moat_link.say(said.format(len(kernels.failed), name, why))


def _summarise():
    """Says what ran where, in sentences of a length that a report keeps."""
    s = _state
    if not s.counts or os.getpid() != s.pid:
        return
    rows = sorted(s.counts.items(), key=lambda row: (-row[1], row[0]))
    total = sum(s.counts.values())
    first = "{} call{} of {} operator{} of PyTorch ran on the CPU, not as kernels:"
    moat_link.say(first.format(total, "s" * (total != 1), len(rows), "s" * (len(rows) != 1)))
    line = ""
    for name, count in rows:
        word = "{} {}".format(name[6:], count)
        if line and len(line) + len(word) > _LINE:
            moat_link.say("  " + line)
            line = ""
        line += (", " if line else "") + word
    moat_link.say("  " + line)


def replace_operators(torch):
    """Replaces PyTorch's operators when CUDA is first used."""
    if getattr(torch.version, "cuda", None) is None:
        return None
    plain = getattr(torch.cuda, "_lazy_init", None)
    if plain is None:
        return None

    own = frozenset(_python_kernels(torch))

    @functools.wraps(plain)
    def lazy_init():
        global _state
        plain()
        if _state is None:
            _state = _State(torch)
            try:
                _register(torch, own)
            except Exception as why:
                moat_link.say("PyTorch's operators are not replaced: {}".format(why))
            atexit.register(_summarise)

    torch.cuda._lazy_init = lazy_init
    return None
