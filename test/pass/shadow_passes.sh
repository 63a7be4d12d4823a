#!/bin/bash
# SPDX-License-Identifier: MIT
# tier: all
# builds: one
# slow
# What test/pass/passes.sh does, with the passes of --mode=shadow: the verifier and, if installed, ptxas
# accept the suite, clang's output and the texts with every form.
set -u
status=0
for PASSES in shadow shadow_alone shadow_128 shadow_8 shadow_unloaded; do
    export PASSES
    echo "$PASSES:"
    test/pass/passes.sh || status=1
done
exit $status
