# SPDX-License-Identifier: MIT
"""Waits for the CUDA work of this process, through the driver's library that moat has put in front."""

import ctypes

# Errors after which a context cannot be used any more: an illegal access, a failed launch, an assertion and
# their relatives.
_FATAL = frozenset([700, 702, 709, 710]) | frozenset(range(714, 721))


def _name(driver, code):
    text = ctypes.c_char_p()
    if driver.cuGetErrorName(code, ctypes.byref(text)) or not text.value:
        return "CUDA error {}".format(code)
    return text.value.decode()


def _primary_contexts(driver):
    """Yields the device of each primary context in use, while that context is current."""
    count, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)):
        return
    for device in range(count.value):
        context = ctypes.c_void_p()
        if (
            driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
            or not active.value
        ):
            continue
        if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
            continue
        if not driver.cuCtxPushCurrent_v2(context):
            yield device
            driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        driver.cuDevicePrimaryCtxRelease_v2(device)


def synchronize():
    """Waits until the current context and all primary contexts are idle. Returns the name of the error that
    has made one of them useless, or None. To be called only in a process that uses CUDA."""
    driver = ctypes.CDLL("libcuda.so.1")
    current = ctypes.c_void_p()
    if driver.cuInit(0) or driver.cuCtxGetCurrent(ctypes.byref(current)):
        return None
    codes = [driver.cuCtxSynchronize()] if current.value else []
    codes += [driver.cuCtxSynchronize() for _ in _primary_contexts(driver)]
    fatal = [code for code in codes if code in _FATAL]
    return _name(driver, fatal[0]) if fatal else None
