#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Names and texts of errors are those of NVIDIA's runtime and driver, recorded with CUDA 13.0 on an H200.
set -eu
LD_LIBRARY_PATH=$BUILD/lib/moat "$BUILD/tool/error_strings" | diff "$(dirname "$0")/error_strings.expected" -
