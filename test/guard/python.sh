#!/bin/bash
# SPDX-License-Identifier: MIT
# --torch-alloc and --unpool from the command to the driver, with fake torch and cupy modules: what Python
# finds, what is printed, what stays unchanged. With the real ones: test/gpu/frameworks.sh.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
command -v python3 >/dev/null || { echo 'no python3'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
unset PYTHONPATH NVTX_INJECTION64_PATH PYTORCH_NO_CUDA_MEMORY_CACHING XLA_PYTHON_CLIENT_PREALLOCATE \
    XLA_PYTHON_CLIENT_ALLOCATOR
export PYTHONDONTWRITEBYTECODE=1

check() {  # check STATUS PATTERN WHAT: of the program that just ran
    if [ "$status" = "$1" ] && grep -Eq -- "$2" "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $3: status $status, expected $1 and \"$2\""
        tail -n 30 "$T/log" | sed 's/^/    | /'
    fi
}

not() {  # not PATTERN WHAT
    if grep -Eq -- "$1" "$T/log"; then
        failed=$((failed + 1))
        echo "FAIL $2: \"$1\""
    fi
}

watch() {  # watch OPTION... PROGRAM
    timeout 60 "$MOAT" --device=cpu "${@:1:$#-1}" python3 "$T/${!#}" >"$T/log" 2>&1 </dev/null
    status=$?
}

# The modules: `theirs` is a folder as users have it on PYTHONPATH, with a sitecustomize of its own.
mkdir -p "$T/theirs/torch" "$T/theirs/cupy"
cat >"$T/theirs/sitecustomize.py" <<'END'
print("their own sitecustomize", __name__)
END
cat >"$T/theirs/torch/__init__.py" <<'END'
import ctypes
import types

version = types.SimpleNamespace(cuda="13.0")


class CUDAPluggableAllocator:
    def __init__(self, path, alloc, free):
        library = ctypes.CDLL(path)
        self.alloc, self.free = getattr(library, alloc), getattr(library, free)
        self.alloc.restype = ctypes.c_void_p
        self.alloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        self.free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]


def change_current_allocator(allocator):
    global current
    current = allocator


current = None
memory = types.SimpleNamespace(
    CUDAPluggableAllocator=CUDAPluggableAllocator, change_current_allocator=change_current_allocator
)
cuda = types.SimpleNamespace(memory=memory)


def _no_statistics(*arguments):
    if current:
        raise RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats")
    return {"allocated": 1}


_C = types.SimpleNamespace(_cuda_memoryStats=_no_statistics, _cuda_resetPeakMemoryStats=_no_statistics)
END
cat >"$T/theirs/cupy/__init__.py" <<'END'
import types

said = []
cuda = types.SimpleNamespace(
    set_allocator=lambda a: said.append(a), set_pinned_memory_allocator=lambda a: said.append(a)
)
END
export PYTHONPATH=$T/theirs

cat >"$T/tensors.py" <<'END'
import ctypes
import sys

import torch

assert type(torch.__loader__).__name__ == "SourceFileLoader", torch.__loader__
assert torch.__spec__.loader is torch.__loader__
a = torch.current
driver = ctypes.CDLL("libcuda.so.1")
copy = driver.cuMemcpyHtoD_v2
copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
host = ctypes.create_string_buffer(5000)
assert a.alloc(0, 0, None) is None
first, second = a.alloc(1000, 0, None), a.alloc(3000, 0, None)
context = ctypes.c_void_p(1)
assert driver.cuCtxGetCurrent(ctypes.byref(context)) == 0 and context.value is None
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0
assert copy(first, host, 1000) == 0 and copy(second, host, 3000) == 0
if "%s" == "bad":
    assert copy(first, host, 1001) == 1
a.free(first, 1000, 0, None)
a.free(second, 3000, 0, None)
print("done")
END
sed 's/%s/bad/' "$T/tensors.py" >"$T/bad.py"
sed 's/%s/good/' "$T/tensors.py" >"$T/good.py"
watch --torch-alloc good.py
check 0 '^done' 'torch-alloc'
check 0 'PyTorch allocates through moat' 'torch-alloc says so'
check 0 "moat replaces PyTorch's allocator" 'the banner says so'
check 0 'allocations  *2$' 'two tensors are two buffers'
check 0 'frees  *2$' 'and both are freed'
check 0 'their own sitecustomize sitecustomize' 'their own sitecustomize runs'
not 'ERROR|CuPy' 'torch-alloc, nothing wrong'
watch --torch-alloc bad.py
check 97 'ERROR: moat: heap-buffer-overflow' 'torch-alloc, an overflow'
check 97 '0 bytes after 1000-byte region' 'torch-alloc, whose overflow'

# PyTorch's own statistics are lost, not the program that prints them.
echo 'from torch import _C; print("statistics", _C._cuda_memoryStats(0), _C._cuda_resetPeakMemoryStats(0))' \
    >"$T/statistics.py"
watch --torch-alloc statistics.py
check 98 '^statistics \{\} None' 'statistics'
watch --no-torch-alloc statistics.py
check 98 "^statistics \\{'allocated': 1\\}" "PyTorch's statistics"

# Without any of these options Python is not changed.
echo 'import sys, torch, cupy; print(torch.current, cupy.said, [p for p in sys.path if "moat" in p])' \
    >"$T/alone.py"
watch --mode=api --no-jit-ptx --no-torch-ops alone.py
check 98 '^None \[\] \[\]' 'no option'
watch --mode=api alone.py
check 98 "^None \[\] \['.*moat/python'\]" 'api'
not 'watching' 'api'
# On the CPU device the default checks kernels, for which each tensor is a buffer of its own.
watch --no-torch-alloc alone.py
check 98 "^None \[\] \['.*moat/python'\]" 'the default with a pool'
watch alone.py
check 98 "^<torch.CUDAPluggableAllocator .*> \[\] \['.*moat/python'\]" 'the defaults'
not 'watching' 'the defaults'

# A process that imports torch and uses no GPU is not reported on.
echo 'import torch; print("ran")' >"$T/import.py"
watch --torch-alloc import.py
check 98 '^ran' 'torch is imported only'
not 'watching' 'torch is imported only'

# A child process that only starts the driver, as those that compile kernels do, prints nothing.
cat >"$T/parent.py" <<'END'
import ctypes, subprocess, sys

child = "import ctypes; print('child', ctypes.CDLL('libcuda.so.1').cuInit(0))"
subprocess.run([sys.executable, "-c", child], check=True)
driver, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0 and driver.cuMemAlloc_v2(ctypes.byref(memory), 64) == 0
END
watch parent.py
check 0 '^child 0' 'a child without work'
not 'NOTHING WAS WATCHED' 'a child without work'
[ "$(grep -c ': watching ' "$T/log")" = 1 ] || { echo 'FAIL a child has a banner'; failed=$((failed + 1)); }

# Failures are reported, and the program runs.
cp -r "$T/theirs" "$T/refusing"
echo 'def change_current_allocator(a): raise RuntimeError("already initialized")
memory.change_current_allocator = change_current_allocator' >>"$T/refusing/torch/__init__.py"
PYTHONPATH=$T/refusing watch --torch-alloc import.py
check 98 'torch keeps its own allocator: already initialized' 'an allocator that cannot be replaced'
check 98 '^ran' 'it runs all the same'
cp -r "$T/theirs" "$T/cpu"
echo 'version.cuda = None' >>"$T/cpu/torch/__init__.py"
PYTHONPATH=$T/cpu watch --torch-alloc import.py
check 98 'built without CUDA' 'a torch without CUDA'
cp -r "$T/theirs" "$T/broken"
echo 'raise ImportError("torch is broken")' >"$T/broken/torch/__init__.py"
PYTHONPATH=$T/broken watch --torch-alloc import.py
check 1 'ImportError: torch is broken' 'a torch that cannot be imported'
rm -r "$T/cpu/torch"
PYTHONPATH=$T/cpu watch --torch-alloc import.py
check 1 "No module named 'torch'" 'no torch'
PYTHONPATH=$T/theirs MOAT_PYTHON=torch-alloc \
    python3 -c "import sys; sys.path.insert(0, '$BUILD/lib/moat/python'); import importlib
del sys.modules['sitecustomize']; import sitecustomize, torch; print(torch.current)" >"$T/log" 2>&1
status=$?
check 0 'None' 'the module without the library'
check 0 'moat: ' 'says why'

# --unpool: variables that the user has set stay.
cat >"$T/pools.py" <<'END'
import ctypes
import os

import cupy

print(cupy.said, [os.environ.get(v) for v in (
    "PYTORCH_NO_CUDA_MEMORY_CACHING", "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_ALLOCATOR")])
ctypes.CDLL("libcuda.so.1").cuInit(0)
END
# pools.py only starts the driver, so nothing is watched.
XLA_PYTHON_CLIENT_ALLOCATOR=bfc watch --unpool pools.py
check 98 "^\[None, None\] \['1', 'false', 'bfc'\]" 'unpool'
check 98 "pools are turned off: PYTORCH_NO_CUDA_MEMORY_CACHING=1 XLA_PYTHON_CLIENT_PREALLOCATE=false$" \
    'unpool says so'
check 98 'because the environment sets XLA_PYTHON_CLIENT_ALLOCATOR=bfc' 'unpool leaves what is set'
check 98 "CuPy's pools are off" 'unpool for CuPy'
watch --unpool pools.py
check 98 "^\[None, None\] \['1', 'false', 'cuda_async'\]" 'unpool, nothing set before'

# CuPy's cache has no PTX: where kernels are looked into they are compiled anew, unless the user decides.
cat >"$T/caches.py" <<'END'
import ctypes
import os

import cupy

print("in memory:", os.environ.get("CUPY_CACHE_IN_MEMORY"))
ctypes.CDLL("libcuda.so.1").cuInit(0)
END
watch --mode=check caches.py
check 98 '^in memory: 1$' 'check has PTX of all kernels'
watch --mode=api caches.py
check 98 '^in memory: None$' 'api needs none'
CUPY_CACHE_IN_MEMORY=0 watch --mode=check caches.py
check 98 '^in memory: 0$' 'what the user has set'
watch --mode=check --no-jit-ptx caches.py
check 98 '^in memory: None$' '--no-jit-ptx'

echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
