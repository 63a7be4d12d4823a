# SPDX-License-Identifier: MIT
"""Triton and PyTorch's Inductor: moat receives each kernel's PTX before its machine code is loaded."""

import functools

import moat_link


def _missing(whose, name):
    """Says which kernel stays machine code: the CPU device refuses it, and no mode rewrites it."""
    if moat_link.is_moat():
        moat_link.say("the PTX of {}'s kernel {} could not be had".format(whose, name))


def keep_ptx(compiler):
    """Triton: a compiled kernel has its PTX beside its machine code, from the cache too."""
    kernel_class = compiler.CompiledKernel
    plain = kernel_class._init_handles

    @functools.wraps(plain)
    def init_handles(self):
        if self.module is None:
            code, ptx = self.asm.get("cubin"), self.asm.get("ptx")
            if code is None or ptx is None or not moat_link.keep_ptx(code, ptx):
                _missing("Triton", getattr(self, "name", "?"))
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
        if path is not None and not moat_link.keep_ptx_beside(path):
            _missing("Inductor", getattr(self, "name", "?"))
        return plain(self, device)

    kernel_class.load_kernel = load_kernel


# --- autotuning ---------------------------------------------------------------------------------------------
#
# Times on the CPU device say nothing about a GPU. By default the first configuration that fits is taken;
# with --autotune=all each runs once, so that each is checked. Caches of measured choices stay as they are.


def autotune_first(autotuner):
    """Triton's autotuner takes the first configuration that the device has the resources for."""
    tuner = autotuner.Autotuner
    _forget_measurements(tuner)
    plain_prune, plain_run = tuner.prune_configs, tuner.run

    @functools.wraps(plain_prune)
    def prune_configs(self, kwargs):
        configs = list(plain_prune(self, kwargs))
        skip = min(getattr(self, "_moat_skip", 0), len(configs) - 1)
        return configs[skip : skip + 1]

    @functools.wraps(plain_run)
    def run(self, *args, **kwargs):
        while True:
            try:
                return plain_run(self, *args, **kwargs)
            except autotuner.OutOfResources:
                self._moat_skip = getattr(self, "_moat_skip", 0) + 1
                if self._moat_skip >= len(self.configs):
                    raise
                self.cache.clear()

    tuner.prune_configs, tuner.run = prune_configs, run


def autotune_all(autotuner):
    """Triton's autotuner runs each configuration once and takes the first of those that fit."""
    _forget_measurements(autotuner.Autotuner)


def _run_once(kernel_call, quantiles=None, **others):
    kernel_call()
    return [1.0] * len(quantiles or (0.5, 0.2, 0.8))


def _forget_measurements(tuner):
    def check_disk_cache(self, tuning_key, configs, bench_fn):
        bench_fn()
        return False

    tuner.do_bench = property(lambda self: _run_once, lambda self, value: None)
    if hasattr(tuner, "check_disk_cache"):
        tuner.check_disk_cache = check_disk_cache


def inductor_measures_once(benchmarking):
    """Inductor's benchmarks run what they measure once; all are equally fast."""

    def benchmark_gpu(self, _callable, *args, **kwargs):
        _callable()
        return [1.0] if kwargs.get("return_mode") == "all" else 1.0

    for value in list(vars(benchmarking).values()):
        if isinstance(value, type) and "benchmark_gpu" in vars(value):
            value.benchmark_gpu = benchmark_gpu


def inductor_first(heuristics):
    """Inductor's autotuner takes its first configuration, and does not store that as the fastest."""
    tuner = heuristics.CachingAutotuner
    _store_nothing(tuner)

    def benchmark_all_configs(self, *args, **kwargs):
        return {launcher: float(i) for i, launcher in enumerate(self.launchers)}

    tuner.benchmark_all_configs = benchmark_all_configs


def inductor_all(heuristics):
    """Inductor's autotuner runs each configuration once and takes the first."""
    _store_nothing(heuristics.CachingAutotuner)


def _store_nothing(tuner):
    plain = tuner.autotune_to_one_config

    @functools.wraps(plain)
    def autotune_to_one_config(self, *args, **kwargs):
        hook, self.save_cache_hook = self.save_cache_hook, None
        try:
            return plain(self, *args, **kwargs)
        finally:
            self.save_cache_hook = hook

    tuner.autotune_to_one_config = autotune_to_one_config
