# SPDX-License-Identifier: MIT
"""Triton and PyTorch's Inductor: the PTX of each kernel is told to moat before its machine code is loaded."""

import functools

import moat_link


def keep_ptx(compiler):
    """Triton: a compiled kernel has its PTX beside its machine code, from the cache too."""
    kernel_class = compiler.CompiledKernel
    plain = kernel_class._init_handles

    @functools.wraps(plain)
    def init_handles(self):
        if self.module is None and "ptx" in self.asm and "cubin" in self.asm:
            moat_link.keep_ptx(self.asm["cubin"], self.asm["ptx"])
        return plain(self)

    kernel_class._init_handles = init_handles


def keep_inductor_ptx(launcher):
    """Inductor's launcher loads a file from Triton's cache, where the PTX lies beside it."""
    for name in ("StaticallyLaunchedTritonKernel", "StaticallyLaunchedCudaKernel"):
        kernel_class = getattr(launcher, name, None)
        if kernel_class is None or "load_kernel" not in vars(kernel_class):
            continue
        _wrap_load(kernel_class)


def _wrap_load(kernel_class):
    plain = kernel_class.load_kernel

    @functools.wraps(plain)
    def load_kernel(self, device):
        path = getattr(self, "cubin_path", None)
        if path is not None:
            moat_link.keep_ptx_beside(path)
        return plain(self, device)

    kernel_class.load_kernel = load_kernel


def _no_measuring(module, choose):
    module.Autotuner._bench = choose


def autotune_first(module):
    pass


def autotune_all(module):
    pass
