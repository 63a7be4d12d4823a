#!/bin/bash
# SPDX-License-Identifier: MIT
# Triton's kernels on the CPU device: right results without a hook of the user's, from an empty cache and from
# a full one; autotuning; the option that turns it off; and that caches hold the same with and without moat.
set -u
# shellcheck source=test/python/common
. test/python/common

watch triton_language.py
check 0 '^add ok' 'vector add'
check 0 '^dot_bf16_pipelined ok' 'tl.dot with asynchronous copies'
check 0 '^descriptors_on_host ok' 'tensor descriptors'
check 0 'autotune: the kernel ran 1 times' 'the first configuration'
check 0 'kernel launches.* 9$' 'launches are watched'
not 'WRONG|refused' 'kernels'
find "$T/triton" -name '*.cubin' -exec sha256sum {} + | sort >"$T/before"
[ -s "$T/before" ] || { echo 'FAIL no machine code in the cache'; failed=$((failed + 1)); }

watch --autotune=all triton_language.py
check 0 'autotune: the kernel ran 4 times' 'every configuration once, then the first'
not 'WRONG' 'kernels from the cache'
find "$T/triton" -name '*.cubin' -exec sha256sum {} + | sort >"$T/after"
[ "$(comm -23 "$T/before" "$T/after")" = '' ] || { echo 'FAIL the cache changed'; failed=$((failed + 1)); }
if find "$T/triton" -name '*.autotune.json' | grep -q .; then
    echo 'FAIL a configuration that was not measured is in the cache'
    failed=$((failed + 1))
fi

XDG_CACHE_HOME=$T/moat watch --mode=count triton_language.py
check 0 'modules rewritten  *9$' 'modes that rewrite work on that PTX'
check 0 ' 1  *12,544  *199,998  *99,999  *799,992  *399,996  add$' 'what the vector add reads and writes'
not 'WRONG' 'rewritten kernels'

XDG_CACHE_HOME=$T/moat watch --mode=check triton_language.py
check 0 'kernel launches checked  *9$' 'check looks at every launch'
not 'WRONG|ERROR: moat' 'correct kernels are silent under check'
for where in load store before; do
    XDG_CACHE_HOME=$T/moat watch --mode=check triton_bounds.py -- bad $where
    check 97 "^SUMMARY: moat: heap-buffer-.* test/python/triton_bounds.py:[0-9]+ in scale" "no mask: $where"
    XDG_CACHE_HOME=$T/moat watch --mode=check triton_bounds.py -- good $where
    check 0 'moat: 0 errors' "its twin: $where"
done

watch --no-jit-ptx triton_language.py
check 1 'modules that the driver refused to load  *1$' 'without the PTX nothing can be loaded'
finish
