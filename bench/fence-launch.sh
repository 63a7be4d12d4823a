#!/bin/bash
# SPDX-License-Identifier: MIT
# What --mode=fence adds to a launch: see launch-cost.sh.
LAUNCH_COST_MODE=fence exec "$(dirname "$0")/launch-cost.sh"
