// SPDX-License-Identifier: MIT
// Makes Python import our module at its start (sitecustomize.py) and tells it what to do.
#ifndef MOAT_CLI_PYTHON_ENV_H
#define MOAT_CLI_PYTHON_ENV_H

#include <stdbool.h>

#include "base/option.h"

// folder: of our libraries; cpu: kernels run on the CPU device. Sets PYTHONPATH and MOAT_PYTHON if there is
// something to do in Python. Returns 0 or a negative code.
int python_env_set(const char *folder, const struct options *options, bool cpu);

#endif
