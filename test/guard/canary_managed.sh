#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# --mode=canary --canary-scan=managed, which does what GMODx does, for comparison: finds the same errors,
# later.
export PAIRS_OPTIONS=--canary-scan=managed PAIRS_ROUNDS=100
exec "$(dirname "$0")/canary.sh"
