#!/bin/bash
# SPDX-License-Identifier: MIT
# The checking pass lets exactly those accesses reach the judge that leave the buffer of their root. With
# sanitizers, and where TEST_ALL is 0, a quarter of the programs.
set -u
programs=1000
! grep -q fsanitize "$BUILD/flags" 2>/dev/null || [ "${TEST_ALL:-1}" != 0 ] || programs=250
"$BUILD/tool/check_pass_random" 1 "${CHECK_PROGRAMS:-$programs}"
status=$?
[ $status = 0 ] && echo '1 passed, 0 failed' || echo '0 passed, 1 failed'
exit $status
