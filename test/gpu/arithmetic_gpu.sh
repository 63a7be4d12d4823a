#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# test/guard/canary_arithmetic.sh on a real GPU.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
[ -e "$BUILD/tool/canary_arithmetic" ] || { echo 'packed without canary_arithmetic'; exit 77; }
GUARD_DEVICE=gpu exec test/guard/canary_arithmetic.sh
