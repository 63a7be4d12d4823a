#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Errors in programs of Python's that call the driver and the CUDA runtime by ctypes name Python's functions
# and lines: where the call was, and where memory was allocated and freed, in each release of Python that is
# here. Neither a GPU nor a package of Python's is needed.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
export XDG_CACHE_HOME=$T/cache PYTHONDONTWRITEBYTECODE=1
passed=0 failed=0
mkdir -p "$T/site-packages"

cat >"$T/site-packages/binding.py" <<'END'
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL("libcudart.so." + sys.argv[2])


def copy_through(to, text, count):
    return cuda.cuMemcpyHtoD_v2(to, text, ctypes.c_size_t(count))
END
# The line of a call is found by what stands behind it.
cat >"$T/näme.py" <<'END'
import ctypes
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
import binding

cuda, runtime = binding.cuda, binding.runtime
text = ctypes.create_string_buffer(4096)


def check(error):
    if error:
        print("error", error)


def allocate(count):
    p = ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(count)))  # allocates
    return p


def driver():
    p = allocate(100)
    check(cuda.cuMemcpyHtoD_v2(p, text, ctypes.c_size_t(104)))  # driver


def plain_runtime():
    p = ctypes.c_void_p()
    check(runtime.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(100)))
    check(runtime.cudaMemset(p, 1, ctypes.c_size_t(104)))  # plain_runtime


def package():
    check(binding.copy_through(allocate(100), text, 104))  # package


def äußerst():
    check(cuda.cuMemsetD8_v2(allocate(100), 1, ctypes.c_size_t(104)))  # äußerst


def freed():
    p = allocate(100)
    check(cuda.cuMemFree_v2(p))  # frees
    check(cuda.cuMemFree_v2(p))  # freed


def launch():
    module, function, p = ctypes.c_void_p(), ctypes.c_void_p(), allocate(100)
    check(cuda.cuModuleLoad(ctypes.byref(module), sys.argv[3].encode()))
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"write"))
    where = ctypes.c_uint64(p.value + 100)
    args = (ctypes.c_void_p * 1)(ctypes.addressof(where))
    check(cuda.cuLaunchKernel(function, 3, 1, 1, 64, 1, 1, 0, None, args, None))  # launch
    check(cuda.cuCtxSynchronize())


def thread():
    t = threading.Thread(target=in_thread)
    t.start()
    t.join()


def in_thread():
    check(cuda.cuCtxSetCurrent(context))
    check([cuda.cuMemcpyHtoD_v2(allocate(100), text, ctypes.c_size_t(n)) for n in (100, 104)][1])  # thread


def generator():
    for error in (cuda.cuMemcpyHtoD_v2(allocate(100), text, ctypes.c_size_t(n)) for n in (8, 104)):  # generator
        check(error)


def called_back():
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def order(a, b):
        cuda.cuMemcpyHtoD_v2(allocate(100), text, ctypes.c_size_t(104))  # called_back
        return 0

    ctypes.CDLL(None).qsort(text, ctypes.c_size_t(2), ctypes.c_size_t(1), kind(order))


def many(depth):
    if depth:
        many(depth - 1)
    else:
        driver()


context = ctypes.c_void_p()
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
if sys.argv[1] == "toplevel":
    check(cuda.cuMemcpyHtoD_v2(allocate(100), text, ctypes.c_size_t(104)))  # toplevel
elif sys.argv[1] == "many":
    many(50)
else:
    globals()[sys.argv[1]]()
END
line_of() { grep -n "# $1\$" "$T/näme.py" | cut -d: -f1; }

report() {  # report WHAT PATTERN...: runs it; the report has these lines
    local what=$1 pattern missing=
    shift
    timeout 120 "$MOAT" --device=cpu "$python" "$T/näme.py" "$what" "$runtime" test/cpu/faults.ptx >"$T/log" \
        2>&1 </dev/null
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$T/log" || missing+=" '$pattern'"
    done
    ! grep -qE '^    #[0-9]+ .*(libffi|_ctypes|libc\.so|[/ b]python[0-9.]*)[^ /]*\+0x' "$T/log" ||
        missing+=' (frames of the interpreter)'
    if [ -z "$missing" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $version, $what: no line$missing"
        tail -n 30 "$T/log" | sed 's/^/    | /'
    fi
}

all_of() {
    local place="$T/näme.py" made
    made="allocate $place:$(line_of allocates)\$"
    report driver "#0 driver $place:$(line_of driver)\$" "#0 $made" \
        "^SUMMARY: .* $place:$(line_of driver) in driver"
    report plain_runtime '#0 cudaMemset' "#1 plain_runtime $place:$(line_of plain_runtime)\$" \
        "^SUMMARY: .* $place:$(line_of plain_runtime) in plain_runtime"
    report package '#0 copy_through .*site-packages/binding.py:9$' "#1 package $place:$(line_of package)\$" \
        "^SUMMARY: .* $place:$(line_of package) in package"
    report äußerst "^SUMMARY: .* $place:$(line_of äußerst) in äußerst"
    report freed "#0 freed $place:$(line_of freed)\$" "#0 freed $place:$(line_of frees)\$" "#0 $made"
    report launch "#0 launch $place:$(line_of launch)\$" "#0 $made"
    report thread "#[01] in_thread $place:$(line_of thread)\$" "#0 $made"
    report generator "#0 <genexpr> $place:$(line_of generator)\$" "#1 generator $place:"
    report called_back "#0 order $place:$(line_of called_back)\$" "#[0-9] called_back $place:"
    report toplevel "#0 <module> $place:$(line_of toplevel)\$" \
        "^SUMMARY: .* $place:$(line_of toplevel) in <module>"
    report many "#0 driver $place:$(line_of driver)\$" "#1 many $place:"
}

runtime=13 tried=
for name in python3 /usr/bin/python3 python3.{6..13}; do
    python=$("$name" -c 'import ctypes, sys; print(sys.executable)' 2>/dev/null) || continue
    version=$("$python" -c 'import sys
known = (3, 6) <= sys.version_info < (3, 14) and not hasattr(sys, "gettotalrefcount")
print(sys.version.split()[0] if known else "")')
    [[ $version && " $tried" != *" $version, "* ]] || continue
    tried+="$version, "
    all_of
done
[ -n "$tried" ] || { echo 'no Python with ctypes'; exit 77; }
echo "Python ${tried%, }: $passed passed, $failed failed"
[ $failed = 0 ]
