#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
JOBS=$(nproc) exec test/ptx/roundtrip-programs.sh --all
