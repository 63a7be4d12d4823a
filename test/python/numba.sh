#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# Numba-CUDA's kernels on the CPU device, each kind against NumPy, from an empty cache and from a full one; an
# error with the lines of the kernel and of its launch, and the array; the option that turns it off.
set -u
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || { echo 'a sanitizer wants to be loaded first'; exit 77; }
grep -q moat_numba "$BUILD/lib/moat/python/sitecustomize.py" ||
    { echo 'sitecustomize.py has no rows for moat_numba.py'; exit 77; }
python=$(test/python/env numba) || { echo "$python"; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
passed=0 failed=0
export NUMBA_CACHE_DIR=$T/cache PYTHONDONTWRITEBYTECODE=1
unset PYTHONPATH NUMBA_ENABLE_CUDASIM CUDA_HOME CUDA_PATH
program=test/python/numba_cases.py

check() {  # check STATUS PATTERN WHAT: of the program that just ran
    if [ "$status" = "$1" ] && grep -Eq -- "$2" "$T/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $3: status $status, expected $1 and \"$2\""
        tail -n 30 "$T/log" | sed 's/^/    | /'
    fi
}

watch() {  # watch [OPTION...] -- [CASE...]
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    timeout 1800 "$MOAT" --device=cpu "${options[@]}" "$python" $program "${@:2}" >"$T/log" 2>&1 </dev/null
    status=$?
}

watch --
for name in $(sed -n 's/^def \(case_[a-z_]*\).*/\1/p' $program); do
    check 0 "^ok $name\$" "$name"
done
check 0 '^cache hits: 0$' 'an empty cache'
check 0 'moat: 0 errors' 'no errors'
watch -- case_cache
check 0 '^cache hits: 1$' 'a full cache'
# What is in the cache is machine code, with moat as without it.
watch --no-jit-ptx -- case_cache
check 1 'modules that the driver refused to load  *1$' 'without the PTX nothing can be loaded'

load=$(grep -n 'line of the bad load' $program | cut -d: -f1)
launch=$(grep -n 'line of the launch' $program | cut -d: -f1)
watch --mode=api -- bad_read
check 97 "heap-buffer-overflow on device 0 .*numba_cases.py:$load\$" 'the kernel'
check 97 "#0 bad_read .*numba_cases.py:$launch\$" 'the launch'
check 97 'argument a: float32, shape \[1000\], strides \[1\]; the access is at index \[4194304\]' 'the array'
check 97 '^FAIL bad_read CudaAPIError .*ILLEGAL_ADDRESS' "Numba's own exception"

# Under check, which is the mode without options.
watch -- bad_shared
line=$(grep -n 'line of the bad shared load' $program | cut -d: -f1)
launch=$(grep -n 'line of the shared launch' $program | cut -d: -f1)
check 97 "^SUMMARY: moat: shared-buffer-overflow .*numba_cases.py:$line in .*::add_up\(Array" 'shared memory'
check 97 "#0 _sum_of_blocks .*numba_cases.py:$launch\$" 'shared memory: the launch'
check 97 'bytes after the shared variable .* of 512 bytes' 'shared memory: the array'
watch -- bad_atomic
line=$(grep -n 'line of the bad atomic' $program | cut -d: -f1)
check 97 "^SUMMARY: moat: heap-buffer-overflow .*numba_cases.py:$line in .*::count\(Array" 'an atomic'
check 97 'is `table`, argument bins: int32, shape \[16\], strides \[1\]; .* index \[16\], outside' 'its array'
# An array of the host, which the launch copies, has the program's name.
watch -- bad_host_array
line=$(grep -n 'line of the bad neighbour' $program | cut -d: -f1)
check 97 "^SUMMARY: moat: heap-buffer-.* .*numba_cases.py:$line in .*::blur\(" 'an array of the host'
check 97 'is `image`, argument x: float64, shape \[30, 50\], strides \[50, 1\]; ' 'its name'
# Without lines, where the array was made still says which one it is.
watch -- bad_guard
check 97 'lines of source are shown of kernels .*, in Numba lineinfo=True$' 'no lines: the option is named'
check 97 "#0 _scale .*:$(grep -n 'line of the allocation' $program | cut -d: -f1)\$" 'the allocation'
check 97 "#0 _scale .*:$(grep -n 'line of the managed' $program | cut -d: -f1)\$" 'the managed allocation'
check 97 'the address is .* is the address of `numbers`, argument x\)$' 'the parameter'
watch -- good_shared good_atomic good_host_array
check 0 '^ok good_atomic' 'their twins'
check 0 '^ok good_host_array' 'their twins'
check 0 'moat: 0 errors' 'their twins are silent'
echo "$passed passed, $failed failed"
[ $failed = 0 ]
