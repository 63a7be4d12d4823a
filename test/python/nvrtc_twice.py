# SPDX-License-Identifier: MIT
"""Machine code of NVRTC and nvJitLink through cuda.bindings: nvrtc_twice.py nvrtc|link|lto."""

import array
import ctypes
import sys

from cuda.bindings import driver, nvjitlink, nvrtc

SOURCE = b"""extern "C" __global__ void twice(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= 2;
}"""


def call(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) == 2 else result[1:]


def compiled(get_size, get, *options):
    program = call(nvrtc.nvrtcCreateProgram(SOURCE, b"twice.cu", 0, [], []))
    call(nvrtc.nvrtcCompileProgram(program, len(options), list(options)))
    code = b" " * call(get_size(program))
    call(get(program, code))
    return code


def linked(kind, code, *options):
    handle = nvjitlink.create(len(options), list(options))
    nvjitlink.add_data(handle, kind, code, len(code), "twice")
    nvjitlink.complete(handle)
    cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, cubin)
    nvjitlink.destroy(handle)
    return bytes(cubin)


def machine_code(how):
    if how == "nvrtc":
        return compiled(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, b"-arch=sm_90")
    if how == "link":
        ptx = compiled(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, b"-arch=compute_90")
        return linked(nvjitlink.InputType.PTX, ptx, "-arch=sm_90")
    code = compiled(nvrtc.nvrtcGetLTOIRSize, nvrtc.nvrtcGetLTOIR, b"-arch=compute_90", b"-dlto")
    return linked(nvjitlink.InputType.LTOIR, code, "-arch=sm_90", "-lto")


def main(how):
    code = machine_code(how)
    assert code.startswith(b"\x7fELF")
    call(driver.cuInit(0))
    call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(0))))
    function = call(driver.cuModuleGetFunction(call(driver.cuModuleLoadData(code)), b"twice"))
    numbers = array.array("f", range(100))
    host, size = numbers.buffer_info()[0], 400
    device = call(driver.cuMemAlloc(size))
    call(driver.cuMemcpyHtoD(device, host, size))
    arguments = ((int(device), 100), (ctypes.c_void_p, ctypes.c_int))
    call(driver.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, 0, arguments, 0))
    call(driver.cuMemcpyDtoH(host, device, size))
    assert list(numbers) == [2.0 * i for i in range(100)], list(numbers)
    print("right")


main(sys.argv[1])
