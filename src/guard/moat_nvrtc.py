# SPDX-License-Identifier: MIT
"""NVRTC and nvJitLink through NVIDIA's Python bindings: moat receives the PTX before the machine code.

A program of NVRTC has its PTX beside its machine code. What nvJitLink has linked has none: a single PTX input
is the text itself, and code for link-time optimization is linked again with -ptx."""

import functools

import moat_link


def _missing(what):
    if moat_link.is_moat():
        moat_link.say("the PTX of what {} could not be had".format(what))


def keep_nvrtc_ptx(nvrtc):
    """cuda.bindings.nvrtc: functions return a tuple of a code and values, and fill bytes in place."""
    plain = nvrtc.nvrtcGetCUBIN

    @functools.wraps(plain)
    def get_cubin(prog, cubin):
        result = plain(prog, cubin)
        if int(result[0]) == 0:
            error, size = nvrtc.nvrtcGetPTXSize(prog)
            ptx = b" " * (size if int(error) == 0 else 0)
            if not ptx or int(nvrtc.nvrtcGetPTX(prog, ptx)[0]) or not moat_link.keep_ptx(bytes(cubin), ptx):
                _missing("NVRTC compiled")
        return result

    nvrtc.nvrtcGetCUBIN = get_cubin


class _Link:
    """The options and inputs of a link; an input is None if it is not known."""

    def __init__(self, options):
        self.options = list(options)
        self.inputs = []


def keep_nvjitlink_ptx(nvjitlink):
    """cuda.bindings.nvjitlink: a link has a handle, and fills a buffer."""
    links = {}
    create, add_data, add_file = nvjitlink.create, nvjitlink.add_data, nvjitlink.add_file
    get_cubin, destroy = nvjitlink.get_linked_cubin, nvjitlink.destroy

    def linked_again(link):
        handle = create(len(link.options) + 1, link.options + ["-ptx"])
        try:
            for kind, data, name in link.inputs:
                add_data(handle, kind, data, len(data), name)
            nvjitlink.complete(handle)
            ptx = bytearray(nvjitlink.get_linked_ptx_size(handle))
            nvjitlink.get_linked_ptx(handle, ptx)
            return bytes(ptx)
        finally:
            destroy(handle)

    def ptx_of(link):
        if link is None or None in link.inputs:
            return None
        if len(link.inputs) == 1 and link.inputs[0][0] == nvjitlink.InputType.PTX:
            return link.inputs[0][1]
        return linked_again(link)

    @functools.wraps(create)
    def new_create(num_options, options):
        handle = create(num_options, options)
        links[int(handle)] = _Link(options)
        return handle

    @functools.wraps(add_data)
    def new_add_data(handle, input_type, data, size, name):
        result = add_data(handle, input_type, data, size, name)
        if int(handle) in links:
            known = isinstance(data, (bytes, bytearray, memoryview))
            links[int(handle)].inputs.append((input_type, bytes(data)[:size], name) if known else None)
        return result

    @functools.wraps(add_file)
    def new_add_file(handle, *rest):
        result = add_file(handle, *rest)
        if int(handle) in links:
            links[int(handle)].inputs.append(None)
        return result

    @functools.wraps(get_cubin)
    def new_get_cubin(handle, cubin):
        result = get_cubin(handle, cubin)
        try:
            ptx = ptx_of(links.get(int(handle)))
        except Exception:  # a link without code for link-time optimization has no PTX
            ptx = None
        known = ptx is not None and isinstance(cubin, (bytes, bytearray))
        if not known or not moat_link.keep_ptx(bytes(cubin), ptx):
            _missing("nvJitLink linked")
        return result

    @functools.wraps(destroy)
    def new_destroy(handle):
        links.pop(int(handle), None)
        return destroy(handle)

    nvjitlink.create, nvjitlink.add_data, nvjitlink.add_file = new_create, new_add_data, new_add_file
    nvjitlink.get_linked_cubin, nvjitlink.destroy = new_get_cubin, new_destroy
