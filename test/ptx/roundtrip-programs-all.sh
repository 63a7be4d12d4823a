#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
JOBS=$(nproc) exec test/ptx/roundtrip-programs.sh --all
