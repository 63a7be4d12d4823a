# SPDX-License-Identifier: MIT
# builds: one
# Shell commands that name moat's folder and keep what the variable held.

$ moat link-flags | sed "s|'/.*/lib/moat'|'LIB'|"
export NVCC_APPEND_FLAGS='-L''LIB'"${NVCC_APPEND_FLAGS:+ $NVCC_APPEND_FLAGS}"
$ moat link-flags --shared | sed "s|'/.*/lib/moat'|'LIB'|"
export NVCC_APPEND_FLAGS='-cudart shared -L''LIB'"${NVCC_APPEND_FLAGS:+ $NVCC_APPEND_FLAGS}"
$ unset NVCC_APPEND_FLAGS; eval "$(moat link-flags)"; echo "${NVCC_APPEND_FLAGS%/*}" | sed 's|-L/.*/lib$|-LIB|'
-LIB
$ NVCC_APPEND_FLAGS='-O1 -g'; eval "$(moat link-flags)"; echo "$NVCC_APPEND_FLAGS" | sed 's|-L/.*/lib/moat|-LIB|'
-LIB -O1 -g
$ moat link-flags now
2> moat: error: `moat link-flags` takes no operand, but "now" was given
[status 2]
$ mkdir $T/bin; cp $(command -v moat) $T/bin/; $T/bin/moat link-flags
2> moat: error: moat's CUDA runtime was not found: $T/lib/moat/libcudart_static.a: No such file or directory
[status 2]
