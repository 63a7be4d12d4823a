// SPDX-License-Identifier: MIT
#include "base/cancel.h"

__thread struct cancel_state cancel_state __attribute__((tls_model("initial-exec")));
