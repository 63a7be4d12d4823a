#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Names and texts of errors are those of NVIDIA's runtime and driver, recorded with CUDA 13.0 on an H200.
set -eu -o pipefail
LD_LIBRARY_PATH=$BUILD/lib/moat "$BUILD/tool/error_strings" |
    diff <(grep -v '^#' "$(dirname "$0")/error_strings.expected") -
