# SPDX-License-Identifier: MIT
"""The few calls of the CUDA driver that the tests of the Python package need, through ctypes."""

import ctypes

_PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 to, .param .u64 index, .param .u32 value)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [index];
    ld.param.u32 %r1, [value];
    shl.b64 %rd2, %rd2, 2;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}
.visible .entry stop()
{
    trap;
    ret;
}
"""


class Error(Exception):
    pass


class Device:
    """The primary context of device 0, with a module."""

    def __init__(self):
        self._driver = ctypes.CDLL("libcuda.so.1")
        context, self._module = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self._call("cuCtxSetCurrent", context)
        self._call("cuModuleLoadData", ctypes.byref(self._module), _PTX)

    def _call(self, name, *arguments):
        code = getattr(self._driver, name)(*arguments)
        if code:
            raise Error("{}: {}".format(name, code))

    def alloc(self, size):
        pointer = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer.value

    def free(self, pointer):
        self._call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def upload(self, pointer, data):
        self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), data, ctypes.c_size_t(len(data)))

    def download(self, pointer, size):
        data = ctypes.create_string_buffer(size)
        self._call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(pointer), ctypes.c_size_t(size))
        return data.raw

    def launch(self, kernel, *arguments):
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), self._module, kernel.encode())
        pointers = (ctypes.c_void_p * max(len(arguments), 1))(*[ctypes.addressof(a) for a in arguments])
        self._call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, pointers, None)

    def fill(self, pointer, index, value):
        """Starts a kernel that writes a word; does not wait for it."""
        self.launch("fill", ctypes.c_uint64(pointer), ctypes.c_uint64(index), ctypes.c_uint32(value))

    def wait(self):
        self._call("cuCtxSynchronize")
