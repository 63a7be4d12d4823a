#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# The suite under --mode=shadow on the CPU device, as check-suite.sh runs it under --mode=check.
# shadow-suite.sh [NAME...]: all programs, or these.
SUITE_MODE=shadow exec test/guard/check-suite.sh "$@"
