# SPDX-License-Identifier: MIT
"""nvrtc.py LIBRARY ARCH SOURCE.cu OUT.ptx: compile with NVRTC, through its C interface."""
import ctypes
import sys


def main():
    library, arch, source, out = sys.argv[1:]
    nvrtc = ctypes.CDLL(library)
    program = ctypes.c_void_p()

    def call(name, *args):
        status = getattr(nvrtc, name)(*args)
        if status:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(max(size.value, 1))
            nvrtc.nvrtcGetProgramLog(program, log)
            sys.exit(f"{name}: status {status}\n{log.value.decode()}")

    text = open(source, "rb").read()
    call("nvrtcCreateProgram", ctypes.byref(program), text, source.encode(), 0, None, None)
    options = (ctypes.c_char_p * 2)(f"--gpu-architecture={arch}".encode(), b"-lineinfo")
    call("nvrtcCompileProgram", program, 2, options)
    size = ctypes.c_size_t()
    call("nvrtcGetPTXSize", program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    call("nvrtcGetPTX", program, ptx)
    open(out, "wb").write(ptx.value)  # ptxas refuses the NUL at its end


main()
